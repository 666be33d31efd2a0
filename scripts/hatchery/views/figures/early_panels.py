"""Panels of what was measured of the output layer at doubling steps: a line per model, the mean of its seeds."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from hatchery.analysis.aggregates import mean_and_error
from hatchery.analysis.settings import FigureSettings, models_in_order, models_with_counts, runs_by_name
from hatchery.analysis.tidy_tables import CURVES, read_frame
from hatchery.rendering.drawing import MUTED, abbreviated, is_narrow, legend_below, legend_columns
from hatchery.rendering.style import ModelStyle
from hatchery.views.figures.bands import Point, draw_band, point_of
from hatchery.views.figures.registry import Tables


@dataclass(frozen=True)
class Panel:
    """What a panel shows: a column of the curves, its title, and whether the lowest point of every line is marked."""

    column: str
    title: str
    marks_minimum: bool = False


def draw_early(settings: FigureSettings, tables: Tables, panels: Sequence[Panel]) -> Figure:
    """The figure: panels side by side (one below the other on phones) with one legend.

    Raises ManifestError for an altered table.
    """
    frame = read_frame(tables["curves"], CURVES, run=runs_by_name(settings.runs))
    columns = [panel.column for panel in panels]
    rows = frame.select("model", "step", *columns).rows()
    models, style = models_in_order(settings.runs), settings.style
    styles, labels, size = settings.looks(models), models_with_counts(settings.runs), settings.style.font_size
    stacked = is_narrow(style)
    legend = -(-len(models) // legend_columns(list(labels.values()), style))
    height = style.width_inches * (0.75 * len(panels) if stacked else 0.34) + (6 + 1.6 * legend) * size / 72
    figure = Figure(figsize=(style.width_inches, height), layout="constrained")
    shape = (len(panels), 1) if stacked else (1, len(panels))
    for index, (panel, axes) in enumerate(zip(panels, figure.subplots(*shape, squeeze=False).flat, strict=True)):
        lines = points_by_model([(model, step, values[index]) for model, step, *values in rows])
        for model in models:
            _draw_line(axes, lines.get(model, []), styles[model], size, panel.marks_minimum)
        _finish(axes, panel.title)
    handles = [
        Line2D([], [], color=styles[m].colour, linestyle=styles[m].dashes, linewidth=1.6, label=label)
        for m, label in labels.items()
    ]
    legend_below(figure, handles, style)
    return figure


def points_by_model(rows: Sequence[tuple[str, int, float | None]]) -> dict[str, list[Point]]:
    """Points by model and step from (model, step, value) of single seeds, whose spread is the standard error.

    What was not measured is left out.
    """
    found: dict[str, dict[int, list[float]]] = {}
    for model, step, value in rows:
        if value is not None:
            found.setdefault(model, {}).setdefault(step, []).append(value)
    return {
        model: [point_of(step, steps[step], mean_and_error) for step in sorted(steps)] for model, steps in found.items()
    }


def _draw_line(axes: Axes, points: Sequence[Point], look: ModelStyle, size: float, marks_minimum: bool) -> None:
    if not points:
        return
    draw_band(axes, points, look)
    if marks_minimum:
        step, mean, _ = min(points, key=lambda point: point[1])
        axes.plot([step], [mean], color=look.colour, marker="o", markersize=size * 0.5, linestyle="none")


def _finish(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left")
    axes.set_xlabel("optimiser steps (logarithmic)")
    # Logarithmic from the first step on, with room for the model before it.
    axes.set_xscale("symlog", linthresh=1, linscale=0.4)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(abbreviated))
    axes.grid(visible=True)
    if not axes.lines:
        axes.text(0.5, 0.5, "no measurements", transform=axes.transAxes, ha="center", color=MUTED)
