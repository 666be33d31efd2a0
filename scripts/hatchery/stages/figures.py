"""The stage that draws any figure of an experiment."""

from typing import Any

from hatchery.analysis.figures.registry import declared_figures
from hatchery.config.project import Project
from hatchery.stages.analysis import runs_of
from hatchery.stages.record import Stage

MOST_DRAWN = 40
"""Models that a figure shows: with more of them nothing can be told apart, and the file grows by megabytes."""


def figure_settings(project: Project, experiment: str, figure: str) -> dict[str, Any]:
    """A figure of an experiment, with the first models as far as they fit, and with what it marks of a paper."""
    block, declared, runs = project.experiment(experiment), declared_figures()[figure], runs_of(project, experiment)
    models = list(dict.fromkeys(run["model"] for run in runs))
    left_out = len(models[MOST_DRAWN:])
    return {
        "figure": figure,
        "version": declared.version,
        "experiment": experiment,
        "runs": [run for run in runs if run["model"] in models[:MOST_DRAWN]],
        "style": block["figures"],
        **({"left_out": left_out} if left_out else {}),
        **({"published": block["published"]} if declared.published else {}),
    }


STAGES = (
    Stage(
        name="draw_figure",
        # What all figures share; each has a version of its own, in its file.
        version=1,
        settings=figure_settings,
        arguments=lambda layout, experiment, figure: {"tables": layout.figure_tables(experiment, figure)},
        environment="analysis",
        sort="local",
        memory_mb=2000,
        minutes=10,
    ),
)
