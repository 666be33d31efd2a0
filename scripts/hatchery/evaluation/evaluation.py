"""The record of a kind of evaluation, from which planning, collecting and summaries are derived.

A kind is named after its stage's result folder (`StoredByDigest.folder`). The record holds: the names that an
experiment evaluates a model on, the conversion of a manifest to rows of the tidy tables, and the title of its section
in a summary. Planning, collecting and the summaries iterate over the records (`evaluations`); there is no list of
kinds.

Rows are built here without the columns that identify the run; collecting adds these.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from hatchery.artifacts.manifests import Manifest
from hatchery.artifacts.records import Record, read_records, record
from hatchery.settings.base import Settings

if TYPE_CHECKING:
    from hatchery.evaluation.scores import Scores
    from hatchery.raw.registration import RawSource

Read = TypeVar("Read", bound=Record)
Level = Literal["split", "bin", "paradigm", "phenomenon", "suite", "average", "task", "word"]
TidyRow = dict[str, Any]
"""A row of a tidy table, or some of its columns."""

_OF_MOST: TidyRow = {"failed": "", "primary": True, "main": True, "origin": "", "settings": "", "basis": ""}

ONCE = ("",)
"""Result names of an evaluation kind with a single result per model, whose name is empty."""


def measured(suite: str, task: str, level: Level, metric: str, value: float | None, **more: Any) -> TidyRow:
    """Return a row of the tidy table of measurements; `more` holds further columns.

    `value` is in the unit of `metric`, or None if the run gave no number (for example, because it diverged). `failed`
    is empty, or the reason for a missing value, or the kind of collapse of a model whose answers do not vary (its value
    is kept). `settings` describe in words how the number was computed, if other settings give other numbers. `basis`
    holds the aspects that comparable numbers share (`evaluation.basis`).
    """
    return {**_OF_MOST, "suite": suite, "task": task, "level": level, "metric": metric, "value": value, **more}


@dataclass(frozen=True)
class Evaluated:
    """A finished evaluation: its manifest, its model's manifest, and the name of its suite or task.

    `unigram_loss` is the loss of a unigram baseline on a split in nats per token, if known. `tokens_per_byte` is the
    number of predictable tokens of a split per byte of the text that they represent, and `n_bytes` the number of bytes
    of its sentences as a tokenizer of others encodes them. `text` names the documents of a split that were read.
    """

    manifest: Manifest
    model: Manifest
    name: str = ""
    unigram_loss: Callable[[str], float | None] = lambda split: None
    tokens_per_byte: Callable[[str], float | None] = lambda split: None
    n_bytes: Callable[[str], int | None] = lambda split: None
    text: Callable[[str], str] = lambda split: ""
    scores: "Scores | None" = None
    """Scores of an evaluation in memory; None if they are read from files."""

    def records(self, name: str, schema: type[Read], key: Sequence[str] = (), may_be_empty: bool = False) -> list[Read]:
        """Return the rows of the table `name`; the columns `key` identify a row. Raises like `read_records`."""
        if self.scores is None:
            return read_records(self.manifest.file(name), schema, key, may_be_empty)
        return [record(schema, row, name) for row in self.scores.frame(name).iter_rows(named=True)]

    def has(self, name: str) -> bool:
        """Return whether the table `name` exists."""
        return bool(self.manifest.listed(name)) if self.scores is None else name in self.scores.tables


MostRows = Callable[[str], int | None]
"""Function from the name of a file to the number of its rows that a check reads; None for all rows."""


class ReadData(NamedTuple):
    """Data that an experiment passes to a kind of evaluation.

    `where` is the file and key of the configuration that name the data, for messages. `source` is the name of a raw
    input, ABSENT for generated data. `settings` define how the data is read.
    """

    where: str
    source: str
    settings: Settings


@dataclass(frozen=True, kw_only=True)
class DataCheck:
    """The data of a kind, and the check of the data before the first training.

    `reads` takes the project and the name of an experiment, and yields the data that this kind reads in the experiment.
    `check` reads the source as evaluations will read it, under settings of the class `settings`. It returns notes on
    surprising properties of the data, and raises HatcheryError naming the file and line of a mistake. The check runs
    twice: during planning, on the first rows of files on this machine, and on all rows when the raw input is
    registered.
    """

    settings: type[Settings]
    reads: Callable[..., Iterable[ReadData]]
    check: Callable[["RawSource", Any, MostRows], Iterable[str]]


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """A kind of evaluation; a field of the record of its stage.

    `place` orders kinds in the tables and in summaries. `asked` returns the names of the evaluations that an experiment
    needs for one of its models, trained or imported (`ONCE` for a kind without names). `rows` returns the rows of
    `measurements.parquet`, `layers` those of `layers.parquet`, and `together` post-processes all rows of the kind in an
    experiment. A summary has a section for each suite of the kind, with `title` and `note`. `data` describes the user's
    data that the kind reads, if any.
    """

    place: int
    title: str
    note: str = ""
    asked: Callable[..., Iterable[str]]
    rows: Callable[[Evaluated], Iterable[TidyRow]]
    layers: Callable[[Evaluated], Iterable[TidyRow]] = lambda evaluated: ()
    together: Callable[[list[TidyRow]], list[TidyRow]] = lambda rows: rows
    data: DataCheck | None = None
    direct: str = ""
    """Function, as `module:name`, that answers a `direct.request.Request`; imported on first use."""
    of_checkpoints: bool = False
    """True if the model of the request is a `direct.checkpoints.Checkpoints`."""


class Result(NamedTuple):
    """Identity of a result: its kind, the run or baseline, and its name, empty for a kind without names."""

    kind: str
    run: str
    name: str

    @property
    def key(self) -> str:
        """Key of the result among the inputs of a job; `of_key` parses it."""
        return ":".join(self)

    @classmethod
    def of_key(cls, key: str) -> "Result":
        """Return the result with a given key."""
        return cls(*key.split(":"))

    @property
    def name_within_kind(self) -> str:
        """`RUN` or `RUN:NAME`, unique within one kind."""
        return ":".join(filter(None, self[1:]))
