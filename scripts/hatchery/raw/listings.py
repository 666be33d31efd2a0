"""Listings of raw files (names, sizes, modification times), which show changes after the registration of a source.

Whenever the workflow is planned, the current listing is compared with the stored listing. The comparison finds changed,
added and removed files, and only changed files are read again. The listing is stored next to the source manifest and is
not an input of any stage.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from hatchery.artifacts.atomic import json_value, write_text
from hatchery.artifacts.checksums import sha256_file
from hatchery.errors import SourceError
from hatchery.raw.archives import is_hidden
from hatchery.settings.fields import ABSENT

REGISTERED = "resources/sources"
"""Folder of the source manifests, which are named `<source>.json`."""


class Listed(NamedTuple):
    """A file in a listing: size in bytes, modification time in nanoseconds, and SHA-256 (empty if the file was not
    read).
    """

    bytes: int
    mtime_ns: int
    sha256: str = ""

    def looks_like(self, other: "Listed | None") -> bool:
        """Return True if `other` has the same size and modification time."""
        return other is not None and self[:2] == other[:2]


Listing = Mapping[str, Listed]


def listing_of(
    root: str | Path, strict: bool = False, most: int | None = None, follow_links: bool = False
) -> dict[str, Listed]:
    """Return the files at `root` (a folder or a file) by relative name, sorted; empty if `root` does not exist.

    Hidden files are left out, as in the registration. The files are not read. At most `most` files are listed. If
    `strict` is true, raises SourceError for an unreadable file or folder, and for a link to a missing file; if
    `follow_links` is false, any link in `root` raises this error. If `strict` is false, unreadable files and folders
    are skipped; if `follow_links` is also false, links to folders are skipped, too.
    """
    root = Path(root)
    if root.is_file():
        return {root.name: _listed(root.stat())}
    try:
        return dict(sorted(islice(_walk(root, "", strict, follow_links, ()), most)))
    except RecursionError:
        raise SourceError(f"{root}: folders are nested too deeply to list") from None


def _walk(
    folder: str | Path, prefix: str, strict: bool, follow_links: bool, above: tuple[tuple[int, int], ...]
) -> Iterator[tuple[str, Listed]]:
    """Yield the files of a folder and of its subfolders.

    `above` contains the (device, inode) of each enclosing folder. A link to an enclosing folder is not followed,
    because following the link would never end.
    """
    # Use texts instead of Path objects, because Path objects for a hundred thousand small files would take longer than
    # reading the files.
    entries: list[os.DirEntry[str]] = []
    with _readable(folder, strict):
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    for entry in entries:
        if is_hidden(entry.name):
            continue
        with _readable(entry.path, strict):
            if entry.is_symlink() and strict:
                _check_link(entry.path, follow_links)
            if entry.is_dir(follow_symlinks=follow_links):
                status = entry.stat()
                here = (status.st_dev, status.st_ino)
                if here not in above:
                    inner = (*above, here) if follow_links else ()
                    yield from _walk(entry.path, f"{prefix}{entry.name}/", strict, follow_links, inner)
            elif entry.is_file():
                yield f"{prefix}{entry.name}", _listed(entry.stat())


@contextmanager
def _readable(place: str | Path, strict: bool) -> Iterator[None]:
    """End the `with` block if the block cannot read a file or folder. If `strict` is true, raise SourceError, which
    names `place`; if `strict` is false, raise no error.
    """
    try:
        yield
    except OSError as error:
        if strict:
            raise SourceError(f"{place}: cannot be read: {error.strerror}") from error


def _check_link(place: str, follow_links: bool) -> None:
    target = Path(place).readlink()
    if not Path(place).exists():
        raise SourceError(f"{place}: a link ({target}) to a missing or unreadable file")
    if not follow_links:
        raise SourceError(
            f"{place}: a link ({target}), which is not followed; set `follow_links: true` next to the data's `path`"
        )


def _listed(found: os.stat_result) -> Listed:
    return Listed(found.st_size, found.st_mtime_ns)


def identity(listing: Listing) -> str:
    """Return a digest of the names, sizes and modification times of the listed files; an empty text for an empty
    listing.
    """
    # JSON escapes all characters outside of ASCII, so that even a file name that is not valid UTF-8 can be encoded.
    text = json.dumps({name: entry[:2] for name, entry in listing.items()}, sort_keys=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:16] if listing else ""


def source_of(block: Any) -> str:
    """Return the name of the raw input to which a configuration section refers.

    The section names an entry of `data` in config.yaml (key `data`), or data that the demo generates (key `embedded`).
    """
    return str(block.data if block.data is not ABSENT else f"embedded_{block.embedded}")


def source_manifest(name: str) -> str:
    """Return the path of the source manifest of the raw input `name`."""
    return f"{REGISTERED}/{name}.json"


def location_of(manifest_path: str | Path) -> Path:
    """Return the path of the file with location, licence and terms of a raw input, which is next to its source
    manifest.
    """
    path = Path(manifest_path)
    return path.with_name(f"{path.stem}.location.json")


def kept_listing(manifest: str | Path) -> Path:
    """Return the path at which the listing of a source is stored; `manifest` is the source manifest."""
    path = Path(manifest)
    return path.with_name(f".{path.stem}.listing.json")


def unpacked(manifest: str | Path) -> Path:
    """Return the path to pass to `kept_listing` for the listing of the files that were unpacked from an archive.

    For the listing of the archive itself, pass the path of the source manifest.
    """
    path = Path(manifest)
    return path.with_name(f"{path.stem}.unpacked.json")


def read_listing(manifest: str | Path) -> dict[str, Listed]:
    """Return the stored listing of a source; empty if the listing is missing or damaged."""
    try:
        value = json_value(kept_listing(manifest).read_text(encoding="utf-8"))
        return {str(name): Listed(int(size), int(time), str(sha)) for name, (size, time, sha) in value.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def with_checksums(root: Path, listing: Listing, before: Listing) -> dict[str, Listed]:
    """Return `listing` with a checksum for each file at `root`. `before` is an earlier listing.

    A file is read if it has no checksum in `before`, or if its size or modification time differs from `before`. The
    checksums of all other files are copied from `before`. Exception: if both listings are equal, all files are read, to
    verify their content.
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
    """Store the listing of a source next to its manifest, for the next planning or registration."""
    write_text(kept_listing(manifest), json.dumps(listing, sort_keys=True, separators=(",", ":")) + "\n")
