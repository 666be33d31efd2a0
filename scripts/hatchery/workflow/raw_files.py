"""The user's raw files as they are now, beside what was registered of them: what changed is noticed while planning."""

import json
from pathlib import Path

from hatchery.experiment.project import Project
from hatchery.raw.listings import Listing, identity, listing_of, read_listing, same_content
from hatchery.raw.registration import location_of
from hatchery.workflow.data_paths import source_manifest


class RawFiles:
    """Names, sizes and modification times of raw files; each folder is listed once.

    Jobs of a cluster plan nothing, and need not look at a hundred thousand raw files when they start.
    """

    def __init__(self, project: Project, is_planning: bool = True) -> None:
        self._project = project
        self._is_planning = is_planning
        self._inputs: dict[str, str] = {}
        self._listings: dict[Path, Listing] = {}

    def source_listing(self, source: str) -> str | None:
        """One word for the files of a source: registering runs when it changes. None where there is nothing to list.

        While the files are not there, it stays what it was: what was made from them can be looked at without them.
        """
        path = self._path_of(source)
        if path is None:
            return None
        return identity(self._listing(path) or read_listing(source_manifest(source))) or None

    def edited_files(self, source: str) -> list[str]:
        """The user's files that are new, gone or otherwise than when the source was registered, sorted."""
        path = self._path_of(source)
        if path is None:
            return []
        before, now = read_listing(source_manifest(source)), self._listing(path)
        names = [
            name for name in sorted({*before, *now}) if name not in now or not now[name].looks_like(before.get(name))
        ]
        return [str(path / name) if path.is_dir() else str(path) for name in names]

    def as_input(self, path: str) -> str:
        """A path as the input of a rule.

        Raw files that were moved or touched are registered anew; where they are the same, nothing after that is to run.
        """
        if not (self._is_planning and path.startswith("resources/sources/")):
            return path
        if path not in self._inputs:
            raw = self._path_of(Path(path).stem)
            self._inputs[path] = path
            if raw is not None and self._was_only_moved_or_touched(raw, path):
                from snakemake.io import ancient

                self._inputs[path] = ancient(path)
        return self._inputs[path]

    def _was_only_moved_or_touched(self, path: Path, manifest: str) -> bool:
        root, found = _registered_root(manifest), self._listing(path)
        if root is None or not found:
            return False
        looks_the_same = identity(found) == identity(read_listing(manifest))
        return (root != path.as_posix() or not looks_the_same) and same_content(path, found, manifest)

    def _path_of(self, source: str) -> Path | None:
        given = self._project.raw_input(source)
        return None if given is None or given.path is None else Path(given.path)

    def _listing(self, path: Path) -> Listing:
        if path not in self._listings:
            self._listings[path] = listing_of(path)
        return self._listings[path]


def _registered_root(manifest: str) -> str | None:
    """Where the files of a source lay when it was registered; None where that is not known."""
    try:
        return str(json.loads(location_of(manifest).read_text(encoding="utf-8"))["root"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
