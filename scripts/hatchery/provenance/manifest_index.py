"""Manifests by the digest of their bytes, which is the only name that a consumer records of what it read.

Looked for are the manifests of all stages, the source manifests, and the published tables that some stages read.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hatchery.artifacts.checksums import sha256_file

# Folders of results/ that hold no manifest of a finished stage, and may hold very many files.
_PRUNED = ("checkpoints", "finetuning_runs", "benchmarks", "settings")


@dataclass(frozen=True)
class Found:
    """A file with its SHA-256; the same bytes may lie in several places, sorted by path."""

    digest: str
    paths: tuple[Path, ...]

    def nearest(self, folder: Path) -> Path:
        """The place in `folder` if there is one, otherwise the first."""
        return next((path for path in self.paths if path.is_relative_to(folder)), self.paths[0])


class ManifestIndex:
    """All manifests below `project`, the folder that holds `results/` and `resources/`."""

    def __init__(self, project: str | Path = ".") -> None:
        self.project = Path(project)
        by_digest: dict[str, list[Path]] = {}
        for path in sorted(path for path in _candidates(self.project) if path.is_file()):
            by_digest.setdefault(sha256_file(path), []).append(path)
        self._found = {digest: Found(digest, tuple(paths)) for digest, paths in by_digest.items()}
        self._outside: set[Path] = set()
        self._digests = {path: found.digest for found in self._found.values() for path in found.paths}

    def add(self, path: str | Path, digest: str) -> bool:
        """Take in a file outside, relative to the project, if it is there and has this digest; whether it has."""
        place = self.project / path
        try:
            is_it = place.is_file() and place not in self._digests and sha256_file(place) == digest
        except OSError:  # words of a command that are no paths, such as settings, are longer than a name may be
            return False
        if not is_it:
            return False
        self._found[digest], self._digests[place] = Found(digest, (place,)), digest
        self._outside.add(place)
        return True

    def is_outside(self, path: Path) -> bool:
        """Whether a file was taken in by `add`."""
        return path in self._outside

    def find(self, beginning: str) -> list[Found]:
        """What has a digest that begins with `beginning`: nothing, one, or several where it is too short."""
        if beginning in self._found:
            return [self._found[beginning]]
        return [found for digest, found in self._found.items() if digest.startswith(beginning)]

    def digest_of(self, path: str | Path) -> str | None:
        """Digest of the manifest at `path`, relative to the project; None when there is none."""
        return self._digests.get(self.project / path)


def _candidates(project: Path) -> Iterator[Path]:
    # Links of experiments to the models that they share are followed: their places have readable names.
    for folder, folders, files in os.walk(project / "results", followlinks=True):
        folders[:] = [name for name in folders if not (name in _PRUNED and Path(folder) == project / "results")]
        if "manifest.json" in files:
            yield Path(folder) / "manifest.json"
    embedded = project / "resources/embedded/manifest.json"
    if embedded.is_file():
        yield embedded
    for path in (project / "resources/sources").glob("*.json"):
        if not path.name.endswith(".location.json") and not path.name.startswith("."):
            yield path
    yield from (project / "config/published").rglob("*.csv")
