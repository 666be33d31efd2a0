"""Scores of fine-tuned models by task: mean and standard deviation of each model, and the score of each of its runs.

Each suite is a panel with a row per task and model; the names thus need no rotation. If the score is an accuracy, the
dashed line is the accuracy of the most frequent label. If the experiment names a paper, the open diamond is the
published mean.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from hatchery.analysis.aggregates import Aggregate, aggregate_runs
from hatchery.analysis.read_tables import read_measurements
from hatchery.analysis.settings import (
    FigureSettings,
    models_in_order,
    models_with_counts,
)
from hatchery.analysis.summary_rows import summarised_text
from hatchery.analysis.task_averages import AVERAGE_METRIC, task_averages
from hatchery.evaluation.minimal_pairs.measurements import ACCURACY
from hatchery.rendering.drawing import GRID, MUTED, Keywords, legend_below, legend_rows, most_lines, outline, wrapped
from hatchery.rendering.escaping import readable
from hatchery.rendering.style import ModelStyle, Style
from hatchery.views.figures.marks import (
    PublishedMarks,
    Runs,
    comparable_values,
    failed_handle,
    published_handle,
    published_mark,
    run_mark,
    runs_of,
)
from hatchery.views.figures.registry import Declaration, Tables

FIGURE = Declaration(
    title="Task scores",
    needs=("tasks",),
    version=1,
    caption="Scores after fine-tuning, by task: large markers are means over runs, with the standard deviation as "
    "whisker, and small markers are single runs. The dashed line is the score of always predicting the most "
    "frequent label.",
    explanation="""
There is one panel per suite. A large marker is the mean of a model over its runs (pretraining seeds, fine-tuning seeds
and learning rates), and its whisker is the sample standard deviation. The small markers are the single runs. The score
is the first metric of the task, in percent; a Matthews correlation is multiplied by 100.

Failed runs are hollow: for example, one class is predicted for all rows, or the Matthews correlation is 0. As in
papers, mean and deviation include failed runs. Runs without a score are not included. The text on the right counts runs
that failed or have no score. An average is the mean of the task means; as in papers, its whisker is the root mean
square of the task deviations.

Each panel has its own range, which need not begin at 0. If the metric is an accuracy, the dashed line is the accuracy
of always predicting the most frequent label. If there are more than 300 scores, only averages are drawn; `summary.csv`
contains all scores.

