"""Settings and inputs of the tables of a paper."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hatchery.analysis.settings import DRAWS, PublishedChoice, baseline_runs, models_in_order
from hatchery.experiment.seeded_run import SeededRun
from hatchery.settings.base import Settings

MODELS_SHOWN = 24
"""Maximum number of our models in a paper's table: more are hard to read, and an order compares every pair."""


@dataclass(frozen=True)
class OrderSettings(Settings):
    """Settings of almost stochastic order: confidence of the whole matrix, bootstrap draws and their seed."""

    confidence: float = 0.95
    draws: int = DRAWS
    seed: int = 42


@dataclass(frozen=True)
class PaperTablesSettings(Settings):
    """The repeated tables of a paper.

    `prefix` is the prefix of the experiment's suites and tasks before the paper's names (`demo_` in a miniature),
    `suites` are those with other names, and `corpora` maps our corpora to those of the paper's sizes. With `caveat`,
    no number of ours is comparable with a printed one, for that reason.
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
    hyperparameters: dict[str, dict[str, float]] = field(default_factory=dict)
    """Hyperparameters in the tables, by run and path."""

    @property
    def models(self) -> list[str]:
        """Return our models in the order of the configuration, baselines last."""
        return models_in_order((*self.runs, *baseline_runs(self.baselines, self.runs)))

    @property
    def shown(self) -> list[str]:
        """Return the models in the tables: those that repeat a published row, then the others, at most MODELS_SHOWN
        in all.
        """
        models, rows = self.models, self.published.rows
        chosen = set(sorted(models, key=lambda model: model not in rows)[:MODELS_SHOWN])
        return [model for model in models if model in chosen]

    def papers_suite(self, suite: str) -> str:
        """Return the name of our suite in the paper's tables."""
        return self.suites.get(suite, suite.removeprefix(self.prefix))

    def papers_task(self, task: str) -> str:
        """Return the name of our task in the paper's tables."""
        return task.removeprefix(self.prefix)


@dataclass(frozen=True)
class TableInputs:
    """Files with the numbers of the tables.

    `measurements` (orders) and `layers` (shares of layers) are the experiment's tidy tables, `sizes` the published
    sizes of corpora, `cards` the statistics of ours by corpus, `tasks` one model's fine-tuning manifests by task.
    """

    summary: Path
    published: Path
    layout: Path
    measurements: Path
    layers: Path
    sizes: Path
    cards: Mapping[str, Path] = field(default_factory=dict)
    tasks: Mapping[str, Path] = field(default_factory=dict)
