"""The stage `write_tables`: every table of a paper that the experiment has numbers for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hatchery.analysis.settings import DRAWS, PublishedChoice, baseline_runs, models_in_order
from hatchery.artifacts.manifests import StageRun
from hatchery.errors import ConfigError
from hatchery.experiment.paper_tables import LAYOUTS, VALUES, paper_of_tables, paper_tables
from hatchery.experiment.seeded_run import SeededRun
from hatchery.job_spec import Paths
from hatchery.settings.base import Settings
from hatchery.stage import Stage
from hatchery.views.paper_tables.hyperparameters import hyperparameters
from hatchery.views.paper_tables.layout import TasksLayout, read_layout
from hatchery.views.stages.describe_corpus import PUBLISHED_SIZES

if TYPE_CHECKING:
    from hatchery.experiment.project import Project
    from hatchery.workflow.outputs import Outputs
    from hatchery.workflow.result_paths import ResultPaths

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
    hyperparameters: dict[str, dict[str, float]] = field(default_factory=dict)
    """Those that the tables show, by run and path."""

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
class TableInputs:
    """Where the numbers of the tables come from.

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


def tables_settings(project: "Project", experiment: str) -> dict[str, object]:
    """The tables in the layout of a paper. Raises ConfigError for an experiment that repeats none."""
    block = project.experiment(experiment)
    chosen = paper_tables(project, experiment)
    if chosen is None:
        raise ConfigError(
            f"results/{experiment}/paper_tables: the experiment repeats no paper: it has neither `published` nor"
            " `paper_tables`"
        )
    prefix, published = chosen["prefix"], chosen["published"]
    layout = project.folder / LAYOUTS / f"{published.paper}.yaml"
    return {
        "experiment": experiment,
        "runs": project.shown_runs(experiment),
        "tasks": list(block.finetuning.tasks),
        "baselines": block.baselines,
        **chosen,
        "hyperparameters": hyperparameters(project, experiment, str(layout), prefix, published.rows),
    }


def tables_inputs(of: "Outputs", results: "ResultPaths", experiment: str) -> dict[str, Paths]:
    """The layout of a paper's tables, what fills them, and one model's fine-tuning where tables have sizes of tasks."""
    paper, tasks = paper_of_tables(of.project, experiment), dict[str, str]()
    layout = [] if paper is None else [f"config/{LAYOUTS}/{paper}.yaml"]
    tables = [table for path in layout for table in read_layout(of.project.folder.parent / path).tables.values()]
    if any(isinstance(table, TasksLayout) for table in tables):
        first, finetuned = of.project.evaluated(experiment)[0], results.of_kind(experiment, "finetuning")
        asked = of.project.experiment(experiment).finetuning.tasks
        tasks = {task: finetuned[f"{first}:{task}"] for task in asked}
    return {
        "summary": of("summarise", "parquet"),
        "published": [] if paper is None else [f"config/{VALUES}/{paper}.csv"],
        "layout": layout,
        "measurements": of("collect_measurements", "measurements"),
        "layers": of("collect_measurements", "layers"),
        "sizes": PUBLISHED_SIZES,
        "cards": of.each("describe_corpus", "statistics", corpus=of.project.cards(experiment)),
        "tasks": tasks,
    }


@Stage(
    version=1,
    settings=tables_settings,
    inputs=tables_inputs,
    outputs={
        "manifest": "results/{experiment}/paper_tables/manifest.json",
        "page": "results/{experiment}/paper_tables/tables.html",
    },
    input_names={"cards": "card:{}", "tasks": "task:{}"},
    environment="analysis",
    runs_on="local",
    memory_mb=2000,
    minutes=10,
)
def write_tables(settings: PaperTablesSettings, inputs: TableInputs, run: StageRun) -> None:
    """Write the tables; those of an earlier run that are not written again are removed.

    Raises ConfigError, ManifestError or EvaluationError naming the input at fault, before anything is written.
    """
    from hatchery.views.paper_tables.write_all import write_all

    write_all(settings, inputs, run)
