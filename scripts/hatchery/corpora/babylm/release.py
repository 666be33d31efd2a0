"""Which files of a BabyLM 2023 release belong to a corpus: the layouts in which people have it.

A source is the folder of one track (`aochildes.train`, ...), the whole release (`babylm_data/babylm_100M/...`), or a
zip of either. Source: docs/papers/elc-bert.md, "Release of BabyLM 2023": two tracks for training share one development
and one test set.
"""

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Literal

from hatchery.corpora.documents import Split
from hatchery.corpora.packed_files import matching_names
from hatchery.errors import SourceError
from hatchery.raw.registration import RawSource

Track = Literal["10M", "100M", "dev", "test"]
SPLIT_OF_SUFFIX: dict[str, Split] = {".train": "train", ".dev": "dev", ".test": "test"}
_FOLDERS: dict[str, Track] = {"babylm_10M": "10M", "babylm_100M": "100M", "babylm_dev": "dev", "babylm_test": "test"}


def corpus_files(source: RawSource, corpus: str, track: Track | None, patterns: Sequence[str]) -> list[str]:
    """The names of the files of a corpus in a source: training, development and test, as far as they are there.

    A track for training brings the development and test files that lie in the same source; the tracks `dev` and `test`
    bring these alone. `patterns`, if any, pick files instead. Raises SourceError when nothing is found, when the track
    misses its own file, and when several files claim the same split.
    """
    if patterns:
        return _checked(source, matching_names(source, tuple(patterns)), corpus, "`files` picks them")
    names = [name for suffix in SPLIT_OF_SUFFIX for name in source.names(f"{corpus}{suffix}")]
    found = {name: _track_of(source, name) for name in names}
    if track is not None:
        names = [name for name, own in found.items() if own in _wanted(track, name)]
        if not any(PurePosixPath(name).suffix == _own_suffix(track) for name in names):
            raise SourceError(
                f"{source.root}: there is no file babylm_{track}/{corpus}{_own_suffix(track)} of the track {track}"
                f"{_but_has(found)}"
            )
    if not names:
        raise SourceError(f"{source.root}: no file matches {corpus}.train, {corpus}.dev, {corpus}.test")
    return _checked(source, names, corpus, "say which one by the option `track`")


def _track_of(source: RawSource, name: str) -> Track | None:
    """The track by the name of the folder, or of the source where the file lies at its top; None for other names."""
    parents = PurePosixPath(name).parts[:-1]
    return _FOLDERS.get(parents[-1] if parents else source.root.stem)


def _own_suffix(track: Track) -> str:
    return f".{track}" if track in ("dev", "test") else ".train"


def _wanted(track: Track, name: str) -> tuple[Track | None, ...]:
    suffix = PurePosixPath(name).suffix
    if track in ("dev", "test"):
        return (track, None) if suffix == _own_suffix(track) else ()
    return (track, None) if suffix == ".train" else ("dev", "test", track, None)


def _but_has(found: dict[str, Track | None]) -> str:
    return f"; it has {', '.join(sorted(found))}" if found else ""


def _checked(source: RawSource, names: list[str], corpus: str, advice: str) -> list[str]:
    by_last_part: dict[str, str] = {}
    for name in names:
        other = by_last_part.setdefault(PurePosixPath(name).name, name)
        if other != name:
            raise SourceError(f"{source.root}: both {other} and {name} are files of {corpus}; {advice}")
    return names
