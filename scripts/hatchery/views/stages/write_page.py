"""The stage `write_page`: write one static page for an experiment or a study."""

from pathlib import Path
from typing import TYPE_CHECKING

from hatchery.analysis.settings import models_in_order, sets_of_many
from hatchery.analysis.studies import analyses_of
from hatchery.experiment.paper_tables import paper_of_tables
from hatchery.job_spec import Paths
from hatchery.stage import Stage
from hatchery.views.page_settings import PageInputs, PageSettings
from hatchery.views.stages.draw_figure import figures_of

if TYPE_CHECKING:
    from hatchery.experiment.project import Project
    from hatchery.workflow.outputs import Outputs
    from hatchery.workflow.result_paths import ResultPaths


def page_settings(project: "Project", experiment: str) -> dict[str, object]:
    """Return the page settings of an experiment or a study."""
    parts = {part: project.experiment(part) for part in project.members(experiment)}
    sets = sets_of_many(project, experiment, models_in_order(project.shown_runs(experiment)))
    described = {part: {"description": block.description, "corpus": block.corpus} for part, block in parts.items()}
    return {
        "experiment": experiment,
        "description": project.results_of(experiment).description,
        "runs": project.shown_runs(experiment),
        "style": project.results_of(experiment).figures,
        "parts": described if project.is_study(experiment) else {},
        "sets": sets,
    }


def page_inputs(of: "Outputs", results: "ResultPaths", experiment: str) -> dict[str, Paths]:
    """Return all input files of a page: results of the experiment or study and, for a study, of its experiments."""
    project, parts, study = of.project, of.project.members(experiment), of.project.is_study(experiment)
    return {
        "summary": of("summarise", "parquet"),
        "markdown": of("summarise", "markdown"),
        "notes": of("summarise", "notes"),
        "provenance": of("write_provenance"),
        "places": of("write_provenance", "places"),
        "figures": list(of.each("draw_figure", figure=figures_of(project, experiment)).values()),
        "runs": of.table("runs"),
        "curves": of.table("curves"),
        "costs": list(of.each("write_cost", "page", experiment=parts).values()),
        "surprisals": [of("join_surprisals", "csv")] if not study and project.experiment(experiment).surprisal else [],
        "cards": of.each("describe_corpus", corpus=project.cards(experiment)),
        "pretraining": results.pretrained(experiment),
        "tables": [] if study or paper_of_tables(project, experiment) is None else [of("write_tables")],
        "parts": of.each("write_page", experiment=parts if study else ()),
        "analyses": of.each("analyse", analysis=analyses_of(project, experiment)),
        "filled": results.shown_sentences(experiment),
    }


@Stage(
    version=1,
    settings=page_settings,
    inputs=page_inputs,
    outputs={"output": "results/{experiment}/index.html"},
    reported={"output": ("{experiment}", "Page")},
    environment="analysis",
    runs_on="local",
    memory_mb=2000,
    minutes=10,
)
def write_page(settings: PageSettings, inputs: PageInputs, output: Path) -> None:
    """Write the page of an experiment or a study to `output`.

    Raises ManifestError if an input is missing or was altered, and EvaluationError if an input has another format; the
    error names the file, and no page is written.
    """
    from hatchery.views.page import compose_page

    compose_page(settings, inputs, output)
