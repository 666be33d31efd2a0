"""Distribution of the Linguistic Bias Score of every model as a violin plot, after Figure 2 of ELC-BERT.

The scores on the ambiguous tasks of MSGS are bimodal (standard deviations up to 0.88), so a mean alone would mislead.
Therefore single runs are drawn below each violin. A violin's width is a Gaussian kernel density, with one bandwidth for
all models, reflected at the limits -1 and 1 of the scores.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from hatchery.analysis.aggregates import aggregate_runs, average_of_tasks
from hatchery.analysis.settings import FigureSettings, models_in_order, models_with_counts
from hatchery.analysis.task_averages import AVERAGE, AVERAGE_METRIC, MSGS_AMBIGUOUS_TASKS
from hatchery.rendering.drawing import (
    MUTED,
    Keywords,
    legend_below,
    legend_rows,
    most_lines,
    not_evaluated,
    outline,
    wrapped,
)
from hatchery.rendering.escaping import readable
from hatchery.rendering.style import ModelStyle, Style
from hatchery.views.figures.bias_runs import (
    BIAS_LABEL,
    BiasRuns,
    DotScale,
    bias_axis,
    draw_bias_runs,
    read_bias_runs,
    suites_of,
)
from hatchery.views.figures.marks import (
    PublishedMarks,
    Runs,
    comparable_values,
    failed_handle,
    has_failed,
    has_no_value,
    mean_mark,
    published_handle,
    published_mark,
    run_mark,
    runs_of,
)
from hatchery.views.figures.registry import Declaration, Tables

FIGURE = Declaration(
    title="Linguistic bias",
    needs=("ambiguous_tasks",),
    version=1,
    caption="Linguistic Bias Score of every run on the ambiguous tasks of MSGS: at +1 a model follows the linguistic "
    "feature, and at -1 it follows the surface feature.",
    explanation="""
After Figure 2 of "Not all layers are equally as important: Every Layer Counts BERT" (Charpentier and Samuel, 2023).

The score is the Matthews correlation of the predictions with the linguistic label, on the disambiguating rows of the
ambiguous tasks of MSGS. At +1 a model follows the linguistic feature, and at -1 it follows the surface feature. A
violin shows the runs of all fine-tuning seeds and learning rates on all ambiguous tasks. The number of runs is on the
right, and each run is a dot below its violin. The scores are bimodal, so the mean alone would mislead.

The violin is a Gaussian kernel density of bandwidth 0.1 (the paper states no bandwidth), reflected at -1 and 1. All
violins of a panel have the same area. The bar is the middle half of the runs, the white dot is their median, and the
stroke is the mean of the task means.

Failed runs are hollow dots: their Matthews correlation is 0, mostly because one class is predicted for all rows. They
are counted on the right and, as in the paper, included in all statistics. Runs without a value are in a separate lane;
they also count as failed on the right.

Source: `measurements.parquet`.
""",
    published=True,
)

# The paper states no bandwidth. At 0.1, the two modes of the scores are visible; the bandwidth of Scott's rule would
# merge the modes.
BANDWIDTH = 0.1
GRID_POINTS = 401
FEWEST_RUNS_OF_A_VIOLIN = 3
# Vertical centre and half height of the violin, and of the dots below it, in a row of height 1.
VIOLIN, VIOLIN_HALF = -0.12, 0.3
DOTS, DOTS_HALF = 0.33, 0.13


@dataclass(frozen=True)
class Violin:
    """One row of the figure: the runs of a model on the ambiguous tasks of a suite, with scores in percent.

    `mean` is the mean over tasks of each task's mean score; it is None if a task has no score. `published` is the mean
    in the replicated paper; it is None if the paper prints no mean over these tasks.
    """

    model: str
    runs: Runs
    mean: float | None
    published: float | None

    @property
    def scores(self) -> list[float]:
        """Scores, from -1 to 1, of the runs that have a score."""
        return [value / 100 for value, _ in self.runs if value is not None]


def draw(settings: FigureSettings, tables: Tables) -> Figure:
    """Return the figure, with a panel per suite and a row per model; scores are from -1 on the left to 1 on the right.

    Raises ManifestError for an altered table, and EvaluationError for a task without Matthews correlation.
    """
    panels = violins(settings, read_bias_runs(settings, tables), comparable_values(settings, tables))
    style = settings.style
    rows = [violin for panel in panels.values() for violin in panel]
    lane = any(has_no_value(violin.runs) for violin in rows)
    handles = _legend(rows, style)
    line = style.font_size * 1.5 / 72
    names = models_with_counts(settings.runs)
    labels = {
        model: wrapped(name, style.width_inches * 72 * 0.27, style.font_size * 0.9) for model, name in names.items()
    }
    row = max(0.55, (1.35 * most_lines(list(labels.values())) + 1.5) * style.font_size / 72)
    heights = [len(panel) * row for panel in panels.values()]
    height = sum(heights) + (2.2 * len(panels) + 2.5 + legend_rows(handles, style)) * line
    figure = Figure(figsize=(style.width_inches, height), layout="constrained")
    grid = figure.subplots(len(panels), 1, squeeze=False, gridspec_kw={"height_ratios": heights}, sharex=True)
    looks = settings.looks(models_in_order(settings.runs))
    for axes, (suite, panel) in zip(grid.flat, panels.items(), strict=True):
        bias_axis(axes, lane)
        densest = _densest(panel)
        for place, violin in enumerate(panel):
            _draw_row(axes, violin, place, looks[violin.model], densest, style)
            size = style.font_size * 0.36
            scale = DotScale(size, 2.2 * size / (style.width_inches * 72 * 0.6), 1.2 * size / (72 * row), DOTS_HALF)
            draw_bias_runs(axes, violin.runs, place + DOTS, looks[violin.model], scale)
        axes.set_yticks(range(len(panel)), [labels[violin.model] for violin in panel])
        axes.set_ylim(len(panel) - 0.5, -0.5)
        axes.set_title(readable(suite), loc="left")
        there = {violin.model for violin in panel}
        not_evaluated(axes, [model for model in names if model not in there], style)
        axes.tick_params(axis="x", labelbottom=True)
    grid.flat[-1].set_xlabel(wrapped(BIAS_LABEL, style.width_inches * 72 * 0.66, style.font_size))
    legend_below(figure, handles, style)
    return figure


def violins(settings: FigureSettings, runs: BiasRuns, published: PublishedMarks) -> dict[str, list[Violin]]:
    """Return the figure's rows (one per model) by suite; the models are in the order of the configuration."""
    panels: dict[str, list[Violin]] = {}
    for suite in suites_of(runs):
        tasks = {task.task: models for task, models in runs.items() if task.suite == suite}
        complete = set(tasks) == set(MSGS_AMBIGUOUS_TASKS)
        panels[suite] = []
        for model in models_in_order(settings.runs):
            of_model = [models[model] for models in tasks.values() if model in models]
            if not of_model:
                continue
            value = published.get((model, suite, AVERAGE, AVERAGE_METRIC)) if complete else None
            panels[suite].append(
                Violin(
                    model,
                    [run for rows in of_model for run in runs_of(rows)],
                    # If a task has no value, the suite has no mean.
                    average_of_tasks([aggregate_runs(each) for each in of_model]).mean
                    if len(of_model) == len(tasks)
                    else None,
                    None if value is None else value.mean,
                )
            )
    return panels


