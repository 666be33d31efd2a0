"""Plot markers of runs, of the means of models and of published values, and lines through means with their bands.

A run is a dot: filled if it succeeded, hollow if it failed. Published values that are comparable with ours are open
diamonds. Published values that are not comparable appear only in the summary, with the reason. The band of a line
extends from the mean by the spread, for example the standard deviation over seeds.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from hatchery.analysis.aggregates import mean_and_deviation, mean_and_error
from hatchery.analysis.published_values import Key, PublishedValue, chosen_values
from hatchery.analysis.settings import FigureSettings, models_in_order, models_with_counts, runs_by_name
from hatchery.analysis.tidy_tables import CURVES, read_frame
from hatchery.rendering.drawing import (
    MUTED,
    Keywords,
    abbreviated,
    entry_rows,
    is_narrow,
    legend_below,
    line_handles,
    no_measurements,
    outline,
)
from hatchery.rendering.style import ModelStyle, Style
from hatchery.views.figures.registry import FAILED_LABEL, PUBLISHED, PUBLISHED_LABEL, Tables

Runs = Sequence[tuple[float | None, str]]
"""(value, kind of failure) of each run. The value is None if the run has no score; the kind is empty if the run did not
fail.
"""


def runs_of(rows: pl.DataFrame) -> Runs:
    """Return (value, kind of failure) of each row of measurements; the kind of failure is an empty text if the run did
    not fail.
    """
    return rows.select("value", "failed").rows()


def has_no_value(runs: Runs) -> bool:
    """Return True if any of the runs has no score."""
    return any(value is None for value, _ in runs)


def has_failed(runs: Runs) -> bool:
    """Return True if any of the runs failed, or has no score."""
    return any(value is None or failed for value, failed in runs)


def run_mark(look: ModelStyle, size: float, failed: bool) -> Keywords:
    """Return keywords of `Axes.plot` for the dots of a model's runs; the dots are hollow if `failed` is True."""
    return {
        "marker": look.marker,
        "markersize": size,
        "markerfacecolor": "white" if failed else look.colour,
        "markeredgecolor": outline(look.colour),
        "markeredgewidth": 0.8 if failed else 0.3,
        "alpha": 1.0 if failed else 0.75,
        "linestyle": "none",
        "zorder": 5 if failed else 4,
    }


def failed_handle(style: Style) -> Line2D:
    """Return the legend's entry for failed runs."""
    return Line2D([], [], **run_mark(ModelStyle(MUTED, "", "-"), style.font_size * 0.5, True), label=FAILED_LABEL)


def mean_mark(style: Style, length: float = 1.0) -> Keywords:
    """Return keywords of `Axes.plot` for the mean of our runs: a vertical stroke of `length` times the font size."""
    return {
        "marker": "|",
        "markersize": style.font_size * length,
        "markeredgecolor": "black",
        "markeredgewidth": 1.6,
        "linestyle": "none",
        "zorder": 7,
    }


PublishedMarks = Mapping[Key, PublishedValue]
"""Published values by (our model, suite, task, metric)."""


def comparable_values(settings: FigureSettings, tables: Tables) -> dict[Key, PublishedValue]:
    """Return the published values that are comparable with our scores, by (our model, suite, task, metric). The mapping
    is empty if `settings.published` names no paper.

    Raises ConfigError if `tables` lacks the published values of this paper, and EvaluationError for an invalid table.
    """
    papers = [path for name, path in tables.items() if name.partition("/")[0] == PUBLISHED]
    values = chosen_values(settings.published, papers, "tables: published")
    return {key: value for key, value in values.items() if value.comparable}


def published_mark(style: Style, face: str = "none") -> Keywords:
    """Return keywords of `Axes.plot` for a published value: a diamond with the fill colour `face`. By default, the
    diamond is open, so that our value behind it is visible.
    """
    return {
        "marker": "D",
        "markersize": style.font_size * 0.52,
        "markerfacecolor": face,
        "markeredgecolor": "black",
        "markeredgewidth": 1.1,
        "linestyle": "none",
        "zorder": 8,
    }


def published_handle(style: Style) -> Line2D:
    """Return the legend's entry for published values."""
    return Line2D([], [], **published_mark(style), label=PUBLISHED_LABEL)


