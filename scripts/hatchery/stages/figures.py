"""Stages that draw an experiment's figures."""

from typing import Any

from hatchery.config.project import Project
from hatchery.stages.analysis import models_of
from hatchery.stages.record import Stage

MOST_DRAWN = 40
"""Models that a figure shows: with more of them nothing can be told apart, and the file grows by megabytes."""


def drawn_cells(project: Project, experiment: str) -> set[str]:
    """The cells of the models that figures show: the first of the experiment, at most MOST_DRAWN."""
    drawn = list(dict.fromkeys(cell.run for cell in project.cells(experiment)))[:MOST_DRAWN]
    return {cell.name for cell in project.cells(experiment) if cell.run in drawn}


def figure_settings(project: Project, experiment: str) -> dict[str, Any]:
    """A figure of an experiment, with the models that fit."""
    whole, drawn = whole_figure_settings(project, experiment), drawn_cells(project, experiment)
    left_out = len({cell["run"] for cell in whole["cells"] if cell["cell"] not in drawn})
    cells = [cell for cell in whole["cells"] if cell["cell"] in drawn]
    return {**whole, "cells": cells, **({"left_out": left_out} if left_out else {})}


def whole_figure_settings(project: Project, experiment: str) -> dict[str, Any]:
    """A figure of all models of an experiment, whose numbers other stages read."""
    style = project.experiment(experiment)["figures"]
    return {"experiment": experiment, "cells": models_of(project, experiment), "style": style}


def compared_figure_settings(project: Project, experiment: str) -> dict[str, Any]:
    """A figure that shows published values, too."""
    return {**figure_settings(project, experiment), "published": project.experiment(experiment)["published"]}


def _figure(name: str, version: int, settings: Any) -> Stage:
    return Stage(
        name=name,
        version=version,
        settings=settings,
        environment="analysis",
        sort="local",
        memory_mb=2000,
        minutes=10,
    )


STAGES = (
    _figure("plot_learning_curves", 2, figure_settings),
    _figure("plot_layer_weights", 2, figure_settings),
    _figure("plot_phenomena", 3, compared_figure_settings),
    _figure("plot_task_scores", 2, compared_figure_settings),
    _figure("plot_bias_violins", 2, compared_figure_settings),
    _figure("plot_feature_dots", 2, compared_figure_settings),
    _figure("plot_layer_contributions", 3, whole_figure_settings),
)
