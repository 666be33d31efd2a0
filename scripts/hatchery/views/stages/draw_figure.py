"""The stage `draw_figure`: any figure of an experiment, for wide screens and for phones in one file."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hatchery.analysis.settings import (
    FigureSettings,
    RegularisedStart,
    baseline_runs,
    models_in_order,
    names_of,
    published_of,
    sets_of_many,
)
from hatchery.stage import Stage
from hatchery.views.figures.needs import NEEDS, drawable, regularised_starts
from hatchery.views.figures.registry import declared_figures

if TYPE_CHECKING:
    from hatchery.experiment.project import Project

MOST_DRAWN = 40
"""Models that a figure shows: with more of them nothing can be told apart, and the file grows by megabytes."""

EVALUATIONS = {"minimal_pairs", "tasks", "ambiguous_tasks", "probes"}
"""What models of others have to draw as ours have it; of their training nothing is known."""


def figure_settings(project: "Project", experiment: str, figure: str) -> dict[str, object]:
    """A figure of an experiment or a study, with the first models as far as they fit, and what it marks of papers.

    Models of others come last, in figures of what they are evaluated on in an experiment.
    The experiments of a study that were not evaluated in this way are named, and none of their models is drawn.
    """
    block, declared, runs = project.results_of(experiment), declared_figures()[figure], project.shown_runs(experiment)
    needs, parts = {need for need in declared.needs if need in NEEDS}, project.members(experiment)
    without = [part for part in parts if project.is_study(experiment) and not needs <= set(drawable(project, part))]
    all_models = models_in_order(runs)
    runs = [run for run in runs if run.model.partition("/")[0] not in without]
    models = models_in_order(runs)
    sets = sets_of_many(project, experiment, models) if declared.by_set else {}
    # A model has the place, and so the colour, that it has where all are shown.
    shifted = not sets and models != all_models[: len(models)]
    regularised = dict[str, RegularisedStart]()
    if "regularised_starts" in needs:
        regularised = project.of_members(experiment, lambda part: regularised_starts(project.experiment(part)))
        models = [model for model in models if model in regularised]
    swept = dict[str, object]()
    if "sweeps" in needs:
        for model, told in project.of_members(experiment, lambda part: project.expansion(part).swept_values()).items():
            # Lines are called after their experiments as models are.
            swept[model] = {**told, "line": f"{model.removesuffix(model.rpartition('/')[2])}{told['line']}"}
        models = [model for model in models if model in swept]
    if needs and needs <= EVALUATIONS and not project.is_study(experiment):
        runs = [*runs, *baseline_runs(project.experiment(experiment).baselines, runs)]
        models = models_in_order(runs)
    most = len(models) if declared.all_models or sets else MOST_DRAWN
    left_out = len(models[most:])
    return {
        "figure": figure,
        "version": declared.version,
        "experiment": experiment,
        "runs": [names_of(run) for run in runs if run.model in models[:most]],
        "style": block.figures,
        **({"left_out": left_out} if left_out else {}),
        **({"without": without} if without else {}),
        **({"all_models": all_models} if shifted else {}),
        **({"sets": sets} if sets else {}),
        **({"regularised": regularised} if regularised else {}),
        **({"swept": swept} if swept else {}),
        **({"published": published_of(project, experiment)} if declared.published else {}),
    }


@Stage(
    # What all figures share; each has a version of its own, in its file.
    version=1,
    settings=figure_settings,
    inputs=lambda results, experiment, figure: {"tables": results.figure_tables(experiment, figure)},
    environment="analysis",
    runs_on="local",
    memory_mb=2000,
    minutes=10,
)
def draw_figure(settings: FigureSettings, tables: Mapping[str, Path], output: Path) -> None:
    """Draw the figure that `settings` name into `output` (SVG).

    Raises ConfigError, ManifestError or EvaluationError naming the input at fault.
    """
    from hatchery.views.figures.draw import draw

    draw(settings, tables, output)
