"""The `write_run_card` stage: from the manifest of a pretraining to its card, as a page and as Markdown.

The card may say when and where a run was, so it changes when the same run is done again; nothing is computed from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hatchery.analysis.settings import SeededRun
from hatchery.artifacts.atomic import write_text
from hatchery.rendering.cards import RUN_CARD, card_html, card_markdown
from hatchery.rendering.style import Style
from hatchery.settings.base import Settings
from hatchery.typed import build, stage_body
from hatchery.views.run_cards import content
from hatchery.views.run_cards.curves import has_curves, plot_run_curves
from hatchery.views.run_cards.facts import read_run

# An untrained model has no curves, but every card has the file that its rule declares.
NO_CURVES = '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"><title>not trained</title></svg>\n'


@dataclass(frozen=True)
class RunCardSettings(Settings):
    """What a card cannot read from the run: its names, what the configuration says of the model, and the look."""

    experiment: str
    run: SeededRun
    model_description: str = ""
    style: Style = field(default_factory=Style)


def write_run_card(
    settings: Mapping[str, Any],
    pretraining: Path,
    cost: Path | None,
    output: Path,
    markdown: Path,
    drawing: Path,
    filled: Path | None = None,
) -> None:
    """Write the card of the run of the manifest `pretraining`: page, Markdown and the drawing of its curves (SVG).

    `cost` is the experiment's cost.csv, `filled` the manifest of the sentences that the model filled in. The page lies
    one folder below the page of the experiment. Raises ConfigError, ManifestError or EvaluationError naming the input
    at fault.
    """
    card = build(RunCardSettings, stage_body(settings))
    run = read_run(card.run.name, pretraining, cost)
    if has_curves(run):
        plot_run_curves(run, card.style, drawing)
    else:
        write_text(drawing, NO_CURVES)
    sections = [
        content.overview_section(run, card.run.seed),
        content.curve_section(run, drawing),
        *filter(None, [content.divergence_section(run)]),
        *filter(None, [content.examples_section(filled)]),
        content.plan_section(run),
        content.effort_section(run),
        content.settings_section(run),
        content.checkpoint_section(run),
        content.place_section(run),
        content.file_section(run),
    ]
    name = f"{card.run.label}, seed {card.run.seed}" if card.run.label else card.run.name
    title = f"Run card: {name} of {card.experiment}"
    write_text(markdown, card_markdown(title, card.model_description, sections))
    write_text(output, card_html(title, card.model_description, sections, RUN_CARD))
