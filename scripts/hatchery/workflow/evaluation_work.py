"""How much there is to evaluate: pairs and training rows, counted in files that lie on this machine; and what it costs.

The configuration does not know how many pairs a suite has. Whoever plans reads the files: small ones whole, of larger
ones the beginning, and takes the rest to be like it. What is not here yet, or cannot be counted without the jobs before
it (an archive that is not unpacked, rows that a vocabulary filters), has no cost, and whoever shows costs says so.
"""

import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any

from hatchery.errors import HatcheryError
from hatchery.evaluation.minimal_pairs.pairs import choose_pairs, pair_files, read_pairs
from hatchery.evaluation.settings import ScoringSettings
from hatchery.evaluation.tasks.formats import FORMATS, task_files
from hatchery.evaluation.tasks.settings import TaskSettings
from hatchery.evaluation.tasks.task_rows import used_fields
from hatchery.experiment.cluster import PlanSettings, precision_and_peak
from hatchery.experiment.raw_inputs import source_of, usable_path
from hatchery.modeling.flops import BACKWARD_FACTOR, FlopsPerSequence
from hatchery.raw.listings import REGISTERED
from hatchery.raw.registration import RawSource, open_source, unregistered
from hatchery.settings.fields import ABSENT
from hatchery.typed import build

if TYPE_CHECKING:
    from hatchery.experiment.project import Project

EVALUATION_PACE = 0.25
"""Pace of evaluation, as a share of that of pretraining: its batches are short and small, and it computes in fp32."""

HEAD_BYTES = 64 << 10
"""So much of a file is read."""
MOST_FILES = 2_000
"""A folder with more files is not counted: reading them would take longer than planning."""


@dataclass(frozen=True)
class PairWork:
    """The pairs of a suite, of which so many words stand in both sentences together."""

    pairs: int
    words: int

    def flops(self, per_sequence: FlopsPerSequence) -> float:
        """One forward pass for each word of every sentence; a word counts as one subword."""
        if not self.pairs:
            return 0.0
        length = max(1, round(self.words / (2 * self.pairs)))
        return self.words * per_sequence(length + 2, 1 / (length + 2)) / (1 + BACKWARD_FACTOR)


@dataclass(frozen=True)
class TuningWork:
    """Training examples of a task, with its protocol; `runs` are all seeds with all learning rates."""

    examples: int
    runs: int
    epochs: int
    max_length: int
    development_fraction: float

    def flops(self, per_sequence: FlopsPerSequence) -> float:
        """All runs and epochs, with inputs as long as they may be, and a forward pass over what is held out of them."""
        # No position meets the vocabulary, and the classifier's own product is too small to count.
        share = (1 - self.development_fraction) + self.development_fraction / (1 + BACKWARD_FACTOR)
        return self.runs * self.epochs * self.examples * share * per_sequence(self.max_length, 0.0)


def evaluation_seconds(flops: float, plan: PlanSettings) -> float:
    """How long it takes on one device."""
    _, peak = precision_and_peak("fp32", replace(plan, devices=1))
    return flops / (peak * plan.mfu * EVALUATION_PACE)


def pair_work(project: "Project", suite: str) -> PairWork | None:
    """What scoring a suite takes; None where its files cannot be counted here."""
    file = project.suite(suite)
    source = _source(project, source_of(file))
    return None if source is None else _counted(_pairs, source, build(ScoringSettings, file.scored(suite)))


def tuning_work(project: "Project", experiment: str, task: str) -> TuningWork | None:
    """What fine-tuning on a task takes; None where its training rows cannot be counted here."""
    file, protocol = project.task(task), project.protocol_of(experiment, task)
    limit = None if file.embedded is ABSENT else project.config.embedded.training_rows(str(file.files.get("train")))
    if (rows := file.train_limit or limit) is None:
        source = _source(project, source_of(file))
        rows = None if source is None else _counted(_rows, source, file.settings(task))
    if rows is None:
        return None
    chosen = {key: getattr(protocol, key) for key in ("epochs", "max_length", "development_fraction")}
    return TuningWork(rows, len(protocol.seeds) * len(protocol.learning_rates), **chosen)


class _Beginnings(RawSource):
    """A raw input of whose large text files only the first lines are read."""

    def open(self, name: str) -> IO[bytes]:
        """The first whole lines of a member of text. Raises SourceError when it cannot be read."""
        handle = super().open(name)
        if self.size(name) <= HEAD_BYTES or name.endswith(".parquet"):
            return handle
        with handle:
            data = handle.read(HEAD_BYTES)
        return io.BytesIO(data[: data.rfind(b"\n") + 1])

    def scale(self, name: str) -> float:
        """How much more there is in a member than what is read of it."""
        with self.open(name) as handle:
            read = handle.seek(0, io.SEEK_END)
        return self.size(name) / read if read else 0.0


def _source(project: "Project", name: str) -> _Beginnings | None:
    manifest = Path(REGISTERED) / f"{name}.json"
    path = None if name.startswith("embedded_") else usable_path(project, name)
    return _opened(manifest if manifest.is_file() else None, path)


@cache
def _opened(manifest: Path | None, path: str | None) -> _Beginnings | None:
    try:
        found = None if path is None else unregistered(Path(path), MOST_FILES)
        if manifest is not None:
            found = open_source(manifest)
    except (HatcheryError, OSError):
        return None
    if found is None or found.root.suffix == ".zip" or len(found.files) > MOST_FILES:
        return None
    return _Beginnings(found.manifest, found.name, found.kind, found.root, found.files)


def _counted(count: Callable[[_Beginnings, Any], Any], source: _Beginnings, settings: Any) -> Any:
    """What is counted, once; None where files are missing or wrong, which is told elsewhere."""
    key = (count.__name__, source.root, repr(settings))
    if key not in _KNOWN:
        try:
            _KNOWN[key] = count(source, settings)
        except (HatcheryError, OSError):
            _KNOWN[key] = None
    return _KNOWN[key]


_KNOWN: dict[tuple[str, Path, str], Any] = {}


def _pairs(source: _Beginnings, suite: ScoringSettings) -> PairWork:
    pairs = words = 0.0
    for name in pair_files(source, suite):
        found = choose_pairs(list(read_pairs(source, suite, name)), suite.pairs_per_paradigm, suite.seed)
        scale = 1.0 if suite.pairs_per_paradigm else source.scale(name)
        pairs += scale * len(found)
        words += scale * sum(len(one.text.split()) for item in found for one in item.candidates)
    return PairWork(round(pairs), round(words))


def _rows(source: _Beginnings, task: TaskSettings) -> int | None:
    if task.format != "rows" or task.vocabulary is not None or "train" not in task.files:
        return None
    return round(sum(_rows_of(source, task, name) for name in task_files(source, task, "train")))


def _rows_of(source: _Beginnings, task: TaskSettings, name: str) -> float:
    if PurePosixPath(name).suffix.lower() == ".parquet":
        import pyarrow.parquet as pq

        return float(pq.read_metadata(source.path(name)).num_rows)
    records = list(FORMATS["rows"].read(source, task, "train", name, used_fields(task)))
    return source.scale(name) * len(records)
