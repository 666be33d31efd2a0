"""Raw inputs as they lie on disk: a file or a folder, registered once.

Registering writes a small manifest of names, sizes and checksums, so a changed raw file is noticed by content, and
every number can be followed back to raw bytes. A file that looks as it did is not read again (`listings`). Where the
input lies, where it came from, its licence and its terms are kept in a second file, so the same data in another place,
or described in other words, has the same identity.
"""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hatchery.artifacts.atomic import write_json, write_text
from hatchery.errors import SourceError
from hatchery.raw.archives import is_zip
from hatchery.raw.listings import listing_of, read_listing, unpacked, with_checksums, write_listing
from hatchery.raw.raw_source import RawSource, location_of, open_source

__all__ = ["RawSource", "location_of", "open_source", "register_source"]


def register_source(
    name: str,
    root: str | Path,
    output: str | Path,
    *,
    licence: str = "",
    terms: str = "",
    origin: dict[str, Any] | None = None,
    archive: Path | None = None,
) -> None:
    """Write the source manifest of the file or folder at `root` to `output`, and its location beside it.

    `origin` says where the files came from; it goes to the location, as do licence and terms. `archive` is
    what the folder was unpacked from. Raises SourceError when `root` does not exist, holds no file or one that cannot
    be read.
    """
    root = Path(root)
    if not root.exists():
        state = f"is a link to {root.readlink()}, which does not exist" if root.is_symlink() else "does not exist"
        raise SourceError(f"source {name!r}: {root} {state}")
    if not (root.is_file() or root.is_dir()):
        raise SourceError(f"source {name!r}: {root} is a device or a pipe, expected a file or a folder")
    try:
        listed = output if archive is None else unpacked(output)
        listing = with_checksums(root, listing_of(root, refuse_links=True), read_listing(listed))
    except OSError as error:
        raise SourceError(f"source {name!r}: {error.filename or root}: {error.strerror or error}") from error
    if not listing:
        raise SourceError(f"source {name!r}: {root} holds no files")
    entries = [
        {"path": _checked(root, path), "bytes": entry.bytes, "sha256": entry.sha256} for path, entry in listing.items()
    ]
    # A source that is one zip archive is called so, however it is read.
    kind = "zip" if archive is not None and is_zip(archive) else "folder" if root.is_dir() else "file"
    text = _manifest_text({"kind": kind, "name": name}, entries)
    checksum = hashlib.sha256(text.encode("utf-8")).hexdigest()
    about = {
        "manifest_sha256": checksum,
        "root": root.as_posix(),
        "origin": origin or {},
        "licence": licence,
        "terms": terms,
    }
    write_listing(listed, listing)
    if archive is not None:
        write_listing(output, listing_of(archive))
    write_json(location_of(output), about)
    write_text(output, text)


def _manifest_text(head: dict[str, str], entries: Iterable[dict[str, Any]]) -> str:
    """The manifest as JSON with one line per file: as readable as an indented one, and much faster to write."""
    lines = [f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)},\n" for key, value in head.items()]
    files = ",\n".join(f"  {json.dumps(entry, sort_keys=True, ensure_ascii=False)}" for entry in entries)
    return "{\n" + "".join(lines) + ' "files": [\n' + files + "\n ]\n}\n"


def _checked(root: Path, name: str) -> str:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        raise SourceError(f"{root}: the file name {name!r} is not UTF-8; rename it") from None
    return name
