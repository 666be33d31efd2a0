"""Learning curves that authors published, with the sizes of their models, for comparison in scaling studies.

The file `config/published/curves/<paper>.csv` contains the losses, and the file `<paper>_runs.csv` next to it contains
the sizes of the models. Numbers of parameters and FLOPs are computed; tests compare them with numbers that the authors
logged.

So far there are 42 runs of January 2023, from the history of the repository of "Honey, I Shrunk the Language". Their
losses include padding (docs/papers/reduced-vocabulary.md, "Logged runs" and "Padding").
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hatchery.artifacts.records import Record, read_records
from hatchery.errors import EvaluationError
from hatchery.modeling.flops import (
    STUDY_BATCH_SIZE,
    STUDY_SEQUENCE_LENGTH,
    STUDY_VOCABULARY_ROWS,
    StudyFormula,
    reduced_vocabulary_flops,
)
from hatchery.modeling.roberta.config import RobertaConfig
from hatchery.modeling.roberta.encoder import roberta_parameters

DEFAULT_RATE = 5e-4
"""Peak learning rate of the published runs, except for the larger models and for trials with a lower rate."""
TIED = "tied,no projection"

Shape = tuple[int, int, int, int, int]
"""Nominal sizes of a model: embedding size E, hidden size H, intermediate size I, layers L, attention heads A."""
_ROW = re.compile(r"rv_(\d+)_(\d+)_(\d+)_(\d+)_(\d+)(_\w+)?")


def shape_of(row: str) -> Shape:
    """Return (embedding size, hidden size, intermediate size, number of layers, number of attention heads) of a model,
    given its name in the tables of published values, such as `rv_256_64_1024_8_8`. Raises EvaluationError if the name
    contains no sizes.
    """
    found = _ROW.fullmatch(row)
    if found is None:
        raise EvaluationError(
            f"published row {row!r}: expected a name with the sizes of the model, such as 'rv_256_64_1024_8_8'"
        )
    embedding, hidden, inner, layers, heads = (int(size) for size in found.groups()[:5])
    return embedding, hidden, inner, layers, heads


def shape_row(shape: Sequence[int]) -> str:
    """Return the name of a model in the tables of published values, such as `rv_256_64_1024_8_8`, given its sizes."""
    return "_".join(["rv", *map(str, shape)])


def shape_text(shape: Sequence[int]) -> str:
    """Return the sizes of a model in the notation of "Honey, I Shrunk the Language": `(256, 64, 1024, 8, 8)`."""
    return f"({', '.join(map(str, shape))})"


@dataclass(frozen=True)
class _RunRow(Record):
    run: str
    group: str
    E: int
    H: int
    I: int  # noqa: E741
    L: int
    A: int
    family: Literal["tied,no projection", "untied+projection"]
    peak_lr: float


@dataclass(frozen=True)
class _LossRow(Record):
    run: str
    updates: int
    dev_loss: float


@dataclass(frozen=True)
class PublishedRun:
    """A training run whose learning curve a paper published. `curve` contains pairs (number of updates, development
    loss in nats).
    """

    name: str
    group: str
    sizes: Shape
    tied: bool
    peak_learning_rate: float
    curve: tuple[tuple[int, float], ...]

    @property
    def row(self) -> str:
        """Name of the run in `config/published/values`."""
        return self.name.replace("-", "_")

    @property
    def parameters(self) -> int:
        """Number of all parameters, including both vocabulary matrices of an untied model."""
        embedding, hidden, inner, layers, _ = self.sizes
        config = RobertaConfig(
            vocab_size=STUDY_VOCABULARY_ROWS,
            embedding_size=None if self.tied else embedding,
            hidden_size=hidden,
            intermediate_size=inner,
            num_hidden_layers=layers,
            num_attention_heads=1,
            tie_word_embeddings=self.tied,
        )
        return roberta_parameters(config)

    def flops_per_sequence(self, formula: StudyFormula = "code") -> float:
        """Return the FLOPs of the forward and backward passes of one training sequence, by a formula of the study
        "Honey, I Shrunk the Language".
        """
        return reduced_vocabulary_flops(*self.sizes, formula=formula)

    @staticmethod
    def tokens(updates: int) -> int:
        """Return the number of tokens after `updates` updates. As in the study "Honey, I Shrunk the Language", this
        number includes padding.
        """
        return updates * STUDY_BATCH_SIZE * STUDY_SEQUENCE_LENGTH


def read_published_curves(path: str | Path) -> list[PublishedRun]:
    """Read the runs of a paper from its table of losses, `path`, and from the table `<paper>_runs.csv` next to it. The
    runs are in the order of `<paper>_runs.csv`.

    Raises EvaluationError, naming file and line, for a malformed table, a run without losses, or losses without a run.
    """
    path = Path(path)
    curves: dict[str, list[tuple[int, float]]] = {}
    for loss in read_records(path, _LossRow, ("run", "updates")):
        curves.setdefault(loss.run, []).append((loss.updates, loss.dev_loss))
    models = path.with_name(f"{path.stem}_runs.csv")
    rows = read_records(models, _RunRow, ("run",))
    if differing := sorted(set(curves) ^ {row.run for row in rows}):
        raise EvaluationError(
            f"{models}: the run {differing[0]} is only in this table or only in {path.name}, expected each run in "
            "both tables"
        )
    found = []
    for row in rows:
        sizes = (row.E, row.H, row.I, row.L, row.A)
        curve = tuple(sorted(curves[row.run]))
        found.append(PublishedRun(row.run, row.group, sizes, row.family == TIED, row.peak_lr, curve))
    return found
