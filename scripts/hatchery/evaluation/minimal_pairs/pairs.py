"""Minimal pairs in the format of BLiMP (Warstadt et al. 2020): JSON lines with a good and a bad sentence.

Reads any folder or archive of such files, the original 67 paradigms, the pooled files of BabyLM and a user's own
alike, and promises the same pairs in the same order for the same files and seed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.json_lines import Record, read_json_lines, shorten
from hatchery.evaluation.seeds import generator
from hatchery.storage.sources import RawSource

# The 13 raw terms of the release become the 12 phenomena of the paper and of BabyLM's tables by these two.
PHENOMENON_OF_TERM = {"s-selection": "argument_structure", "filler_gap_dependency": "filler_gap"}


@dataclass(frozen=True)
class MinimalPair:
    """Two sentences of which the model should prefer the good one."""

    paradigm: str
    phenomenon: str
    pair_id: str
    sentence_good: str
    sentence_bad: str

    @property
    def identical(self) -> bool:
        """Whether both sentences are the same text: no model can decide such a pair (seven of them in BLiMP)."""
        return self.sentence_good == self.sentence_bad


def read_minimal_pairs(source: RawSource, files: str = "*.jsonl") -> list[MinimalPair]:
    """All pairs of the files that match the shell pattern `files`, by file name and line.

    The paradigm is the field `UID`, or else the file's stem; the phenomenon is `linguistics_term`, or else the
    paradigm; terms outside BLiMP are kept as they are. Raises EvaluationError naming file and line for wrong
    records, and when no file matches.
    """
    names = source.names(files)
    if not names:
        raise EvaluationError(f"{source.root}: no file matches {files!r}")
    return [_pair(record, PurePosixPath(name).stem) for name in names for record in read_json_lines(source, name)]


def _pair(record: Record, stem: str) -> MinimalPair:
    paradigm = record.text("UID") if "UID" in record.values else stem
    term = record.text("linguistics_term") if "linguistics_term" in record.values else paradigm
    return MinimalPair(
        paradigm=paradigm,
        phenomenon=PHENOMENON_OF_TERM.get(term, term),
        pair_id=_pair_id(record),
        sentence_good=record.text("sentence_good"),
        sentence_bad=record.text("sentence_bad"),
    )


def _pair_id(record: Record) -> str:
    # The release spells it pairID (text), the hub copy pair_id (integer); others have none.
    value: Any = record.values.get("pairID", record.values.get("pair_id", record.line))
    if not isinstance(value, str | int):
        raise EvaluationError(f"{record.where}: the pair's id must be a text or an integer, got {shorten(value)}")
    return str(value)


def choose_pairs(pairs: Sequence[MinimalPair], pairs_per_paradigm: int | None, seed: int) -> list[MinimalPair]:
    """At most `pairs_per_paradigm` pairs of every paradigm, drawn with `seed`, in their original order.

    A smaller subset lies inside a larger one, and a paradigm's subset does not depend on the other paradigms. None
    keeps all pairs. Raises ConfigError when `pairs_per_paradigm` is below 1.
    """
    if pairs_per_paradigm is None:
        return list(pairs)
    if pairs_per_paradigm < 1:
        raise ConfigError(f"pairs_per_paradigm must be at least 1 or null, got {pairs_per_paradigm}")
    kept: list[int] = []
    for paradigm, positions in positions_by(pair.paradigm for pair in pairs).items():
        order = generator(seed, "minimal pairs", paradigm).permutation(len(positions))
        kept.extend(positions[index] for index in order[:pairs_per_paradigm])
    return [pairs[index] for index in sorted(kept)]


def positions_by(names: Iterable[str]) -> dict[str, list[int]]:
    """Positions of every name in a sequence of names; names in order of first appearance."""
    positions: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        positions.setdefault(name, []).append(index)
    return positions
