"""The stage `write_page`: one static page for an experiment or a study."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hatchery.analysis.settings import models_in_order, sets_of_many
from hatchery.analysis.studies import analyses_of
from hatchery.experiment.paper_tables import paper_of_tables
from hatchery.experiment.seeded_run import SeededRun
from hatchery.job_spec import Paths
from hatchery.rendering.style import Style
from hatchery.settings.base import Settings
from hatchery.stage import Stage
from hatchery.views.stages.draw_figure import figures_of

if TYPE_CHECKING:
    from hatchery.experiment.project import Project
    from hatchery.workflow.outputs import Outputs
    from hatchery.workflow.result_paths import ResultPaths


@dataclass(frozen=True)
class Part(Settings):
    """What the page of a study says of one of its experiments."""

    description: str
    corpus: str


@dataclass(frozen=True)
class PageSettings(Settings):
    """What the page says in words; `runs` give the order of the models, `parts` are the experiments of a study.

    `style` is that of the figures, in whose colours the page shows the models.
    """

    experiment: str
    description: str
    runs: tuple[SeededRun, ...] = ()
    parts: dict[str, Part] = field(default_factory=dict)
    # Of many models, the set of each that a grid made, as people read it.
    sets: dict[str, str] = field(default_factory=dict)
    style: Style = field(default_factory=Style)


@dataclass(frozen=True)
class PageInputs:
    """What a page is composed of; figures in their order, corpus cards by corpus, manifests of runs by their names."""

    summary: Path
    # The summary as text, which the page leads to.
    markdown: Path
    # What there is to say of the numbers.
    notes: Path
    # The page that every number leads to.
    provenance: Path
    # The manifests that have a place there, by digest.
    places: Path | None = None
    figures: Sequence[Path] = ()
    cards: Mapping[str, Path] = field(default_factory=dict)
    runs: Path | None = None
    curves: Path | None = None
    pretraining: Mapping[str, Path] = field(default_factory=dict)
    # The tables of a paper, where the experiment repeats one.
    tables: Path | None = None
    # What the models wrote.
    filled: Mapping[str, Path] = field(default_factory=dict)
    costs: Sequence[Path] = ()
    # The table of all surprisals, if the experiment has texts under `surprisal`.
    surprisals: Sequence[Path] = ()
    # The pages of the experiments of a study, and what it found.
    parts: Mapping[str, Path] = field(default_factory=dict)
    analyses: Mapping[str, Path] = field(default_factory=dict)


def page_settings(project: "Project", experiment: str) -> dict[str, object]:
    """The page of an experiment or a study."""
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
    """All that a page shows, of the experiment or study and of its parts."""
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
    environment="analysis",
    runs_on="local",
    memory_mb=2000,
    minutes=10,
)
def write_page(settings: PageSettings, inputs: PageInputs, output: Path) -> None:
    """Write the page of an experiment or a study to `output`.

    Raises EvaluationError for a table, text or figure, and ManifestError for a manifest that
    is missing or damaged, naming the file; then no page is written.
    """
    from hatchery.views.page import compose_page

    compose_page(settings, inputs, output)
