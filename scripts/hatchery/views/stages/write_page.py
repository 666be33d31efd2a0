"""The stage `write_page`: one static page for an experiment or a study."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hatchery.analysis.settings import models_in_order, runs_of, sets_of_many
from hatchery.experiment.seeded_run import SeededRun
from hatchery.rendering.style import Style
from hatchery.settings.base import Settings
from hatchery.stage import Stage

if TYPE_CHECKING:
    from hatchery.experiment.project import Project


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


def page_settings(project: "Project", experiment: str) -> dict[str, object]:
    """The page of an experiment or a study."""
    parts = {part: project.experiment(part) for part in project.members(experiment)}
    sets = sets_of_many(project, experiment, models_in_order(project.shown_runs(experiment)))
    told = {part: {"description": block.description, "corpus": block.corpus} for part, block in parts.items()}
    return {
        "experiment": experiment,
        "description": project.results_of(experiment).description,
        "runs": runs_of(project, experiment),
        "style": project.results_of(experiment).figures,
        **({"parts": told} if project.is_study(experiment) else {}),
        **({"sets": sets} if sets else {}),
    }


@Stage(
    version=12,
    settings=page_settings,
    inputs=lambda results, experiment: {
        "card": results.cards(experiment),
        "pretraining": results.pretrained(experiment),
        "tables": results.paper_tables(experiment),
        "part": results.pages_of_parts(experiment),
        "analysis": results.analyses(experiment),
        "filled": results.filled_sentences(experiment),
    },
    environment="analysis",
    runs_on="local",
    memory_mb=2000,
    minutes=10,
)
def write_page(
    settings: PageSettings,
    output: Path,
    summary: Path,
    markdown: Path,
    notes: Path,
    provenance: Path,
    figures: Sequence[Path],
    card: Mapping[str, Path],
    runs: Path | None,
    curves: Path | None,
    pretraining: Mapping[str, Path],
    tables: Path | None,
    filled: Mapping[str, Path],
    cost: Sequence[Path],
    part: Mapping[str, Path],
    analysis: Mapping[str, Path],
) -> None:
    """Write the page of an experiment or a study to `output`; the other arguments are those of `PageInputs`.

    Raises EvaluationError for a table, text or figure, and ManifestError for a manifest that
    is missing or damaged, naming the file; then no page is written.
    """
    from hatchery.views.page import PageInputs, compose_page

    inputs = PageInputs(
        summary=summary,
        markdown=markdown,
        notes=notes,
        provenance=provenance,
        figures=figures,
        cards=card,
        runs=runs,
        curves=curves,
        pretraining=pretraining,
        tables=tables,
        filled=filled,
        costs=cost,
        parts=part,
        analyses=analysis,
    )
    compose_page(settings, inputs, output)
