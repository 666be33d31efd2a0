"""What a folder of raw files looked like when it was registered, and what has changed since: names, sizes and times.

Cheap enough to be compared whenever a workflow is planned, so that an edited, added or removed file is noticed, and
only files that changed are read again. The listing is kept beside the source manifest and is nobody's input.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hatchery.artifacts.atomic import json_value, write_text
from hatchery.artifacts.checksums import sha256_file
from hatchery.errors import SourceError
from hatchery.raw.archives import is_hidden
from hatchery.settings.fields import ABSENT

if TYPE_CHECKING:
    from hatchery.experiment.project import Project

REGISTERED = "resources/sources"
"""Where the workflow keeps source manifests, each under the name of its source."""


class Listed(NamedTuple):
    """A file: its size, its modification time in nanoseconds, and its SHA-256 once somebody read it."""

    bytes: int
    mtime_ns: int
    sha256: str = ""

    def looks_like(self, other: "Listed | None") -> bool:
        """Whether size and modification time are the same."""
        return other is not None and self[:2] == other[:2]


Listing = Mapping[str, Listed]


def listing_of(
    root: str | Path, strict: bool = False, most: int | None = None, follow_links: bool = False
) -> dict[str, Listed]:
    """The files of the folder, or the file, at `root` by relative name, sorted; empty where there is none.

    Hidden files are left out, as they are by registering. Reads no file, and looks no further after `most` files. If
    `strict`, raises SourceError for a folder that cannot be read, and for a link inside of `root` unless
    `follow_links`; otherwise, what cannot be read is passed over.
    """
    root = Path(root)
    if root.is_file():
        return {root.name: _listed(root.stat())}
    try:
        return dict(sorted(islice(_walk(root, "", strict, follow_links, ()), most)))
    except RecursionError:
        raise SourceError(f"{root}: folders are nested too deeply") from None


def _walk(
    folder: str | Path, prefix: str, strict: bool, follow_links: bool, above: tuple[tuple[int, int], ...]
) -> Iterator[tuple[str, Listed]]:
    """`above` are the folders, by device and number, that links have led through: none is gone into twice."""
    place = folder
    # Not Path objects: with a hundred thousand small files, they cost more than reading the files.
    try:
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            place = entry.path
            if is_hidden(entry.name):
                continue
            link = entry.is_symlink()
            if link and strict:
                _check_link(place, follow_links)
            if entry.is_dir(follow_symlinks=follow_links):
                found = entry.stat()
                here = (found.st_dev, found.st_ino)
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
        raise SourceError(f"{place}: a link ({target}) to nothing that can be read")
    if not follow_links:
        raise SourceError(
            f"{place}: a link ({target}), which is not followed; set `follow_links: true` beside the `path` of the data"
        )


def _listed(found: os.stat_result) -> Listed:
    return Listed(found.st_size, found.st_mtime_ns)


def identity(listing: Listing) -> str:
    """One word for names, sizes and modification times; empty for an empty listing."""
    # Through ASCII: a file name need not be UTF-8.
    text = json.dumps({name: entry[:2] for name, entry in listing.items()}, sort_keys=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:16] if listing else ""


def source_of(block: Any) -> str:
    """The name of the raw input that a block reads, one of config.yaml or a generated one."""
    return str(block.data if block.data is not ABSENT else f"embedded_{block.embedded}")


def source_manifest(name: str) -> str:
    """Manifest of a raw input."""
    return f"{REGISTERED}/{name}.json"


def location_of(manifest_path: str | Path) -> Path:
    """The file beside a source manifest that says where the raw input lies, and on which terms it may be used."""
    path = Path(manifest_path)
    return path.with_name(f"{path.stem}.location.json")


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


class RawFiles:
    """The user's raw files as they are now, beside what was registered of them; each folder is listed once.

    Jobs of a cluster plan nothing, and need not look at a hundred thousand raw files when they start.
    """

    def __init__(self, project: "Project", is_planning: bool = True) -> None:
        self._project = project
        self._is_planning = is_planning
        self._same: dict[str, bool] = {}
        self._listings: dict[tuple[Path, bool], Listing] = {}
        self._now: dict[str, tuple[Path, Listing, int, bool] | None] = {}

    def source_listing(self, source: str) -> str | None:
        """One word for the files of a source: registering runs when it changes. None where there is nothing to list.

        While the files are not there, it stays what it was: what was made from them can be looked at without them.
        """
        given = self._given(source)
        if given is None:
            return None
        return identity(self._listing(*given) or read_listing(source_manifest(source))) or None

    def edited_files(self, source: str) -> list[str]:
        """What happened to the user's files since the source was registered, as in `added letters/a.txt`, by name."""
        given = self._given(source)
        if given is None:
            return []
        path = given[0]
        before, now = read_listing(source_manifest(source)), self._listing(*given)
        changes = []
        for name in sorted({*before, *now}):
            if name in now and now[name].looks_like(before.get(name)):
                continue
            what = "added" if name not in before else "edited" if name in now else "removed"
            changes.append(f"{what} {path / name if path.is_dir() else path}")
        return changes

    def are_the_same(self, manifest: str) -> bool:
        """Whether the files of a source were moved or touched, and still are what the source manifest says.

        Then they are registered anew, and nothing after that is to run.
        """
        if not (self._is_planning and manifest.startswith(f"{REGISTERED}/")):
            return False
        if manifest not in self._same:
            given = self._given(Path(manifest).stem)
            self._same[manifest] = given is not None and _was_only_moved_or_touched(
                given[0], self._listing(*given), manifest
            )
        return self._same[manifest]

    def changed(self, manifest: str, made: Path) -> tuple[Path, Listing] | None:
        """Place and files of a source that changed since it was registered, or since `made` was made from it.

        None where nothing did, or there is nothing to look at.
        """
        if not (self._is_planning and manifest.startswith(f"{REGISTERED}/") and made.is_file()):
            return None
        if manifest not in self._now:
            self._now[manifest] = self._looked_at(manifest)
        if (now := self._now[manifest]) is None:
            return None
        root, found, registered_ns, is_registered = now
        return None if is_registered and registered_ns <= made.stat().st_mtime_ns else (root, found)

    def _looked_at(self, manifest: str) -> tuple[Path, Listing, int, bool] | None:
        """Place and files of a source, when it was registered, and whether it was as it is; None where nothing is."""
        given = self._given(Path(manifest).stem)
        if given is None or not (found := self._listing(*given)) or not Path(manifest).is_file():
            return None
        is_registered = identity(found) == identity(read_listing(manifest))
        return given[0], found, Path(manifest).stat().st_mtime_ns, is_registered

    def _given(self, source: str) -> tuple[Path, bool] | None:
        """Where a source lies, and whether links in it are followed."""
        given = self._project.raw_input(source)
        return None if given is None or given.path is None else (Path(given.path), given.follow_links)

    def _listing(self, path: Path, follow_links: bool) -> Listing:
        if (path, follow_links) not in self._listings:
            self._listings[path, follow_links] = listing_of(path, follow_links=follow_links)
        return self._listings[path, follow_links]


def _was_only_moved_or_touched(root: Path, found: Listing, manifest: str) -> bool:
    """Whether files lie elsewhere or look otherwise than when they were registered, and still are the same.

    Files with another modification time are read and compared; others are taken for what they look like. Only folders
    and single files are: an archive that was touched is not looked into.
    """
    if not found:
        return False
    before = read_listing(manifest)
    try:
        registered_root = str(json_value(location_of(manifest).read_text(encoding="utf-8"))["root"])
        if identity(found) == identity(before):
            return registered_root != root.as_posix()
        value = json_value(Path(manifest).read_text(encoding="utf-8"))
        registered = {str(e["path"]): (int(e["bytes"]), str(e["sha256"])) for e in value["files"]}
        kind = value["kind"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    if kind not in ("folder", "file") or found.keys() != registered.keys():
        return False
    if any(entry.bytes != registered[name][0] for name, entry in found.items()):
        return False
    folder = root if kind == "folder" else root.parent
    touched = [name for name, entry in found.items() if not entry.looks_like(before.get(name))]
    try:
        return all(sha256_file(folder / name) == registered[name][1] for name in touched)
    except OSError:
        return False
