"""What a kind of evaluation is: a record on its stage, from which planning, collecting and the summaries follow.

A kind has the name of its stage's result folder (`StoredByDigest.folder`). The record holds: the names that an
experiment evaluates a model on, the conversion of a manifest to rows of the tidy tables, and the title of its section
in a summary. Planning, collecting and showing iterate over the records (`evaluations`); there is no list of kinds.

A row is built here without the columns that say which run it is of: whoever collects knows them.
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
"""What a kind gives as names where a model has one result of it, whatever it is asked."""


def measured(suite: str, task: str, level: Level, metric: str, value: float | None, **more: Any) -> TidyRow:
    """A row of the tidy table of measurements; `more` are other columns.

    `value` is in the unit of `metric`, None where the run gave no number (it diverged, say). `failed` is empty, or why
    there is none, or in which way training collapsed: then the value is that of a constant answer. `settings` tell
    people how the number was made where another way gives another one, `basis` what it shares with numbers that it
    compares with (`evaluation.basis`).
    """
    return {**_OF_MOST, "suite": suite, "task": task, "level": level, "metric": metric, "value": value, **more}


@dataclass(frozen=True)
class Evaluated:
    """One finished evaluation: its manifest, that of the model, and its name, which is that of a suite or task.

    `unigram_loss` gives, of a split, the nats per token of a guess by the frequencies of tokens alone, if known;
    `tokens_per_byte` the number of its tokens that a model can be asked for per byte that these tokens represent, and
    `n_bytes` the number of bytes of its sentences as a tokenizer of others encodes them. `text` names the documents of
    a split that it read.
    """

    manifest: Manifest
    model: Manifest
    name: str = ""
    unigram_loss: Callable[[str], float | None] = lambda split: None
    tokens_per_byte: Callable[[str], float | None] = lambda split: None
    n_bytes: Callable[[str], int | None] = lambda split: None
    text: Callable[[str], str] = lambda split: ""
    scores: "Scores | None" = None
    """Scores of an evaluation in memory; None: its files are read."""

    def records(self, name: str, schema: type[Read], key: Sequence[str] = (), may_be_empty: bool = False) -> list[Read]:
        """Return the rows of the table `name`, of which no two agree in all of `key`. Raises like `read_records`."""
        if self.scores is None:
            return read_records(self.manifest.file(name), schema, key, may_be_empty)
        return [record(schema, row, name) for row in self.scores.frame(name).iter_rows(named=True)]

    def has(self, name: str) -> bool:
        """Return whether there is a table `name`."""
        return bool(self.manifest.listed(name)) if self.scores is None else name in self.scores.tables


MostRows = Callable[[str], int | None]
"""The number of rows of a file that a check reads; None for all rows."""


class ReadData(NamedTuple):
    """Data that an experiment asks a kind to read.

    `where` is the file and key of the configuration that ask, for messages. `source` is the name of a raw input, ABSENT
    for generated data. `settings` say how the data is read.
    """

    where: str
    source: str
    settings: Settings


@dataclass(frozen=True, kw_only=True)
class DataCheck:
    """The data of a kind, and the check of the data before the first training.

    `reads` takes the project and the name of an experiment, and yields the data that the experiment asks the kind to
    read. `check` reads the source as evaluations will read
    it, under settings of the class `settings`. It returns notes on surprising properties of the data, and raises
    HatcheryError naming file and place of a mistake. The check runs twice: during planning, on the first rows of files
    on this machine, and on all rows when the raw input is registered.
    """

    settings: type[Settings]
    reads: Callable[..., Iterable[ReadData]]
    check: Callable[["RawSource", Any, MostRows], Iterable[str]]


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """A kind of evaluation; a field of the record of its stage.

    `place` orders kinds, in the tables and in summaries. `asked` gives the names that an experiment asks of one of its
    models (`ONCE` for a kind without names), a run of the experiment or a model that others pretrained. `rows` are the
    rows of `measurements.parquet`, `layers` those of `layers.parquet`, and `together` sees all rows of the kind in an
    experiment. A summary has a section for each suite of the kind, with `title` and `note`. `data` describes data that
    the kind reads of the user's, if it does.
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
    """The function, as `module:name`, that answers a `direct.request.Request`; imported when it is asked for."""
    of_checkpoints: bool = False
    """Whether the model of the request is a `direct.checkpoints.Checkpoints`."""


class Result(NamedTuple):
    """What an evaluation is of: its kind, the run or baseline, and its name, empty where the kind has none."""

    kind: str
    run: str
    name: str

    @property
    def key(self) -> str:
        """How the inputs of a job call it; `of_key` reads it back."""
        return ":".join(self)

    @classmethod
    def of_key(cls, key: str) -> "Result":
        """What an input of a job is of."""
        return cls(*key.split(":"))

    @property
    def name_within_kind(self) -> str:
        """`RUN` or `RUN:NAME`, unique within one kind."""
        return ":".join(filter(None, self[1:]))