@dataclass(frozen=True)
class MeanRow:
    """A model's row in a panel that shows means: the model's name and style, and the mean over seeds with its standard
    error; None if the mean is unknown.
    """

    name: str
    look: ModelStyle
    mean: tuple[float, float] | None


def draw_means(axes: Axes, title: str, rows: Sequence[MeanRow], size: float, least: int = 1) -> None:
    """Draw a panel with a row per model from top to bottom: a dot at the mean, and a bar of one standard error to each
    side.

    If there are fewer rows than `least`, the panel has empty space in place of the missing rows.
    """
    for place, row in enumerate(reversed(rows)):
        if row.mean is not None:
            mean, spread = row.mean
            mark: Keywords = {
                "fmt": row.look.marker,
                "color": row.look.colour,
                "markersize": size * 0.5,
                "capsize": 2,
            }
            axes.errorbar([mean], [place], xerr=[spread], **mark)
    axes.set_yticks(range(len(rows)), [row.name for row in reversed(rows)])
    axes.set_ylim(-0.6, max(len(rows), least) - 0.4)
    axes.set_title(title, loc="left")
    axes.grid(visible=True, axis="x")


Point = tuple[float, float, float]
"""(x, mean over seeds, spread). The spread is half the height of the band at x, for example the standard deviation over
seeds; 0 means no band.
"""


def point_of(
    place: float,
    values: Sequence[float],
    of: Callable[[Sequence[float]], tuple[float | None, float | None]] = mean_and_deviation,
) -> Point:
    """Return a point (x, mean, spread). Its x coordinate is `place`, and its mean and spread are those of `values`,
    which contain at least one value.

    The function `of` computes mean and spread; by default, the spread is the sample standard deviation.
    """
    mean, spread = of(values)
    assert mean is not None
    return place, mean, spread or 0.0


def draw_band(axes: Axes, points: Sequence[Point], look: ModelStyle, highest: float | None = None, **line: Any) -> None:
    """Draw a line through points in the given order, with a band if the spread of any point is not 0.

    The upper edge of the band is at most `highest`, the maximum possible value.
    """
    places, means = [place for place, _, _ in points], [mean for _, mean, _ in points]
    axes.plot(places, means, color=look.colour, linestyle=look.dashes, **{"linewidth": 1.4, **line})
    if any(spread for _, _, spread in points):
        low = [mean - spread for _, mean, spread in points]
        high = [mean + up_to(highest, mean, spread) for _, mean, spread in points]
        axes.fill_between(places, low, high, color=look.colour, alpha=0.2, linewidth=0)


def up_to(highest: float | None, mean: float, spread: float) -> float:
    """Return the length of the upper error bar of a mean: `spread`, but at most `highest` minus `mean`."""
    return spread if highest is None else max(0.0, min(spread, highest - mean))


@dataclass(frozen=True)
class Panel:
    """A panel: its column in `curves.parquet`, its title, and whether a dot marks the minimum of each line."""

    column: str
    title: str
    marks_minimum: bool = False


def draw_steps(settings: FigureSettings, tables: Tables, panels: Sequence[Panel]) -> Figure:
    """Return the figure: panels of values against steps, side by side (from top to bottom on phones), with one legend.

    Raises ManifestError for an altered table.
    """
    frame = read_frame(tables["curves"], CURVES, run=runs_by_name(settings.runs))
    columns = [panel.column for panel in panels]
    rows = frame.select("model", "step", *columns).rows()
    models, style = models_in_order(settings.runs), settings.style
    styles, labels, size = settings.looks(models), models_with_counts(settings.runs), settings.style.font_size
    stacked = is_narrow(style)
    handles = line_handles(labels, styles, linewidth=1.6)
    legend = entry_rows(list(labels.values()), style)
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
    legend_below(figure, handles, style)
    return figure


def points_by_model(rows: Sequence[tuple[str, int, float | None]]) -> dict[str, list[Point]]:
    """Return the points (step, mean, standard error over seeds) of each model, sorted by step. Each of `rows` is the
    (model, step, value) of one seed.

    Missing values are ignored.
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
    # The axis is logarithmic from step 1 on, and linear below. Step 0, the untrained model, is thus visible.
    axes.set_xscale("symlog", linthresh=1, linscale=0.4)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(abbreviated))
    axes.grid(visible=True)
    if not axes.lines:
        no_measurements(axes)
