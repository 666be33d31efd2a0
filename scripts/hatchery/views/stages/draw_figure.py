"""The stage `draw_figure`: any figure of an experiment, for wide screens and for phones in one file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hatchery.analysis.settings import (
    FigureSettings,
    SeededRun,
    asked_tasks,
    baseline_runs,
    models_in_order,
    published_of,
    sets_of_many,
)
from hatchery.analysis.studies import analyses_of
from hatchery.experiment.paper_tables import published_files
from hatchery.experiment.seeded_run import of_member
from hatchery.job_spec import Paths
from hatchery.settings.fields import ABSENT
from hatchery.stage import Stage, one_of
from hatchery.views.figures.needs import NEEDS, drawable, regularised_starts
from hatchery.views.figures.registry import PUBLISHED, declared_figures, figures_drawn_from, require_figure, tables_of

if TYPE_CHECKING:
    from hatchery.experiment.project import Project
    from hatchery.workflow.outputs import Outputs

MOST_DRAWN = 40
"""Models that a figure shows: with more of them nothing can be told apart, and the file grows by megabytes."""

EVALUATIONS = {"minimal_pairs", "surprisals", "tasks", "ambiguous_tasks", "probes"}
"""What models of others have to draw as ours have it; of their training nothing is known."""


def figure_settings(project: "Project", experiment: str, figure: str) -> dict[str, object]:
    """A figure of an experiment or a study, with the first models as far as they fit, and what it marks of papers.

    Models of others come last, in figures of what they are evaluated on in an experiment.
    The experiments of a study that were not evaluated in this way are named, and none of their models is drawn.
    """
    declared, all_runs = declared_figures()[figure], project.shown_runs(experiment)
    needs = {need for need in declared.needs if need in NEEDS}
    without = _parts_without(project, experiment, needs) if project.is_study(experiment) else []
    ours = [run for run in all_runs if run.model.partition("/")[0] not in without]
    models, all_models = models_in_order(ours), models_in_order(all_runs)
    sets = sets_of_many(project, experiment, models) if declared.by_set else {}
    chosen = {key: of(project, experiment) for key, (need, of) in CHOSEN_BY.items() if need in needs}
    runs = [*ours, *_baselines(project, experiment, needs, ours)]
    drawn = [model for model in models_in_order(runs) if all(model in found for found in chosen.values())]
    most = len(drawn) if declared.all_models or sets else MOST_DRAWN
    return {
        "figure": figure,
        "version": declared.version,
        "experiment": experiment,
        "runs": [run for run in runs if run.model in drawn[:most]],
        "style": project.results_of(experiment).figures,
        "published": published_of(project, experiment) if declared.published else ABSENT,
        "left_out": len(drawn[most:]),
        "without": without,
        # A model has the place, and so the colour, that it has where all are shown.
        "all_models": all_models if not sets and models != all_models[: len(models)] else (),
        "sets": sets,
        "objectives": _different_objectives(project, experiment, drawn) if "sweeps" in needs else {},
        "milestones": _milestones(project, experiment, drawn[:most]) if "milestones" in needs else (),
        **chosen,
    }


def _parts_without(project: "Project", study: str, needs: set[str]) -> list[str]:
    """The experiments of a study that have not what a figure needs."""
    return [part for part in project.members(study) if not needs <= set(drawable(project, part))]


def _baselines(project: "Project", experiment: str, needs: set[str], runs: Sequence[SeededRun]) -> Sequence[SeededRun]:
    """Models of others, where a figure draws of an experiment alone what they have, too."""
    if not needs or not needs <= EVALUATIONS or project.is_study(experiment):
        return ()
    return baseline_runs(project.experiment(experiment).baselines, runs)


def _milestones(project: "Project", experiment: str, drawn: Sequence[str]) -> list[SeededRun]:
    """The models of inside the trainings of the models that are drawn."""
    if not project.is_study(experiment):
        found = list(project.milestones(experiment).values())
    else:
        parts = project.members(experiment)
        found = [of_member(part, run) for part in parts for run in project.milestones(part).values()]
    names = {run.name for run in project.shown_runs(experiment) if run.model in drawn}
    return [run for run in found if run.milestone_of in names]


def _regularised(project: "Project", experiment: str) -> Mapping[str, object]:
    return project.of_members(experiment, lambda part: regularised_starts(project.experiment(part)))


def _swept(project: "Project", experiment: str) -> Mapping[str, object]:
    found = project.of_members(experiment, lambda part: project.expansion(part).swept_values())
    # Lines are called after their experiments as models are.
    return {
        model: {**values, "line": f"{model.removesuffix(model.rpartition('/')[2])}{values['line']}"}
        for model, values in found.items()
    }


def _different_objectives(project: "Project", experiment: str, drawn: Sequence[str]) -> Mapping[str, str]:
    tasks = project.of_members(experiment, lambda part: asked_tasks(project.experiment(part)))
    asked = {model: tasks[model] for model in drawn}
    return asked if len(set(asked.values())) > 1 else {}


# The models that a figure of these results draws, by the key of its settings that tells of them.
CHOSEN_BY = {"regularised": ("regularised_starts", _regularised), "swept": ("sweeps", _swept)}


def figures_of(project: "Project", experiment: str) -> list[str]:
    """Names of the figures of an experiment or a study: those for which its results have something to draw."""
    return list(figures_drawn_from(_drawable(project, experiment)))


def figure_inputs(of: "Outputs", experiment: str, figure: str) -> dict[str, Paths]:
    """Tidy tables, manifests of analyses, and published values if the figure marks some.

    Raises ConfigError where the experiment has nothing to draw in the figure.
    """
    project = of.project
    declared = require_figure(figure, _drawable(project, experiment), experiment)
    tables = {name: of.table(name) for name in tables_of(declared)}
    if project.is_study(experiment):
        for name, entry in analyses_of(project, experiment).items():
            if entry.analysis in declared.needs:
                tables[f"{entry.analysis}/{name}"] = of("analyse", analysis=name)
    published = published_files(project, experiment) if declared.published else []
    names = [PUBLISHED, *(f"{PUBLISHED}/{Path(path).stem}" for path in published[1:])]
    return {"tables": tables | dict(zip(names, published, strict=False))}


def _drawable(project: "Project", experiment: str) -> list[str]:
    has = [need for part in project.members(experiment) for need in drawable(project, part)]
    if project.is_study(experiment):
        has += [entry.analysis for entry in analyses_of(project, experiment).values()]
    return has


@Stage(
    # What all figures share; each has a version of its own, in its file.
    version=1,
    settings=figure_settings,
    inputs=figure_inputs,
    outputs={
        "figure": "results/{experiment}/figures/{figure}.svg",
        "pdf": "results/{experiment}/figures/{figure}.pdf",
        "checksums": "results/{experiment}/figures/{figure}.sha256",
    },
    wildcard_patterns=lambda project: {"figure": one_of(declared_figures())},
    # The text is on the page: with a new text, figure and page are made again.
    recorded={"text": lambda figure: declared_figures()[figure].page_text},
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
