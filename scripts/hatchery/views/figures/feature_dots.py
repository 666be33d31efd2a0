"""Every run on every ambiguous task of MSGS as a dot, after Figure 3 of ELC-BERT.

Each pair of features is a panel, with linguistic features from top to bottom and surface features from left to right.
Each model is a row of the panel. The runs of all seeds and learning rates are drawn.
"""

import polars as pl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from hatchery.analysis.aggregates import aggregate_runs
from hatchery.analysis.settings import FigureSettings, models_in_order, models_with_counts
from hatchery.analysis.task_averages import LINGUISTIC_FEATURES, SURFACE_FEATURES
from hatchery.rendering.drawing import MUTED, is_narrow, legend_below, legend_rows, most_lines, no_measurements, wrapped
from hatchery.rendering.escaping import readable
from hatchery.rendering.style import ModelStyle, Style
from hatchery.views.figures.bias_runs import (
    METRIC,
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
    title="Linguistic bias by features",
    needs=("ambiguous_tasks",),
    version=1,
    caption="Linguistic Bias Score by pair of features; each dot is one run.",
    explanation="""
After Figure 3 of "Not all layers are equally as important: Every Layer Counts BERT" (Charpentier and Samuel, 2023).

Each panel is an ambiguous task of MSGS: its training data can be explained by a linguistic feature (rows of panels) or
by a surface feature (columns). A dot is one run: one pretraining seed, one fine-tuning seed and one learning rate. The
x axis is the Matthews correlation with the linguistic label on the disambiguating rows. At +1 the run follows the
linguistic feature, and at -1 it follows the surface feature. All runs are drawn. Dots that would hide each other are
moved up or down.

Failed runs (Matthews correlation 0, mostly because one class is predicted for all rows) are hollow dots. Runs without a
value are in a separate lane. The stroke is the mean of all runs with a value, as in the paper.

Source: `measurements.parquet`.
""",
    published=True,
)


def draw(settings: FigureSettings, tables: Tables) -> Figure:
    """Return the figure: for each suite, a grid of panels with linguistic features as rows and surface features as
    columns.

    If a pair of features has no task, its panel contains only the text "not run", and is omitted on phones. Raises
    ManifestError for an altered table, and EvaluationError for a task without Matthews correlation.
    """
    runs, published = read_bias_runs(settings, tables), comparable_values(settings, tables)
    style = settings.style
    models = models_in_order(settings.runs)
    looks = settings.looks(models)
    rows = [
        (suite, feature)
        for suite in suites_of(runs)
        for feature in LINGUISTIC_FEATURES
        if any((task.suite, task.linguistic) == (suite, feature) for task in runs)
    ]
    columns = [feature for feature in SURFACE_FEATURES if any(task.surface == feature for task in runs)]
    by_place = {(task.suite, task.linguistic, task.surface): task for task in runs}
    pairs = [[(*row, surface) for surface in columns] for row in rows]
    if is_narrow(style):
        pairs = [[pair] for row in pairs for pair in row if pair in by_place]
    width = style.width_inches * 72 * 0.84 / len(pairs[0])
    everything = [run for models_of in runs.values() for some in models_of.values() for run in runs_of(some)]
    lane = has_no_value(everything)
    handles = _legend(runs, published, everything, style)
    line = style.font_size * 1.5 / 72
    names = models_with_counts(settings.runs)
    labels = [wrapped(names[model], style.width_inches * 72 * 0.24, style.font_size * 0.9) for model in models]
    inches = max(0.3, (1.35 * most_lines(labels) + 0.4) * style.font_size / 72)
    titles = {pair: wrapped(_title(pair, runs), width, style.font_size) for pair in by_place}
    # Height, in inches, of the text around a panel: title, tick labels and axis label.
    around = (1.2 * most_lines(list(titles.values())) + (2.4 if lane else 1.2) + 3.0) * style.font_size / 72
    height = len(pairs) * (len(models) * inches + around) + (0.5 + legend_rows(handles, style)) * line
    figure = Figure(figsize=(style.width_inches, height), layout="constrained")
    grid = figure.subplots(len(pairs), len(pairs[0]), squeeze=False, sharex=True)
    size = style.font_size * 0.5
    scores = 2.2 * size / (style.width_inches * 72 * 0.7 / len(pairs[0]))
    scale = DotScale(size, scores, 1.1 * size / (72 * inches), 0.36)
    for row, pairs_of_row in enumerate(pairs):
        named = False
        for column, pair in enumerate(pairs_of_row):
            axes = grid[row, column]
            task = by_place.get(pair)
            if task is None:
                axes.set_axis_off()
                no_measurements(axes, "not run")
                continue
            bias_axis(axes, lane)
            for place, model in enumerate(models):
                value = published.get((model, task.suite, task.task, METRIC))
                mark = None if value is None else value.mean
                if model in runs[task]:
                    _draw_row(axes, runs[task][model], place, looks[model], mark, scale, style)
                else:
                    axes.text(0, place, "not run", ha="center", va="center", color=MUTED)
            axes.set_title(titles[pair], loc="left")
            axes.tick_params(axis="x", labelbottom=True)
            # Write the names of the models only at the first panel of a row.
            axes.set_yticks(range(len(models)), [""] * len(models) if named else labels)
            axes.set_ylim(len(models) - 0.5, -0.5)
            if not any(below[column] in by_place for below in pairs[row + 1 :]):
                axes.set_xlabel("linguistic bias score")
            named = True
    legend_below(figure, handles, style)
    return figure


def _title(pair: tuple[str, str, str], runs: BiasRuns) -> str:
    suite, linguistic, surface = pair
    title = f"{LINGUISTIC_FEATURES[linguistic]} (+1) or {SURFACE_FEATURES[surface]} (\N{MINUS SIGN}1)"
    return f"{readable(suite)}: {title}" if len(suites_of(runs)) > 1 else title


def _draw_row(
    axes: Axes,
    rows: pl.DataFrame,
    place: int,
    look: ModelStyle,
    published: float | None,
    scale: DotScale,
    style: Style,
) -> None:
    draw_bias_runs(axes, runs_of(rows), place, look, scale)
    mean = aggregate_runs(rows).mean
    if mean is not None:
        axes.plot([mean / 100], [place], **mean_mark(style, 1.3))
    if published is not None:
        axes.plot([published / 100], [place], **published_mark(style))


def _legend(runs: BiasRuns, published: PublishedMarks, everything: Runs, style: Style) -> list[Artist]:
    grey = ModelStyle(MUTED, "", "-")
    handles: list[Artist] = [Line2D([], [], **run_mark(grey, style.font_size * 0.5, False), label="run")]
    if has_failed(everything):
        handles.append(failed_handle(style))
    if any(value is not None for value, _ in everything):
        handles.append(Line2D([], [], **mean_mark(style), label="mean"))
    if any((model, task.suite, task.task, METRIC) in published for task, models in runs.items() for model in models):
        handles.append(published_handle(style))
    return handles
