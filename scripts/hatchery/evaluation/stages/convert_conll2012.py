"""`convert_conll2012`, which people call: CoNLL-2012 (OntoNotes 5) as jiant records for four edge-probing tasks."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hatchery.artifacts.manifests import StageRun
from hatchery.settings.base import Settings

TaskName = Literal["pos", "ner", "srl", "coref"]


@dataclass(frozen=True)
class Conll2012Settings(Settings):
    """Which files make which split, and which tasks are written."""

    # {"train": "train/*.gold_conll", …}: one pattern or several per split, for column files or Parquet.
    splits: dict[str, str | tuple[str, ...]]
    tasks: tuple[TaskName, ...] = ("pos", "ner", "srl", "coref")


def convert_conll2012(settings: Conll2012Settings, source: Path, run: StageRun) -> None:
    """Write `FOLDER/SPLIT.json` (JSON lines) beside the manifest of `run`, and count records and targets.

    Raises ConfigError for no split or no task, EvaluationError naming the place for broken data and for a pattern that
    matches no file.
    """
    from hatchery.evaluation.probing.conll2012_records import convert

    convert(settings, source, run)
