"""The metadata graph of an RO-Crate: entities that refer to each other by identifier, and the files in the crate.

RO-Crate 1.1 writes the graph as flattened JSON-LD. Files that are not in the crate, such as weights and raw text, are
identified by their SHA-256 (RFC 6920).
"""

import base64
import hashlib
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

CONTEXTS = ("https://w3id.org/ro/crate/1.1/context", "https://w3id.org/ro/terms/workflow-run/context")
FORMATS = {
    ".csv": "text/csv",
    ".html": "text/html",
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".md": "text/markdown",
    ".parquet": "application/vnd.apache.parquet",
    ".txt": "text/plain",
}
"""Media types by file suffix. Python's `mimetypes` is not used, because its result depends on the machine."""
BYTES = "application/octet-stream"

Entity = dict[str, Any]


def reference(identifier: str) -> dict[str, str]:
    """Return a JSON-LD reference to the entity with this identifier."""
    return {"@id": identifier}


def named_by_digest(sha256: str) -> str:
    """Return the URI of a file by its SHA-256, in the form of RFC 6920."""
    return f"ni:///sha-256;{base64.urlsafe_b64encode(bytes.fromhex(sha256)).decode().rstrip('=')}"


def _format(name: str) -> str:
    return FORMATS.get(PurePosixPath(name).suffix, BYTES)


@dataclass
class Crate:
    """An RO-Crate: its entities by identifier, and the contents of its files by path."""

    entities: dict[str, Entity] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)

    def add(self, identifier: str, kind: str | list[str], /, **properties: Any) -> str:
        """Add an entity with the type `kind` and return its identifier. Empty properties are omitted, and a list with a
        single item is replaced by the item.
        """
        filled = {name: value for name, value in properties.items() if value not in (None, "", [])}
        for name, value in filled.items():
            filled[name] = value[0] if isinstance(value, list) and len(value) == 1 else value
        self.entities[identifier] = {"@id": identifier, "@type": kind, **filled}
        return identifier

    def file(self, path: str, sha256: str, size: int) -> str:
        """Add an entity for a file that is not in the crate, and return the entity's identifier.

        If files at several paths have the same bytes, the first path is the name of the entity, and the other paths are
        its alternate names.
        """
        identifier = named_by_digest(sha256)
        known = self.entities.get(identifier)
        if known is None:
            facts = {"sha256": sha256, "contentSize": str(size), "encodingFormat": _format(path)}
            return self.add(identifier, "File", **{**facts, "name": path})
        others = {*known.get("alternateName", ()), path} - {known["name"]}
        if others:
            known["alternateName"] = sorted(others)
        return identifier

    def held(self, place: str, content: bytes, /, **properties: Any) -> str:
        """Add a file with the content `content` at the path `place` in the crate, and return the identifier of its
        entity.
        """
        self.files[place] = content
        facts = {"sha256": hashlib.sha256(content).hexdigest(), "contentSize": str(len(content))}
        return self.add(place, "File", **{**facts, "encodingFormat": _format(place), "name": place, **properties})

    def metadata(self) -> dict[str, Any]:
        """Return the content of `ro-crate-metadata.json`."""
        return {"@context": list(CONTEXTS), "@graph": list(self.entities.values())}