def kernel_density(values: Sequence[float], places: np.ndarray) -> np.ndarray:
    """Return the density of the scores `values` (from -1 to 1) at the points `places` (1-D, from -1 to 1).

    The integral over -1 to 1 is 1.
    """
    mirrored = np.concatenate([np.asarray(values), -2 - np.asarray(values), 2 - np.asarray(values)])
    distances = (places[:, None] - mirrored[None, :]) / BANDWIDTH
    kernels: np.ndarray = np.exp(-0.5 * distances**2) / (BANDWIDTH * np.sqrt(2 * np.pi))
    return kernels.sum(axis=1) / len(values)


def _densest(panel: Sequence[Violin]) -> float:
    """Return the highest density in a panel. All violins of the panel are scaled by this density, so that they have the
    same area.
    """
    places = np.linspace(-1.0, 1.0, GRID_POINTS)
    drawn = [violin.scores for violin in panel if len(violin.scores) >= FEWEST_RUNS_OF_A_VIOLIN]
    return max((float(kernel_density(values, places).max()) for values in drawn), default=1.0)


def _draw_row(axes: Axes, violin: Violin, place: int, look: ModelStyle, densest: float, style: Style) -> None:
    middle = place + VIOLIN
    scores = violin.scores
    if len(scores) >= FEWEST_RUNS_OF_A_VIOLIN:
        places = np.linspace(-1.0, 1.0, GRID_POINTS)
        half = VIOLIN_HALF * kernel_density(scores, places) / densest
        axes.fill_between(places, middle - half, middle + half, facecolor=look.colour, alpha=0.35, linewidth=0)
        for side in (middle - half, middle + half):
            axes.plot(places, side, color=outline(look.colour), linewidth=0.9)
        low, median, high = (float(quantile) for quantile in np.quantile(scores, (0.25, 0.5, 0.75)))
        axes.plot([low, high], [middle, middle], **_box(style))
        axes.plot([median], [middle], **_median(style))
    if violin.mean is not None:
        axes.plot([violin.mean / 100], [middle], **mean_mark(style, 1.6))
    if violin.published is not None:
        axes.plot([violin.published / 100], [middle], **published_mark(style, face="white"))
    failed = sum(has_failed([run]) for run in violin.runs)
    text = f"{len(violin.runs)} run{'s' if len(violin.runs) != 1 else ''}" + (f"\n{failed} failed" if failed else "")
    axes.annotate(
        text,
        (1.0, place),
        xycoords=("axes fraction", "data"),
        xytext=(4, 0),
        textcoords="offset points",
        va="center",
        fontsize=style.font_size * 0.8,
        color=MUTED,
    )


def _box(style: Style) -> Keywords:
    width = style.font_size * 0.28
    return {"color": "black", "linewidth": width, "solid_capstyle": "butt", "zorder": 5}


def _median(style: Style) -> Keywords:
    return {
        "marker": "o",
        "markersize": style.font_size * 0.42,
        "markerfacecolor": "white",
        "markeredgecolor": "black",
        "markeredgewidth": 0.8,
        "linestyle": "none",
        "zorder": 6,
    }


def _legend(rows: Sequence[Violin], style: Style) -> list[Artist]:
    handles: list[Artist] = []
    if any(len(violin.scores) >= FEWEST_RUNS_OF_A_VIOLIN for violin in rows):
        handles.append(Line2D([], [], **_box(style), label="middle half of the runs"))
        handles.append(Line2D([], [], **_median(style), label="median"))
    if any(violin.mean is not None for violin in rows):
        handles.append(Line2D([], [], **mean_mark(style), label="mean"))
    if any(violin.published is not None for violin in rows):
        handles.append(published_handle(style))
    handles.append(Line2D([], [], **run_mark(ModelStyle(MUTED, "", "-"), style.font_size * 0.5, False), label="run"))
    if any(has_failed(violin.runs) for violin in rows):
        handles.append(failed_handle(style))
    return handles
