"""Settings and inputs of the tables of a paper."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hatchery.analysis.settings import DRAWS, PublishedChoice, baseline_runs, models_in_order
from hatchery.experiment.seeded_run import SeededRun
from hatchery.settings.base import Settings

MODELS_SHOWN = 24
"""Maximum number of our models in a paper's table: larger tables are hard to read, and an order compares all pairs of
models.
"""


@dataclass(frozen=True)
class OrderSettings(Settings):
    """Settings of almost stochastic order: the confidence with which all comparisons of a table hold jointly, the
    number of bootstrap draws, and the seed of the draws.
    """

    confidence: float = 0.95
    draws: int = DRAWS
    seed: int = 42


@dataclass(frozen=True)
class PaperTablesSettings(Settings):
    """Settings of the replicated tables of a paper.

    Our name of a suite or task is `prefix` (such as `demo_`) followed by the name in the paper. `suites` maps names of
    our suites to the names in the paper if the names differ not only by the prefix. `corpora` maps our corpora to the
    corpora of the paper. `caveat` is the reason why none of our numbers is comparable with the printed numbers, if
    there is such a reason.
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
    """Hyperparameters in the tables, by run and path in the configuration."""

    @property
    def models(self) -> list[str]:
        """Return our models in the order of the configuration, followed by the external models that the experiment
        evaluates.
        """
        return models_in_order((*self.runs, *baseline_runs(self.baselines, self.runs)))

    @property
    def shown(self) -> list[str]:
        """Return the models that the tables show, at most MODELS_SHOWN; models that replicate a published row are
        preferred.
        """
        models, rows = self.models, self.published.rows
        chosen = set(sorted(models, key=lambda model: model not in rows)[:MODELS_SHOWN])
        return [model for model in models if model in chosen]

    def papers_suite(self, suite: str) -> str:
        """Return the name that the tables of the replicated paper use for our suite `suite`."""
        return self.suites.get(suite, suite.removeprefix(self.prefix))

    def papers_task(self, task: str) -> str:
        """Return the name that the tables of the replicated paper use for our task `task`."""
        return task.removeprefix(self.prefix)


@dataclass(frozen=True)
class TableInputs:
    """Input files of the stage that writes the tables of a paper.

    `measurements` and `layers` are tidy tables of the experiment. `sizes` are the published sizes of corpora, `cards`
    are the statistics of our corpora by name, and `tasks` are the fine-tuning manifests of one model by task.
    """

    summary: Path
    published: Path
    layout: Path
    measurements: Path
    layers: Path
    sizes: Path
    cards: Mapping[str, Path] = field(default_factory=dict)
    tasks: Mapping[str, Path] = field(default_factory=dict)
