"""The stage `draw_figure`: draw a figure of an experiment into a PDF file, and into an SVG file with a layout for wide
screens and a layout for phones.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchery.analysis.settings import (
    baseline_runs,
    models_in_order,
    published_of,
    sets_of_many,
)
from hatchery.analysis.studies import analyses_of
from hatchery.experiment.paper_tables import published_files
from hatchery.experiment.seeded_run import SeededRun
from hatchery.job_spec import Paths
from hatchery.settings.fields import ABSENT
from hatchery.stage import Stage, one_of
from hatchery.typed import stage_body
from hatchery.views.figures.needs import NEEDS, drawable
from hatchery.views.figures.registry import (
    PUBLISHED,
    declared_figures,
    figures_drawn_from,
    read_settings,
    require_figure,
    tables_of,
)

if TYPE_CHECKING:
    from hatchery.experiment.project import Project
    from hatchery.workflow.outputs import Outputs

MOST_DRAWN = 40
"""Maximum number of models in a figure. With more models, the models cannot be distinguished, and the file grows by
megabytes.
"""


def figure_settings(project: "Project", experiment: str, figure: str) -> dict[str, object]:
    """Return the settings of a figure of an experiment or a study. Most figures draw only the first MOST_DRAWN models.

    A figure of an experiment draws the experiment's own models, and then the external models if they have the kinds of
    results that the figure needs. In a study, experiments without these results are not drawn, and the figure names
    them.
    """
    declared, all_runs = declared_figures()[figure], project.shown_runs(experiment)
    needs = [need for need in declared.needs if need in NEEDS]
    without = _parts_without(project, experiment, needs) if project.is_study(experiment) else []
    ours = [run for run in all_runs if run.model.partition("/")[0] not in without]
    models, all_models = models_in_order(ours), models_in_order(all_runs)
    sets = sets_of_many(project, experiment, models) if declared.by_set else {}
    asked = [asks for need in needs if (asks := NEEDS[need].asks) is not None]
    chosen = [ask.models(project, experiment) for ask in asked if ask.models is not None]
    runs = [*ours, *_baselines(project, experiment, needs, ours)]
    drawn = [model for model in models_in_order(runs) if all(model in found for found in chosen)]
    most = len(drawn) if declared.all_models or sets else MOST_DRAWN
    shown = [run for run in runs if run.model in drawn[:most]]
    more = [ask.values(project, experiment, shown) for ask in asked]
    return {
        "figure": figure,
        "version": declared.version,
        "experiment": experiment,
        "runs": shown,
        "style": project.results_of(experiment).figures,
        "published": published_of(project, experiment) if declared.published else ABSENT,
        "left_out": len(drawn[most:]),
        "without": without,
        # A model's colour follows from its index in the list of all models. Colours then stay the same if the models of
        # some experiments are omitted.
        "all_models": all_models if not sets and models != all_models[: len(models)] else (),
        "sets": sets,
        **{key: value for values in more for key, value in values.items()},
    }


def _parts_without(project: "Project", study: str, needs: Collection[str]) -> list[str]:
    """Return the experiments of a study that lack one of the kinds of results `needs`."""
    return [part for part in project.members(study) if not set(needs) <= set(drawable(project, part))]


def _baselines(
    project: "Project", experiment: str, needs: Collection[str], runs: Sequence[SeededRun]
) -> Sequence[SeededRun]:
    """Return the external models of an experiment. Empty for a study, if `needs` (keys of NEEDS) is empty, and if
    external models never have one of the kinds of results in `needs`.
    """
    if not needs or not all(NEEDS[need].of_others for need in needs) or project.is_study(experiment):
        return ()
    return baseline_runs(project.experiment(experiment).baselines, runs)


def figures_of(project: "Project", experiment: str) -> list[str]:
    """Return the names of the figures that can be drawn from the results of an experiment or a study."""
    return list(figures_drawn_from(_drawable(project, experiment)))


def figure_inputs(of: "Outputs", experiment: str, figure: str) -> dict[str, Paths]:
    """Return the input files of a figure: tidy tables, manifests of analyses and, if the figure marks published values,
    the tables of these values.

    Raises ConfigError if the experiment lacks results that the figure needs.
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
    # Version of the code that all figures share. The declaration of each figure contains an additional version.
    version=1,
    settings=figure_settings,
    inputs=figure_inputs,
    outputs={
        "figure": "results/{experiment}/figures/{figure}.svg",
        "pdf": "results/{experiment}/figures/{figure}.pdf",
        "checksums": "results/{experiment}/figures/{figure}.sha256",
    },
    wildcard_patterns=lambda project: {"figure": one_of(declared_figures())},
    # The page prints this text with the figure. Record the text, so that a change of the text makes figure and page
    # again.
    recorded={"text": lambda figure: declared_figures()[figure].page_text},
    reported={"figure": ("{experiment}", "Figures")},
    environment="analysis",
    runs_on="local",
    memory_mb=2000,
    minutes=10,
)
def draw_figure(settings: Mapping[str, Any], tables: Mapping[str, Path], output: Path) -> None:
    """Draw the figure of `settings` into `output` (SVG).

    Raises ConfigError, ManifestError or EvaluationError, which names the faulty input.
    """
    from hatchery.views.figures.draw import draw

    draw(read_settings(stage_body(settings)), tables, output)
