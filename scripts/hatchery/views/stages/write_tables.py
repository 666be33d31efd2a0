"""The stage `write_tables`: every table of a paper that the experiment has numbers for."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hatchery.analysis.settings import runs_of
from hatchery.artifacts.manifests import StageRun
from hatchery.errors import ConfigError
from hatchery.experiment.paper_tables import paper_tables
from hatchery.stage import Stage
from hatchery.views.paper_tables.settings import PaperTablesSettings

if TYPE_CHECKING:
    from hatchery.experiment.project import Project


def tables_settings(project: "Project", experiment: str) -> dict[str, object]:
    """The tables in the layout of a paper. Raises ConfigError for an experiment that repeats none."""
    block = project.experiment(experiment)
    chosen = paper_tables(project, experiment)
    if chosen is None:
        raise ConfigError(
            f"results/{experiment}/paper_tables: the experiment repeats no paper: it has neither `published` nor"
            " `paper_tables`"
        )
    return {
        "experiment": experiment,
        "runs": runs_of(project, experiment),
        "tasks": list(block.finetuning.tasks),
        "baselines": block.baselines,
        **chosen,
    }


@Stage(
    version=4,
    settings=tables_settings,
    inputs=lambda results, experiment: {
        "card": results.card_statistics(experiment),
        "task": results.tuned_tasks(experiment),
    },
    input_names={"card": "card:{}", "task": "task:{}"},
    environment="analysis",
    sort="local",
    memory_mb=2000,
    minutes=10,
)
def write_tables(
    settings: PaperTablesSettings,
    summary: Path,
    published: Path,
    layout: Path,
    measurements: Path,
    layers: Path,
    sizes: Path,
    card: Mapping[str, Path],
    task: Mapping[str, Path],
    run: StageRun,
) -> None:
    """Write the tables; those of an earlier run that are not written again are removed. The arguments are `Inputs`.

    Raises ConfigError, ManifestError or EvaluationError naming the input at fault, before anything is written.
    """
    from hatchery.views.paper_tables.write_all import Inputs, write_all

    write_all(settings, Inputs(summary, published, layout, measurements, layers, sizes, card, task), run)
