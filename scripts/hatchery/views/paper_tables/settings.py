"""Settings of the tables of a paper, and which of our models stand in which of its rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hatchery.analysis.published_values import PublishedNumber
from hatchery.analysis.settings import DRAWS, PublishedChoice, baseline_runs, labels_of, models_in_order
from hatchery.errors import ConfigError
from hatchery.experiment.seeded_run import SeededRun
from hatchery.settings.base import Settings
from hatchery.views.paper_tables.layout import BlockLayout

MODELS_SHOWN = 24
"""Models of ours in a table of a paper: more of them nobody reads, and an order compares every pair."""


@dataclass(frozen=True)
class OrderSettings(Settings):
    """How almost stochastic order is taken: confidence of the whole matrix, bootstrap draws and their seed."""

    confidence: float = 0.95
    draws: int = DRAWS
    seed: int = 42


@dataclass(frozen=True)
class PaperTablesSettings(Settings):
    """Which tables of which paper an experiment repeats.

    `prefix` is what the experiment's suites and tasks are called before the paper's names (`demo_` in a
    miniature), `suites` are those that are called otherwise, and `corpora` says whose place a corpus of ours has among
    the sizes. With `caveat`, no number of ours is comparable with a printed one, for that reason.
    """

    experiment: str
    runs: tuple[SeededRun, ...]
    published: PublishedChoice
    tasks: tuple[str, ...] = ()
    baselines: tuple[str, ...] = ()
    prefix: str = ""
    suites: dict[str, str] = field(default_factory=dict)
    corpora: dict[str, str] = field(default_factory=dict)
    caveat: str = ""
    order: OrderSettings = field(default_factory=OrderSettings)

    @property
    def models(self) -> list[str]:
        """Our models in the order of the configuration, baselines last."""
        return models_in_order((*self.runs, *baseline_runs(self.baselines, self.runs)))

    @property
    def shown(self) -> list[str]:
        """The models in the tables: those that repeat a published row, then the others, at most MODELS_SHOWN in all."""
        models, rows = self.models, self.published.rows
        chosen = set(sorted(models, key=lambda model: model not in rows)[:MODELS_SHOWN])
        return [model for model in models if model in chosen]

    def papers_suite(self, suite: str) -> str:
        """What the paper's tables call our suite."""
        return self.suites.get(suite, suite.removeprefix(self.prefix))

    def papers_task(self, task: str) -> str:
        """What the paper's tables call our task."""
        return task.removeprefix(self.prefix)


@dataclass(frozen=True)
class Entry:
    """A row of a paper with the models of ours that repeat it; `row` is empty for models that repeat none."""

    heading: str
    row: str
    models: tuple[str, ...]


@dataclass(frozen=True)
class EntryBlock:
    """The entries of a block, with its track."""

    heading: str
    track: str
    entries: tuple[Entry, ...]


def check_rows(settings: PaperTablesSettings, numbers: Iterable[PublishedNumber]) -> None:
    """Raise ConfigError for a model, a track or a published row that there is not."""
    choice = settings.published
    numbers = list(numbers)
    tracks = {number.track for number in numbers if number.track}
    if choice.track and choice.track not in tracks:
        raise ConfigError(f"published.track: {choice.track!r} is none of: {', '.join(sorted(tracks)) or 'no track'}")
    rows = {number.row for number in numbers if number.track in ("", choice.track)}
    models = settings.models
    for model, row in choice.rows.items():
        if model not in models:
            raise ConfigError(f"published.rows: {model!r} is none of the models {', '.join(models)}")
        if row not in rows:
            raise ConfigError(f"published.rows.{model}: {row!r} is none of: {', '.join(sorted(rows))}")


def entry_blocks(
    blocks: Sequence[BlockLayout], settings: PaperTablesSettings, present: Iterable[str]
) -> list[EntryBlock]:
    """The rows of a table with our models in them; `present` are the models that have a number in the table.

    Ours stand only in blocks of the experiment's track. Models that repeat no published row at all come last in the
    last of those, under their own names; what repeats a row of other tables is left to those.
    """
    choice = settings.published
    present = set(present)
    models = [model for model in settings.shown if model in present]
    ours = [index for index, block in enumerate(blocks) if block.track in ("", choice.track)]
    found = []
    for index, block in enumerate(blocks):
        entries = []
        for row in block.rows:
            wanted = row.answered_by or row.row
            repeated = [model for model in models if index in ours and choice.rows.get(model) == wanted]
            entries.append(Entry(row.heading, row.row if row.printed else "", tuple(repeated)))
        if ours and index == ours[-1]:
            labels = labels_of(settings.runs)
            entries += [Entry(labels.get(model, model), "", (model,)) for model in models if model not in choice.rows]
        kept = tuple(entry for entry in entries if entry.row or entry.models)
        found.append(EntryBlock(block.heading, block.track, kept))
    return [block for block in found if block.entries]