Source: `measurements.parquet`.
""",
    published=True,
)

# Maximum of all metrics. A metric is a percentage, or a correlation multiplied by 100.
BEST = 100.0
# With more scores than this number, the figure would fill several screens, so it shows only averages.
MOST_SCORES = 300
MAJORITY = {"color": "black", "linestyle": (0, (3, 2)), "linewidth": 1.0}


@dataclass(frozen=True)
class TaskScore:
    """The scores of one model in percent: mean and standard deviation over its runs, the score of each run (empty for
    an average over tasks), and the published mean.
    """

    aggregate: Aggregate
    runs: Runs
    published: float | None


@dataclass(frozen=True)
class TaskScores:
    """The scores of one task, or averages over the tasks of a suite, by model; `metric` is a name such as `f1_percent`.

    `blind_guess` is the accuracy of always predicting the most frequent label, None for other metrics. `average` is
    True for averages over tasks.
    """

    task: str
    metric: str
    scores: Mapping[str, TaskScore]
    blind_guess: float | None = None
    average: bool = False


def draw(settings: FigureSettings, tables: Tables) -> Figure:
    """Return the figure: panels of suites from top to bottom, each with its own range of scores, and one legend.

    Raises ManifestError for an altered table.
    """
    measured = read_measurements(tables["measurements"], settings.runs, "finetuning")
    panels = readable_part(suite_scores(settings, measured, comparable_values(settings, tables)))
    style = settings.style
    models = models_in_order(settings.runs)
    looks = settings.looks(models)
    handles = _legend(settings, looks, panels)
    line = style.font_size * 1.5 / 72
    labels = {suite: [_name(task, style) for task in panel] for suite, panel in panels.items()}
    group = _group_inches(len(models), most_lines([name for names in labels.values() for name in names]), style)
    heights = [len(panel) * group for panel in panels.values()]
    height = sum(heights) + (4.0 * len(panels) + 0.5 + legend_rows(handles, style)) * line
    figure = Figure(figsize=(style.width_inches, height), layout="constrained")
    grid = figure.subplots(len(panels), 1, squeeze=False, gridspec_kw={"height_ratios": heights})
    for axes, (suite, panel) in zip(grid.flat, panels.items(), strict=True):
        _finish_axis(axes, *_range(panel))
        for group_place, task in enumerate(panel):
            _draw_task(axes, task, group_place, looks, style)
        axes.set_yticks(range(len(panel)), labels[suite])
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(len(panel) - 0.5, -0.5)
        axes.grid(visible=True, axis="x")
        axes.set_title(readable(suite), loc="left")
        axes.set_xlabel("score (%)")
    legend_below(figure, handles, style)
    return figure


def readable_part(panels: dict[str, list[TaskScores]]) -> dict[str, list[TaskScores]]:
    """Return only the averages over tasks if there are more than MOST_SCORES scores. Otherwise, and if there are no
    averages, return all `panels`.
    """
    if sum(len(task.scores) for panel in panels.values() for task in panel) <= MOST_SCORES:
        return panels
    averages = {suite: [task for task in panel if task.average] for suite, panel in panels.items()}
    return {suite: panel for suite, panel in averages.items() if panel} or panels


def suite_scores(
    settings: FigureSettings, measured: pl.DataFrame, published: PublishedMarks
) -> dict[str, list[TaskScores]]:
    """Return for each suite the scores of its tasks (main metric of each task, sorted by task), then the averages over
    tasks.
    """
    models = models_in_order(settings.runs)
    panels: dict[str, list[TaskScores]] = {}
    for (suite,), mine in sorted(measured.partition_by("suite", as_dict=True).items()):
        tasks = mine.filter("primary").partition_by("task", as_dict=True)
        panels[suite] = [_task(suite, task, rows, models, published) for (task,), rows in sorted(tasks.items())]
        panels[suite] += _averages(suite, mine, models, published)
    return panels


def _task(suite: str, task: str, rows: pl.DataFrame, models: Sequence[str], published: PublishedMarks) -> TaskScores:
    metric, scores = rows["metric"][0], {}
    for model in models:
        own = rows.filter(pl.col("model") == model)
        scores[model] = TaskScore(aggregate_runs(own), runs_of(own), _published(published, model, suite, task, metric))
    return TaskScores(task, metric, scores, rows["blind_guess"][0] if metric == ACCURACY else None)


def _averages(suite: str, rows: pl.DataFrame, models: Sequence[str], published: PublishedMarks) -> list[TaskScores]:
    found: dict[str, dict[str, TaskScore]] = {}
    for model in models:
        for average in task_averages(suite, rows.filter(pl.col("model") == model)):
            if average.metric == AVERAGE_METRIC:
                value = _published(published, model, suite, average.task, AVERAGE_METRIC)
                found.setdefault(average.task, {})[model] = TaskScore(average.aggregate, (), value)
    return [TaskScores(task, AVERAGE_METRIC, scores, average=True) for task, scores in found.items()]


def _published(published: PublishedMarks, model: str, suite: str, task: str, metric: str) -> float | None:
    value = published.get((model, suite, task, metric))
    return None if value is None else value.mean


def _name(task: TaskScores, style: Style) -> str:
    name = f"{readable(task.task)} ({readable(task.metric.removesuffix('_percent'))})"
    return wrapped(name, style.width_inches * 72 * 0.28, style.font_size * 0.9)


def _group_inches(models: int, lines: int, style: Style) -> float:
    """Return the height, in inches, of the part of the figure that shows one task: a row per model, and at least the
    height of the task's name.
    """
    row = max(0.15, style.font_size * 1.05 / 72)
    return max((models + 0.8) * row, (1.35 * lines + 0.4) * style.font_size / 72)


def _range(panel: Sequence[TaskScores]) -> tuple[float, float]:
    """Return the ends of the axis in percent: the range of all plotted values, with a margin."""
    seen = []
    for task in panel:
        seen += [] if task.blind_guess is None else [task.blind_guess]
        for score in task.scores.values():
            seen += [value for value, _ in score.runs if value is not None]
            seen += [] if score.published is None else [score.published]
            if score.aggregate.mean is not None:
                deviation = score.aggregate.std or 0.0
                seen += [score.aggregate.mean - deviation, score.aggregate.mean + deviation]
    if not seen:
        return 0.0, BEST
    low, high = 10 * math.floor((min(seen) - 1) / 10), 10 * math.ceil((max(seen) + 1) / 10)
    if min(seen) >= 0:
        low = max(low, 0)
    return float(low), min(float(high), BEST)


def _finish_axis(axes: Axes, low: float, high: float) -> None:
    """Set ticks from `low` to `high`, and widen the axis so that markers at its ends are not clipped."""
    margin = 0.02 * (high - low)
    axes.set_xlim(low - margin, high + margin)
    ticks = MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    axes.set_xticks([tick for tick in ticks if low <= tick <= high])


def _draw_task(axes: Axes, task: TaskScores, group: int, looks: Mapping[str, ModelStyle], style: Style) -> None:
    thickness = 1 / (len(looks) + 0.8)
    half = thickness * (len(looks) + 0.3) / 2
    if group:
        axes.axhline(group - 0.5, color=MUTED if task.average else GRID, linewidth=0.8, zorder=0)
    if task.blind_guess is not None:
        axes.plot([task.blind_guess] * 2, [group - half, group + half], **MAJORITY)  # type: ignore[arg-type]
    for index, (model, look) in enumerate(looks.items()):
        score = task.scores.get(model)
        if score is None:
            continue
        place = group + (index - (len(looks) - 1) / 2) * thickness
        _draw_score(axes, score, place, place + 0.32 * thickness, look, style)


def _draw_score(axes: Axes, score: TaskScore, place: float, dots: float, look: ModelStyle, style: Style) -> None:
    size = style.font_size * 0.26
    for failed in (False, True):
        values = [value for value, reason in score.runs if value is not None and bool(reason) == failed]
        if values:
            axes.plot(values, [dots] * len(values), **run_mark(look, size * (1.4 if failed else 1.0), failed))
    aggregate = score.aggregate
    if aggregate.mean is not None:
        if aggregate.std is not None:
            axes.errorbar(
                aggregate.mean, place, xerr=aggregate.std, color="black", lw=0.8, capsize=style.font_size * 0.15
            )
        axes.plot([aggregate.mean], [place], **_mean(look, style))
    if score.published is not None:
        axes.plot([score.published], [place], **published_mark(style))
    axes.annotate(
        _text(aggregate),
        (1.0, place),
        xycoords=("axes fraction", "data"),
        xytext=(5, 0),
        textcoords="offset points",
        va="center_baseline",
        fontsize=style.font_size * 0.72,
    )


def _mean(look: ModelStyle, style: Style) -> Keywords:
    return {
        "marker": look.marker,
        "markersize": style.font_size * 0.6,
        "markerfacecolor": look.colour,
        "markeredgecolor": outline(look.colour),
        "markeredgewidth": 0.6,
        "linestyle": "none",
        "zorder": 6,
    }


def _text(aggregate: Aggregate) -> str:
    """Return mean and deviation as text, as in the summary, and the number of runs that failed or have no score."""
    parts = []
    if aggregate.mean is not None:
        deviation = "" if aggregate.std is None else f" ± {summarised_text(aggregate.std)}"
        parts.append(f"{summarised_text(aggregate.mean)}{deviation}".replace("-", "\N{MINUS SIGN}"))
    if failed := aggregate.n_failed + aggregate.n_without_number:
        parts.append(f"{failed} failed")
    return ", ".join(parts)


def _legend(
    settings: FigureSettings,
    looks: Mapping[str, ModelStyle],
    panels: Mapping[str, Sequence[TaskScores]],
) -> list[Artist]:
    style = settings.style
    names = models_with_counts(settings.runs)
    handles: list[Artist] = [Line2D([], [], **_mean(look, style), label=names[model]) for model, look in looks.items()]
    tasks = [task for panel in panels.values() for task in panel]
    scores = [score for task in tasks for score in task.scores.values()]
    grey = ModelStyle(MUTED, "", "-")
    handles.append(Line2D([], [], **run_mark(grey, style.font_size * 0.3, False), label="run"))
    if any(failed for score in scores for _, failed in score.runs):
        handles.append(failed_handle(style))
    if any(score.published is not None for score in scores):
        handles.append(published_handle(style))
    if any(task.blind_guess is not None for task in tasks):
        handles.append(Line2D([], [], **MAJORITY, label="most frequent label"))  # type: ignore[arg-type]
    return handles
