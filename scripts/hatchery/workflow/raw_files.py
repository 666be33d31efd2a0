"""The user's current raw files, compared with the files at the time of their registration."""

from pathlib import Path
from typing import TYPE_CHECKING

from hatchery.artifacts.atomic import json_value
from hatchery.artifacts.checksums import sha256_file

if TYPE_CHECKING:
    from hatchery.experiment.project import Project


from hatchery.raw.listings import REGISTERED, Listing, identity, listing_of, location_of, read_listing, source_manifest


class RawFiles:
    """The user's current raw files, and their registrations (source manifest and file list).

    The files of a folder are listed at most once per process. If `is_planning` is false, no changes are searched for. A
    cluster job, which does not plan, would otherwise list up to a hundred thousand files at its start.
    """

    def __init__(self, project: "Project", is_planning: bool = True) -> None:
        self._project = project
        self._is_planning = is_planning
        self._same: dict[str, bool] = {}
        self._listings: dict[tuple[Path, bool], Listing] = {}
        self._now: dict[str, tuple[Path, Listing, int, bool] | None] = {}

    def source_listing(self, source: str) -> str | None:
        """Return a digest of a source's file list; if the digest changes, the registration runs again.

        If the files do not exist, return the digest of the registered file list, so that results remain usable without
        raw files. None if the configuration states no path, or if the source has neither files nor a
        registration.
        """
        given = self._given(source)
        if given is None:
            return None
        return identity(self._listing(*given) or read_listing(source_manifest(source))) or None

    def edited_files(self, source: str) -> list[str]:
        """Return the changes of a source's files since its registration, such as `added letters/a.txt`, sorted by file
        name.
        """
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
        """Return True if a source's files were only moved or touched: their contents still match the source manifest.

        In this case, the files are registered again, but jobs that read the files do not run again.
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
        """Return (path, current file list) of a source if the file `made`, which was made from it, may be outdated: the
        source's files have changed since their registration, or the source was registered after `made` was written.
        `manifest` is the source manifest.

        Otherwise, and if the source has no files, return None.
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
        """Return a tuple for a registered source: its path, its current file list, the modification time of its
        manifest in nanoseconds, and True if the file list has not changed since the registration.

        None if the source's files or its manifest do not exist.
        """
        given = self._given(Path(manifest).stem)
        if given is None or not (found := self._listing(*given)) or not Path(manifest).is_file():
            return None
        is_registered = identity(found) == identity(read_listing(manifest))
        return given[0], found, Path(manifest).stat().st_mtime_ns, is_registered

    def _given(self, source: str) -> tuple[Path, bool] | None:
        """Return (path, True if symbolic links are followed) from the configuration of a raw input; None if the
        configuration states no path.
        """
        given = self._project.raw_input(source)
        return None if given is None or given.path is None else (Path(given.path), given.follow_links)

    def _listing(self, path: Path, follow_links: bool) -> Listing:
        if (path, follow_links) not in self._listings:
            self._listings[path, follow_links] = listing_of(path, follow_links=follow_links)
        return self._listings[path, follow_links]


def _was_only_moved_or_touched(root: Path, found: Listing, manifest: str) -> bool:
    """Return True if the path or modification times of registered files have changed, but not the content of the files.

    Files with another modification time are read and compared. Files with equal size and time are assumed to be
    unchanged. For archives, always return False if a modification time has changed, because archives are not opened.
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
