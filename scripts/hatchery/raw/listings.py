"""What a folder of raw files looked like when it was registered: names, sizes and modification times.

Cheap enough to be compared whenever a workflow is planned, so that an edited, added or removed file is noticed, and
only files that changed are read again. The listing is kept beside the source manifest and is nobody's input.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from hatchery.artifacts.atomic import json_value, write_text
from hatchery.artifacts.checksums import sha256_file
from hatchery.errors import SourceError
from hatchery.raw.archives import is_hidden


class Listed(NamedTuple):
    """A file: its size, its modification time in nanoseconds, and its SHA-256 once somebody read it."""

    bytes: int
    mtime_ns: int
    sha256: str = ""

    def looks_like(self, other: "Listed | None") -> bool:
        """Whether size and modification time are the same."""
        return other is not None and self[:2] == other[:2]


Listing = Mapping[str, Listed]


def listing_of(root: str | Path, refuse_links: bool = False, most: int | None = None) -> dict[str, Listed]:
    """The files of the folder, or the file, at `root` by relative name, sorted; empty where there is none.

    Hidden files are left out, as they are by registering. Reads no file, and looks no further after `most` files. With
    `refuse_links`, raises SourceError for a link to a folder or to nothing, which would otherwise be passed over.
    """
    root = Path(root)
    if root.is_file():
        return {root.name: _listed(root.stat())}
    return dict(sorted(islice(_walk(root, "", refuse_links), most)))


def _walk(folder: str | Path, prefix: str, refuse_links: bool) -> Iterator[tuple[str, Listed]]:
    # Not Path objects: with a hundred thousand small files, they cost more than reading the files.
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        if is_hidden(entry.name):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(entry.path, f"{prefix}{entry.name}/", refuse_links)
        elif entry.is_file():
            yield f"{prefix}{entry.name}", _listed(entry.stat())
        elif refuse_links and entry.is_symlink():
            state = "a folder; give it as a source" if entry.is_dir() else "nothing that can be read"
            raise SourceError(f"{entry.path}: a link ({Path(entry.path).readlink()}) to {state}")


def _listed(found: os.stat_result) -> Listed:
    return Listed(found.st_size, found.st_mtime_ns)


def identity(listing: Listing) -> str:
    """One word for names, sizes and modification times; empty for an empty listing."""
    # Through ASCII: a file name need not be UTF-8.
    text = json.dumps({name: entry[:2] for name, entry in listing.items()}, sort_keys=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:16] if listing else ""


def kept_listing(manifest: str | Path) -> Path:
    """Where the listing of the source with this manifest is kept."""
    path = Path(manifest)
    return path.with_name(f".{path.stem}.listing.json")


def unpacked(manifest: str | Path) -> Path:
    """What stands for the manifest where the files that were unpacked from an archive are listed, not the archive."""
    path = Path(manifest)
    return path.with_name(f"{path.stem}.unpacked.json")


def read_listing(manifest: str | Path) -> dict[str, Listed]:
    """The listing as it was when the source was registered; empty when there is none that can be read."""
    try:
        value = json_value(kept_listing(manifest).read_text(encoding="utf-8"))
        return {str(name): Listed(int(size), int(time), str(sha)) for name, (size, time, sha) in value.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def with_checksums(root: Path, listing: Listing, before: Listing) -> dict[str, Listed]:
    """The listing of `root` with checksums. Those of `before` are kept for files that look as they did.

    Where nothing looks different, somebody wants to know what the files hold, and all are read.
    """
    alike = {name for name, entry in listing.items() if entry.looks_like(before.get(name)) and before[name].sha256}
    if alike == listing.keys() == before.keys():
        alike = set()
    folder = root if root.is_dir() else root.parent
    return {
        name: entry._replace(sha256=before[name].sha256 if name in alike else sha256_file(folder / name))
        for name, entry in listing.items()
    }


def write_listing(manifest: str | Path, listing: Listing) -> None:
    """Keep a listing for the next plan and the next registration."""
    write_text(kept_listing(manifest), json.dumps(listing, sort_keys=True, separators=(",", ":")) + "\n")


def same_content(root: str | Path, found: Listing, manifest: str | Path) -> bool:
    """Whether the files at `root`, which look as in `found`, are those of the source manifest.

    Files with another modification time than when they were registered are read and compared; others are taken for
    what they look like. Only for folders and single files: an archive that was touched is not looked into.
    """
    before = read_listing(manifest)
    if found and found.keys() == before.keys() and all(found[name].looks_like(before[name]) for name in found):
        return True
    try:
        value = json_value(Path(manifest).read_text(encoding="utf-8"))
        registered = {str(e["path"]): (int(e["bytes"]), str(e["sha256"])) for e in value["files"]}
        kind = value["kind"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    if kind not in ("folder", "file") or found.keys() != registered.keys():
        return False
    if any(entry.bytes != registered[name][0] for name, entry in found.items()):
        return False
    folder = Path(root) if kind == "folder" else Path(root).parent
    touched = [name for name, entry in found.items() if not entry.looks_like(before.get(name))]
    try:
        return all(sha256_file(folder / name) == registered[name][1] for name in touched)
    except OSError:
        return False
