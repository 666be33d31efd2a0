"""Listings of raw files (names, sizes, modification times), which show changes after the registration of a source.

Listings are compared at each planning of the workflow, so that changed, added and removed files are noticed, and only
changed files are read again. A listing is stored next to the source manifest and is not an input of any stage.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from hatchery.artifacts.atomic import json_value, write_text
from hatchery.artifacts.checksums import sha256_file
from hatchery.errors import SourceError
from hatchery.raw.archives import is_hidden
from hatchery.settings.fields import ABSENT

REGISTERED = "resources/sources"
"""Folder of the source manifests, `<source>.json`."""


class Listed(NamedTuple):
    """A file in a listing: size, modification time in nanoseconds, and SHA-256 (empty if the file was not read)."""

    bytes: int
    mtime_ns: int
    sha256: str = ""

    def looks_like(self, other: "Listed | None") -> bool:
        """Return True if sizes and modification times are equal."""
        return other is not None and self[:2] == other[:2]


Listing = Mapping[str, Listed]


def listing_of(
    root: str | Path, strict: bool = False, most: int | None = None, follow_links: bool = False
) -> dict[str, Listed]:
    """Return the files at `root` (a folder or a file) by relative name, sorted; empty if `root` does not exist.

    Hidden files are ignored, as in the registration. Files are not read, and at most `most` files are listed. With
    `strict`, raises SourceError for an unreadable folder and, unless `follow_links`, for a link in `root`; without
    `strict`, unreadable files and folders are skipped.
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
    """Yield the files of a folder. `above` contains (device, inode) of its parent folders, to stop at links to them."""
    place = folder
    # With a hundred thousand small files, Path objects would cost more time than reading the files.
    try:
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            place = entry.path
            if is_hidden(entry.name):
                continue
            link = entry.is_symlink()
            if link and strict:
                _check_link(place, follow_links)
            if entry.is_dir(follow_symlinks=follow_links):
                status = entry.stat()
                here = (status.st_dev, status.st_ino)
                if here not in above:
                    yield from _walk(
                        place, f"{prefix}{entry.name}/", strict, follow_links, (*above, here) if follow_links else ()
                    )
            elif entry.is_file():
                yield f"{prefix}{entry.name}", _listed(entry.stat())
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
    """Return a digest of names, sizes and modification times; an empty string for an empty listing."""
    # JSON escapes non-ASCII characters, so a file name that is not valid UTF-8 can be encoded.
    text = json.dumps({name: entry[:2] for name, entry in listing.items()}, sort_keys=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:16] if listing else ""


def source_of(block: Any) -> str:
    """Return the name of the raw input of a configuration section: an entry of `data` in config.yaml, or a generated
    input."""
    return str(block.data if block.data is not ABSENT else f"embedded_{block.embedded}")


def source_manifest(name: str) -> str:
    """Return the path of the source manifest of a raw input."""
    return f"{REGISTERED}/{name}.json"


def location_of(manifest_path: str | Path) -> Path:
    """Return the path of the file with location, licence and terms of a raw input, next to its source manifest."""
    path = Path(manifest_path)
    return path.with_name(f"{path.stem}.location.json")


def kept_listing(manifest: str | Path) -> Path:
    """Return the path of the stored listing of the source with this manifest."""
    path = Path(manifest)
    return path.with_name(f".{path.stem}.listing.json")


def unpacked(manifest: str | Path) -> Path:
    """Return a path to pass instead of the manifest's path for the listing of files that were unpacked from an
    archive."""
    path = Path(manifest)
    return path.with_name(f"{path.stem}.unpacked.json")


def read_listing(manifest: str | Path) -> dict[str, Listed]:
    """Return the stored listing of a source; empty if it cannot be read."""
    try:
        value = json_value(kept_listing(manifest).read_text(encoding="utf-8"))
        return {str(name): Listed(int(size), int(time), str(sha)) for name, (size, time, sha) in value.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def with_checksums(root: Path, listing: Listing, before: Listing) -> dict[str, Listed]:
    """Return the listing of `root` with checksums; unchanged files (size and time) keep the checksums of `before`.

    If no file has changed, all files are read, to verify their content.
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
    """Store the listing of a source, for the next planning or registration."""
    write_text(kept_listing(manifest), json.dumps(listing, sort_keys=True, separators=(",", ":")) + "\n")
