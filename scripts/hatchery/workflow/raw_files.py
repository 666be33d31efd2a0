"""The user's raw files as they are now, compared with the registered ones."""

from pathlib import Path
from typing import TYPE_CHECKING

from hatchery.artifacts.atomic import json_value
from hatchery.artifacts.checksums import sha256_file

if TYPE_CHECKING:
    from hatchery.experiment.project import Project


from hatchery.raw.listings import REGISTERED, Listing, identity, listing_of, location_of, read_listing, source_manifest


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
