"""Stages that draw an experiment's figures, and that make tables for them."""

from functools import partial
from typing import Any

from hatchery.analysis.figures.registry import declared_figures
from hatchery.config.project import Project
from hatchery.stages.analysis import runs_of
from hatchery.stages.record import Stage

MOST_DRAWN = 40
"""Models that a figure shows: with more of them nothing can be told apart, and the file grows by megabytes."""


def drawn_cells(project: Project, experiment: str) -> set[str]:
    """The cells of the models that figures show: the first of the experiment, at most MOST_DRAWN."""
    drawn = list(dict.fromkeys(cell.run for cell in project.cells(experiment)))[:MOST_DRAWN]
    return {cell.name for cell in project.cells(experiment) if cell.run in drawn}


def figure_settings(project: Project, experiment: str, figure: str) -> dict[str, Any]:
    """A figure of an experiment, with the models that fit, and with the published values if it shows such."""
    block, declared = project.experiment(experiment), declared_figures()[figure]
    runs, drawn = runs_of(project, experiment), drawn_cells(project, experiment)
    left_out = len({run["model"] for run in runs if run["name"] not in drawn})
    return {
        "figure": figure,
        "version": declared.version,
        "experiment": experiment,
        "runs": [run for run in runs if run["name"] in drawn],
        "style": block["figures"],
        **({"left_out": left_out} if left_out else {}),
        **({"published": block["published"]} if declared.published else {}),
    }


def probed_models_settings(project: Project, experiment: str) -> dict[str, Any]:
    """The table of what the layers contribute to the probes of an experiment."""
    return {"experiment": experiment, "runs": runs_of(project, experiment)}


_view = partial(Stage, environment="analysis", sort="local", memory_mb=2000, minutes=10)

STAGES = (
    _view(
        name="draw_figure",
        # What all figures share; each has a version of its own, in its file.
        version=1,
        settings=figure_settings,
        arguments=lambda layout, experiment, figure: {
            "results": layout.drawn(experiment, figure),
            "published": layout.marked(experiment, figure),
        },
    ),
    _view(
        name="tabulate_layer_contributions",
        version=1,
        settings=probed_models_settings,
        arguments=lambda layout, experiment: {"finetuning": layout.probed(experiment)},
    ),
)
