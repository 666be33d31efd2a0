"""Lines of means over pretraining seeds, each with a band of how far the seeds are apart.

`draw_steps` is the figure of all that was measured at doubling steps: a panel for each column of the curves.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from hatchery.analysis.aggregates import mean_and_deviation, mean_and_error
from hatchery.analysis.settings import FigureSettings, models_in_order, models_with_counts, runs_by_name
from hatchery.analysis.tidy_tables import CURVES, read_frame
from hatchery.rendering.drawing import (
    abbreviated,
    is_narrow,
    legend_below,
    legend_columns,
    line_handles,
    no_measurements,
)
from hatchery.rendering.style import ModelStyle
from hatchery.views.figures.registry import Tables

Point = tuple[float, float, float]
"""Place on the axis, mean over the seeds, and their spread to either side (0 with one seed)."""


def point_of(
    place: float,
    values: Sequence[float],
    of: Callable[[Sequence[float]], tuple[float | None, float | None]] = mean_and_deviation,
) -> Point:
    """The point of at least one value; `of` gives mean and spread, by default the sample standard deviation."""
    mean, spread = of(values)
    assert mean is not None
    return place, mean, spread or 0.0


def draw_band(axes: Axes, points: Sequence[Point], look: ModelStyle, **line: Any) -> None:
    """Draw the line of some points in their order, and its band where any of them has a spread."""
    places, means = [place for place, _, _ in points], [mean for _, mean, _ in points]
    axes.plot(places, means, color=look.colour, linestyle=look.dashes, **{"linewidth": 1.4, **line})
    if any(spread for _, _, spread in points):
        low, high = ([mean + sign * spread for _, mean, spread in points] for sign in (-1, 1))
        axes.fill_between(places, low, high, color=look.colour, alpha=0.2, linewidth=0)


@dataclass(frozen=True)
class Panel:
    """What a panel shows: a column of the curves, its title, and whether the lowest point of every line is marked."""

    column: str
    title: str
    marks_minimum: bool = False


def draw_steps(settings: FigureSettings, tables: Tables, panels: Sequence[Panel]) -> Figure:
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
            if points := lines.get(model):
                draw_band(axes, points, styles[model])
                if panel.marks_minimum:
                    step, mean, _ = min(points, key=lambda point: point[1])
                    dot = {"marker": "o", "markersize": size * 0.5, "linestyle": "none"}
                    axes.plot([step], [mean], color=styles[model].colour, **dot)
        _finish(axes, panel.title)
    handles = line_handles(labels, styles, linewidth=1.6)
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


def _finish(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left")
    axes.set_xlabel("optimiser steps (logarithmic)")
    # Logarithmic from the first step on, with room for the model before it.
    axes.set_xscale("symlog", linthresh=1, linscale=0.4)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(abbreviated))
    axes.grid(visible=True)
    if not axes.lines:
        no_measurements(axes)
