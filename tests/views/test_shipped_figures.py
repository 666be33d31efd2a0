"""Every registered figure is drawn from generated results of the smallest shipped experiment or study that has it."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from shipped_workflow import Workflow

from hatchery.analysis.analyses.analysis import NUMBERS_FILE
from hatchery.rendering.drawing import figure_style
from hatchery.typed import stage_body
from hatchery.views.figures.registry import declared_figures, read_settings
from hatchery.views.stages.draw_figure import figures_of
from hatchery.workflow.outputs import Outputs

UNITS = {
    "swept_values": "perplexity",
    "learning_curves": "(nats per predicted token)",
    "layer_weights": "layer weight",
    "phenomena": "accuracy (%)",
    "word_surprisals": "(bits)",
    "scores_by_words": "in percent",
    "reading_gains": "gain (millinats per word)",
    "task_scores": "score (%)",
    "bias_violins": "−1 surface feature, +1 linguistic feature",
    "feature_dots": "linguistic bias score",
    "layer_contributions": "contribution (%)",
    "output_divergences": "(nats)",
    "bias_drift": "(nats)",
    "token_frequency": "(nats)",
    "translation_curves": "BLEU",
    "translation_scores": "BLEU",
    "away_from_unigram": "BLEU",
    "scores_by_cost": "(%)",
    "loss_by_flops": "(nats)",
    "loss_by_parameters": "(nats)",
    "loss_by_tokens": "(nats)",
    "start_scores": "BLEU",
}
"""The unit that each figure shows on an axis or above a panel. Add the unit of a new figure here."""
SLOW = "real_scaling_laws"
"""A study whose laws are fitted a thousand times."""


def owner(workflow: Workflow, figure: str) -> str:
    """Return the smallest experiment or study with this figure."""
    results, project = workflow.jobs.results, workflow.project
    sizes = {
        name: sum(len(results.evaluations(part)) for part in project.members(name))
        for name in (*project.names("experiment"), *project.names("study"))
        if name != SLOW and figure in figures_of(project, name)
    }
    assert sizes, f"no shipped experiment and no study has the figure {figure}"
    return min(sizes, key=lambda name: (sizes[name], name))


def drawn(workflow: Workflow, name: str, figure: str) -> tuple[Figure, dict[str, Path]]:
    """Return a figure of an experiment or study, and its input tables."""
    workflow.summarise(name)
    call = workflow.jobs.call("draw_figure", experiment=name, figure=figure)
    given: Any = call.arguments["tables"]
    tables = {table: Path(path) for table, path in given.items()}
    for path in tables.values():
        if path.parent.parent.name == "analyses":
            workflow.make("analyse", str(path), experiment=name, analysis=path.parent.name)
    settings = read_settings(stage_body(json.loads(call.settings)))
    with figure_style(settings.style):
        return import_module(f"hatchery.views.figures.{figure}").draw(settings, tables), tables


def places(figure: Figure) -> Iterator[float]:
    """Yield the coordinates of lines, dots, bars and cells, and the numbers written in panels."""
    for axes in figure.axes:
        for line in axes.lines:
            yield from np.asarray([*line.get_xdata(), *line.get_ydata()], dtype=float)
        for dots in axes.collections:
            yield from np.ma.filled(np.ma.asarray(dots.get_offsets(), dtype=float), np.nan).flatten()
        yield from (patch.get_width() for patch in axes.patches if isinstance(patch, Rectangle))
        for text in axes.texts:
            with suppress(ValueError):
                yield float(text.get_text())


def numbers(tables: dict[str, Path]) -> Iterator[float]:
    """Yield the numbers of a figure's input tables, also as fractions, in percent, and rounded as in cells."""
    for path in tables.values():
        if path.suffix == ".parquet":
            rows = pl.read_parquet(path).select(pl.selectors.float())
        elif path.name == "manifest.json":
            rows = pl.read_csv(path.with_name(NUMBERS_FILE), infer_schema_length=None).select(pl.selectors.float())
        else:
            continue
        for value in (value for column in rows.iter_columns() for value in column.drop_nulls()):
            yield from (value, value / 100, 100 * value, round(value, 2))


def rounded(values: Iterator[float]) -> set[float]:
    return {float(f"{value:.4g}") for value in values if np.isfinite(value) and value not in (0, 1, 50, 100)}


def test_the_unit_of_every_registered_figure_is_known() -> None:
    assert set(UNITS) == set(declared_figures())


@pytest.mark.parametrize(("figure", "unit"), UNITS.items())
def test_every_registered_figure_shows_numbers_of_its_tables_in_their_unit(
    workflow: Workflow, figure: str, unit: str
) -> None:
    shown, tables = drawn(workflow, owner(workflow, figure), figure)
    labels = " ".join(
        " ".join(text.split())
        for axes in shown.axes
        for text in (axes.get_xlabel(), axes.get_ylabel(), axes.get_title(), axes.get_title("left"))
    )
    assert unit in labels
    for axes in shown.axes:
        texts = [text.get_text() for text in axes.texts]
        assert not {"no measurements", "the tables state the reason"} & set(texts), labels
        assert not axes.axison or axes.lines or axes.patches or axes.collections or axes.images, labels
    common = rounded(places(shown)) & rounded(numbers(tables))
    assert common, "no number of the tables is in the figure"


def test_chance_in_a_figure_is_that_of_the_items(workflow: Workflow) -> None:
    shown, _ = drawn(workflow, "babylm_mini", "phenomena")
    lines = {
        axes.get_title("left"): {float(place) for line in axes.lines for place in line.get_xdata()}
        for axes in shown.axes
    }
    expected = {"demo babylm blimp": {50.0}, "demo babylm entity tracking": {20.0}}
    for panel, chance in expected.items():
        assert chance <= lines[panel]


def test_a_page_embeds_the_figures_that_were_drawn(workflow: Workflow) -> None:
    workflow.summarise("demo")
    folder, of = Path("results/demo"), Outputs(workflow.project, experiment="demo")
    figures = of.each("draw_figure", figure=figures_of(workflow.project, "demo"))
    for figure, path in figures.items():
        workflow.make("draw_figure", path, experiment="demo", figure=figure)
    provenance = {"places": str(folder / "provenance_places.json"), "project": "."}
    workflow.make("write_provenance", str(folder / "provenance.html"), experiment="demo", places=provenance)
    workflow.measure_corpora("demo")
    (folder / "cost.html").write_text("", encoding="utf-8")
    # These figures need texts of corpora and suites.
    without = {"analyses": {}, "filled": {}}
    made = workflow.make("write_page", str(folder / "index.html"), experiment="demo", places=without)
    page = made.read_text(encoding="utf-8")
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids)) > 100
    assert len(figures) == 4 and "600,000" in page
    for path in figures.values():
        curves = re.findall(r' d="([^"]{200,})"', Path(path).read_text(encoding="utf-8"))
        # Paths of this length are glyphs or lines of the drawing.
        assert len(curves) > 5 and max(curves, key=len) in page, path
