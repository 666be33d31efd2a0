"""Scores after fine-tuning against number of parameters and pretraining FLOPs, with perplexity as colour.

Source: "Honey, I Shrunk the Language: Language Model Behavior at Reduced Scale", Figure 4. The data come from the
analysis `correlation`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from hatchery.analysis.analyses.correlation import OURS, TABULATED
from hatchery.analysis.analyses.power_laws import AXIS_NAMES
from hatchery.analysis.settings import FigureSettings
from hatchery.rendering.drawing import (
    MUTED,
    Keywords,
    abbreviated,
    colour_bar,
    is_narrow,
    legend_below,
    no_measurements,
)
from hatchery.rendering.style import Style
from hatchery.views.figures.registry import Declaration, Tables, numbers_of

FIGURE = Declaration(
    title="Scores by size and FLOPs",
    needs=("correlation",),
    all_models=True,
    version=1,
    caption="Average score of each pretrained model against its number of parameters and its pretraining FLOPs; the "
    "colour is the perplexity of the model. Stars are compute-optimal models.",
    explanation="""
Each suite has a row of two panels: the average score against the model's number of parameters (left) and against the
FLOPs of its pretraining (right), both on logarithmic axes. Stars are compute-optimal models: no other model reached a
lower development loss with about as many FLOPs. If the study names a published table, hollow markers are the models of
this table. They have no colour, because their perplexities are on another scale.

Source: `numbers.csv` of the analysis `correlation`.
""",
)

Rows = Sequence[Mapping[str, str]]
AXES = ("parameters", "flops")


def draw(settings: FigureSettings, tables: Tables) -> Figure:
    """Return the figure. Raises ManifestError for an altered table."""
    return draw_scores(settings, numbers_of(tables, "correlation"))


def draw_scores(settings: FigureSettings, entries: Mapping[str, Rows]) -> Figure:
    """Return the figure, with two panels (one per x axis) for each suite of each analysis `correlation`. `entries` are
    the rows of `numbers.csv` by the analysis's name in the study.
    """
    style, size = settings.style, settings.style.font_size
    panels = [
        (suite if len(entries) == 1 else f"{entry}: {suite}", [row for row in models if row["suite"] == suite])
        for entry, rows in entries.items()
        for models in [[row for row in rows if row["kind"] == "model"]]
        for suite in dict.fromkeys(row["suite"] for row in models)
    ]
    columns = 1 if is_narrow(style) else len(AXES)
    rows = max(1, len(panels) * len(AXES) // columns)
    height = rows * (style.width_inches / columns * 0.6 + 3 * size / 72) + 7 * size / 72
    figure = Figure(figsize=(style.width_inches, height), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    if not panels:
        for axes in grid.flat:
            no_measurements(axes)
        return figure
    ours = [float(row["perplexity"]) for _, models in panels for row in models if row["source"] == OURS]
    mapping = _colours(ours, style)
    places = [(title, models, axis) for title, models in panels for axis in AXES]
    for axes, (title, models, axis) in zip(grid.flat, places, strict=True):
        _draw_panel(axes, title, models, axis, mapping, size)
    if ours:
        bar = colour_bar(figure, mapping, grid, "perplexity of ours", shrink=0.8, pad=0.02)
        bar.minorticks_off()
        bar.set_ticks(_few(ours), labels=[f"{value:g}" for value in _few(ours)])
    legend_below(figure, _handles(panels, size), style)
    return figure


def _colours(perplexities: Sequence[float], style: Style) -> ScalarMappable:
    low, high = min(perplexities, default=1.0), max(perplexities, default=10.0)
    norm = LogNorm(low, high if high > low else low * 1.1)
    return ScalarMappable(norm, colormaps["cividis" if style.colours == "okabe_ito" else "gray"])


def _few(perplexities: Sequence[float]) -> list[float]:
    """Return up to four rounded perplexities between lowest and highest, evenly spaced on a logarithmic scale."""
    low, high = min(perplexities), max(perplexities)
    values = (low * (high / low) ** ((2 * place + 1) / 8) for place in range(4))
    return list(dict.fromkeys(float(f"{value:.3g}") for value in values))


def _draw_panel(axes: Axes, title: str, models: Rows, axis: str, mapping: ScalarMappable, size: float) -> None:
    for row in models:
        if not row[axis]:
            continue
        mine = row["source"] == OURS
        colour: Any = mapping.to_rgba(np.array([float(row["perplexity"])]))[0] if mine else "none"
        mark = _mark(mine, row["optimal"] == "1", size)
        axes.plot(float(row[axis]), float(row["score"]), **mark, markerfacecolor=colour, zorder=2 + mine)
    axes.set_xscale("log")
    axes.grid(visible=True)
    axes.set_title(title, loc="left")
    axes.set_xlabel(AXIS_NAMES[axis])
    axes.set_ylabel("average (%)")
    axes.xaxis.set_major_locator(LogLocator(10, subs=(1, 3) if axis == "parameters" else (1,), numticks=7))
    axes.xaxis.set_minor_formatter(NullFormatter())
    if axis == "parameters":
        axes.xaxis.set_major_formatter(FuncFormatter(abbreviated))


def _mark(mine: bool, optimal: bool, size: float) -> Keywords:
    """Return keywords of `Axes.plot`: a dot for our model, a star for our compute-optimal model, or a diamond for a
    published model.
    """
    marker, wide = ("*", 1.1) if optimal else ("o", 0.6) if mine else ("D", 0.5)
    shape = {"marker": marker, "markersize": size * wide}
    return {**shape, "linestyle": "none", "markeredgecolor": MUTED, "markeredgewidth": 0.6}


def _handles(panels: Sequence[tuple[str, Rows]], size: float) -> list[Line2D]:
    kinds = {(row["source"], row["optimal"] == "1") for _, models in panels for row in models}
    labels = {(OURS, False): OURS, (OURS, True): f"{OURS}, compute-optimal", (TABULATED, False): TABULATED}
    return [
        Line2D(
            [],
            [],
            **_mark(source == OURS, optimal, size),
            markerfacecolor=MUTED if source == OURS else "none",
            label=text,
        )
        for (source, optimal), text in labels.items()
        if (source, optimal) in kinds
    ]
