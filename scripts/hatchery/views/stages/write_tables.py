"""The stage `write_tables`: write all paper tables for which the experiment has numbers."""

from typing import TYPE_CHECKING

from hatchery.artifacts.manifests import StageRun
from hatchery.errors import ConfigError
from hatchery.experiment.paper_tables import LAYOUTS, VALUES, paper_of_tables, paper_tables
from hatchery.job_spec import Paths
from hatchery.stage import Stage
from hatchery.views.paper_tables.hyperparameters import hyperparameters
from hatchery.views.paper_tables.layout import TasksLayout, read_layout
from hatchery.views.paper_tables.settings import PaperTablesSettings, TableInputs
from hatchery.views.stages.describe_corpus import PUBLISHED_SIZES

if TYPE_CHECKING:
    from hatchery.experiment.project import Project
    from hatchery.workflow.outputs import Outputs
    from hatchery.workflow.result_paths import ResultPaths


def tables_settings(project: "Project", experiment: str) -> dict[str, object]:
    """Return the settings of the tables in the layout of a paper.

    Raises ConfigError if the experiment replicates no paper.
    """
    block = project.experiment(experiment)
    chosen = paper_tables(project, experiment)
    if chosen is None:
        raise ConfigError(
            f"results/{experiment}/paper_tables: expected an experiment with `published` or `paper_tables`"
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
    """Return the input files of paper tables: the layout, results, published values and, for tables with sizes of
    tasks, the fine-tuning manifests of one model.
    """
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
    reported={"page": ("{experiment}", "Tables of the paper")},
    environment="analysis",
    runs_on="local",
    memory_mb=2000,
    minutes=10,
)
def write_tables(settings: PaperTablesSettings, inputs: TableInputs, run: StageRun) -> None:
    """Write the tables, and remove tables of an earlier run that are not written again.

    Raises ConfigError, ManifestError or EvaluationError, which names the faulty input, before anything is written.
    """
    from hatchery.views.paper_tables.write_all import write_all

    write_all(settings, inputs, run)
