"""The stage `write_cost`: estimate the cost of an experiment from its settings."""

from pathlib import Path
from typing import TYPE_CHECKING

from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.checksums import write_checksums
from hatchery.experiment import continuation
from hatchery.experiment.cluster import planned_device
from hatchery.experiment.distillation import teacher_models
from hatchery.runner import OutputPath
from hatchery.stage import Stage
from hatchery.training.stages.pretrain import pretraining_settings
from hatchery.workflow.cost_settings import CostSettings

if TYPE_CHECKING:
    from hatchery.experiment.project import Project


def cost_settings(project: "Project", experiment: str) -> dict[str, object]:
    """Return the settings of the cost estimate: all pretrainings of an experiment, and the device that will run
    them.
    """
    block, config = project.experiment(experiment), project.config
    names = [run.name for run in project.seeded_runs(experiment)]
    return {
        "experiment": experiment,
        "vocabulary_size": project.tokenizer(block.tokenizer).vocabulary_size,
        "plan": {
            "device": planned_device(config.cluster, config.compute.device),
            # Without GPUs in the configuration, `processes` is the number of nodes.
            "devices": config.cluster.processes,
            "threads": config.compute.pretraining_threads,
            "mfu": config.cluster.planned_mfu,
            "keep_checkpoints": config.compute.keep_checkpoints,
            "milestones": config.compute.milestones,
        },
        "runs": [_cost_of_run(project, experiment, name) for name in names],
    }


def _cost_of_run(project: "Project", experiment: str, run: str) -> dict[str, object]:
    chosen = project.seeded_run(experiment, run)
    done = continuation.first_step(project, experiment, chosen.model, chosen.seed)
    entry = {"name": run, "pretraining": pretraining_settings(project, experiment, run)}
    # Add these keys only if their values are not empty, so that the settings of other cost estimates do not change.
    more: dict[str, object] = {"first_step": done, "set": project.expansion(experiment).sets().get(chosen.model, "")}
    is_ensemble = bool(project.experiment(experiment).runs[chosen.model].pretraining.ensemble)
    name = "members" if is_ensemble else "teachers"
    more[name] = teacher_models(project, experiment, chosen.model, chosen.seed)
    more["label"] = chosen.title if chosen.label else ""
    return entry | {key: value for key, value in more.items() if value}


@Stage(
    version=1,
    settings=cost_settings,
    outputs={
        "csv": "results/{experiment}/cost.csv",
        "markdown": "results/{experiment}/cost.md",
        "page": "results/{experiment}/cost.html",
        "checksums": "results/{experiment}/cost.sha256",
    },
    environment="pretraining",
    runs_on="local",
    memory_mb=2000,
    minutes=10,
)
def write_cost(settings: CostSettings, output: Path, markdown: OutputPath, page: OutputPath) -> None:
    """Write an experiment's estimated cost as a CSV table, as Markdown and as an HTML page, and the checksums of these
    files.

    Raises ConfigError or ModelError for an invalid run or model.
    """
    from hatchery.workflow.cost_estimate import estimate
    from hatchery.workflow.cost_table import cost_csv, cost_html, cost_markdown

    costs = estimate(settings)
    write_text(output, cost_csv(settings, costs))
    write_text(markdown, cost_markdown(settings, costs))
    write_text(page, cost_html(settings, costs))
    write_checksums([output, markdown, page])
