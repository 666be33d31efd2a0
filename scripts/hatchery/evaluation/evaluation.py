"""The record of one kind of evaluation (minimal pairs, perplexity, fine-tuning, ...): the class `Evaluation`.

The name of a kind is the name of the folder with its results (`StoredByDigest.folder`). Its record contains the names
of the suites or tasks on which an experiment evaluates a model, the conversion of a manifest to rows of
`measurements.parquet`, and the title of its section in a summary. Planning, collecting and summaries read all records
from `kinds.evaluations`; there is no other list of kinds.

Rows that a record returns lack the columns that identify the run; the stage that collects results adds these columns.
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
"""A row of `measurements.parquet` or `layers.parquet`, or some of its columns."""

_OF_MOST: TidyRow = {"failed": "", "primary": True, "main": True, "origin": "", "settings": "", "basis": ""}

ONCE = ("",)
"""Value of `asked` for a kind of evaluation with a single result per model: one empty name."""


def measured(suite: str, task: str, level: Level, metric: str, value: float | None, **more: Any) -> TidyRow:
    """Return a row of `measurements.parquet`; `more` holds values of further columns.

    `value` is in the unit of `metric`. It is None if the run has no value, for example because the run diverged; the
    column `failed` then names the reason. If a model collapsed, that is, predicts one answer for all rows, `failed`
    names the collapse, but `value` is still stored. The column `settings` describes in words the settings on which
    `value` depends. The column `basis` is the comparison basis (`evaluation.basis`).
    """
    return {**_OF_MOST, "suite": suite, "task": task, "level": level, "metric": metric, "value": value, **more}


@dataclass(frozen=True)
class Evaluated:
    """A finished evaluation: its manifest, its model's manifest, and the name of its suite or task.

    Four fields are functions that return a fact about a split; if the fact is unknown, they return None or an empty
    text. `unigram_loss` returns the loss of a unigram baseline in nats per token. `tokens_per_byte` returns the number
    of predicted tokens, divided by the number of bytes of their text. `n_bytes` returns the number of UTF-8 bytes of
    the split's text; it is known only for an external model. `text` returns an identifier of the documents that the
    evaluation read from the split.
    """

    manifest: Manifest
    model: Manifest
    name: str = ""
    unigram_loss: Callable[[str], float | None] = lambda split: None
    tokens_per_byte: Callable[[str], float | None] = lambda split: None
    n_bytes: Callable[[str], int | None] = lambda split: None
    text: Callable[[str], str] = lambda split: ""
    scores: "Scores | None" = None
    """Scores of a direct evaluation (`hatchery.evaluate`) in memory; None if the scores are read from the manifest's
    files.
    """

    def records(self, name: str, schema: type[Read], key: Sequence[str] = (), may_be_empty: bool = False) -> list[Read]:
        """Return the rows of the evaluation's table `name`, as objects of the class `schema`. The values in the columns
        `key` identify a row. Raises the errors of `read_records`.
        """
        if self.scores is None:
            return read_records(self.manifest.file(name), schema, key, may_be_empty)
        return [record(schema, row, name) for row in self.scores.frame(name).iter_rows(named=True)]

    def has(self, name: str) -> bool:
        """Return True if the evaluation has a table called `name`."""
        return bool(self.manifest.listed(name)) if self.scores is None else name in self.scores.tables


MostRows = Callable[[str], int | None]
"""Function that maps a file name to the number of rows that a check reads from this file; None means all rows."""


class ReadData(NamedTuple):
    """Data that an experiment passes to one kind of evaluation.

    `where` is the configuration's file and key that name the data, for messages. `source` is the name of a raw input;
    ABSENT means generated data. `settings` define how the data is read.
    """

    where: str
    source: str
    settings: Settings


@dataclass(frozen=True, kw_only=True)
class DataCheck:
    """The user's data for one kind of evaluation, and a check of this data before the first training.

    `reads` takes the project and the name of an experiment, and yields the data that the experiment evaluates. `check`
    reads a source as evaluations will read it, under settings of the class `settings`. It returns notes on surprising
    properties of the data, and raises HatcheryError naming the file and line of a mistake.

    The check runs twice: during planning on the first rows of local files, and during the registration of the raw input
    on all rows.
    """

    settings: type[Settings]
    reads: Callable[..., Iterable[ReadData]]
    check: Callable[["RawSource", Any, MostRows], Iterable[str]]


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """One kind of evaluation. The record of the kind's stage contains this object.

    `place` is the rank of the kind in tables and summaries. `asked` returns the names of the suites or tasks on which
    an experiment evaluates one of its models, trained or imported (`ONCE` for a kind without names). `rows` and
    `layers` convert a finished evaluation to rows of `measurements.parquet` and of `layers.parquet`. `together`
    receives all rows that `rows` returned for the evaluations of an experiment, and returns the rows to write, for
    example with unique task names. A summary has a section for each suite of the kind, with `title` and `note`. `data`
    describes the user's data for the kind, if any.
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
    """Function, as `module:name`, that evaluates a `direct.request.Request`; imported on first use."""
    of_checkpoints: bool = False
    """True if the evaluation needs all checkpoints of a run (`direct.checkpoints.Checkpoints`) instead of one model."""


class Result(NamedTuple):
    """Identity of a result: kind of evaluation, run or imported model, and name of the suite or task (empty for a kind
    without names)."""

    kind: str
    run: str
    name: str

    @property
    def key(self) -> str:
        """The result as a text `KIND:RUN:NAME`, which names the result among the inputs of a job; `of_key` parses this
        text.
        """
        return ":".join(self)

    @classmethod
    def of_key(cls, key: str) -> "Result":
        """Parse `key`, a text `KIND:RUN:NAME`."""
        return cls(*key.split(":"))

    @property
    def name_within_kind(self) -> str:
        """The run, or `RUN:NAME` if the result has a name; unique within one kind of evaluation."""
        return ":".join(filter(None, self[1:]))
