"""Scores of intermediate checkpoints against the number of words seen in training, with a panel for each suite
or task.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from hatchery.analysis.aggregates import aggregate_values
from hatchery.analysis.comparability import distinguishing_labels
from hatchery.analysis.read_tables import read_measurements, read_runs
from hatchery.analysis.scores import metric_name
from hatchery.analysis.settings import models_in_order, models_with_counts
from hatchery.evaluation.minimal_pairs.measurements import ACCURACY, PAIR_AVERAGE, PARADIGM_AVERAGE
from hatchery.experiment.seeded_run import SeededRun
from hatchery.rendering.drawing import (
    MUTED,
    abbreviated,
    entry_rows,
    grid_shape,
    is_narrow,
    legend_below,
    line_handles,
    no_measurements,
    wrapped,
)
from hatchery.rendering.escaping import readable
from hatchery.views.figures.marks import Point, draw_band
from hatchery.views.figures.needs import MilestonesFigure
from hatchery.views.figures.registry import Declaration, Tables

FIGURE = Declaration(
    title="Scores over words seen",
    needs=("milestones", "runs"),
    version=1,
    caption="Scores of intermediate checkpoints against the number of words seen in training, including repetitions. "
    "Lines are means over pretraining seeds, and the band is their standard deviation. With a single seed, "
    "the band is the 95 % confidence interval due to the sampling of the items, if it is known. The dashed "
    "line is chance.",
    explanation="""
A panel shows a suite or a task that `evaluate_milestones` names. A point is an intermediate checkpoint; the last point
is the finished model. The score of a suite of minimal pairs is the mean over paradigms, as in BabyLM since 2025. For
the suites of BabyLM's multilingual track, it is the mean over pairs. The score of a task is its first metric.

With several pretraining seeds, the band is their sample standard deviation. With one seed, the band is the 95 %
confidence interval of the score, due to the sampling of the items. The x axis is logarithmic if the numbers of words
differ by a large factor. The dashed line is the score of a blind guess. Scores that are not comparable have separate
panels.

Source: `measurements.parquet`, `runs.parquet`.
""",
)

FAR_APART = 20
"""Ratio of the largest to the smallest number of words from which the x axis is logarithmic."""
COLUMNS = 3


@dataclass
class Lines:
    """One panel. `points` are (number of words seen, score, standard deviation due to the choice of test items) of each
    seed, by model and milestone.

    `chance` contains the scores of a blind guess, which does not use the items.
    """

    metric: str
    points: dict[str, dict[str, list[tuple[float, float, float | None]]]] = field(default_factory=dict)
    chance: set[float] = field(default_factory=set)

    def points_of(self, model: str) -> list[Point]:
        """Return the points of a model, sorted by number of words."""
        found = []
        for seeds in self.points.get(model, {}).values():
            scores = aggregate_values([(value, "", sampling) for _, value, sampling in seeds])
            assert scores.mean is not None
            found.append((sum(words for words, _, _ in seeds) / len(seeds), scores.mean, scores.whisker or 0.0))
        return sorted(found)


def draw(settings: MilestonesFigure, tables: Tables) -> Figure:
    """Return the figure. Raises ManifestError for an altered table."""
    runs = (*settings.runs, *settings.milestones)
    words = {row["run"]: row["words"] for row in read_runs(tables["runs"], runs)}
    panels = panels_of(runs, words, read_measurements(tables["measurements"], runs))
    models, style = models_in_order(settings.runs), settings.style
    looks, labels, size = settings.looks(models), models_with_counts(settings.runs), settings.style.font_size
    rows, columns = grid_shape(max(1, len(panels)), 1 if is_narrow(style) else COLUMNS)
    legend = entry_rows(list(labels.values()), style)
    height = rows * style.width_inches * (0.7 if columns == 1 else 0.85 / columns) + (4 + 1.6 * legend) * size / 72
    figure = Figure(figsize=(style.width_inches, height), layout="constrained")
    grid = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes, (title, lines) in zip(grid, panels.items() or [("", Lines(ACCURACY))], strict=False):
        for model in models:
            if points := lines.points_of(model):
                highest = 100.0 if lines.metric.endswith("_percent") else None
                draw_band(axes, points, looks[model], highest, marker="o", markersize=size * 0.3)
        _finish(axes, wrapped(title, style.width_inches * 72 / columns * 0.8, size), lines)
    for axes in grid[len(panels) or 1 :]:
        axes.set_visible(False)
    legend_below(figure, line_handles(labels, looks, linewidth=1.6), style)
    return figure


def panels_of(runs: Iterable[SeededRun], words: Mapping[str, int | None], measured: pl.DataFrame) -> dict[str, Lines]:
    """Return the panels; the keys are their titles, and the order is that of the rows of `measured`. Panels show the
    suites, splits and tasks in which milestones have scores.

    `words` is the number of words that each run has seen; a run has no point if this number is unknown (None).
    """
    named = {run.name: run for run in runs}
    trainings = {run.name: run.model for run in named.values() if not run.milestone_of}
    by_pair = measured.filter(pl.col("task") == PAIR_AVERAGE)["suite"].unique().to_list()
    average = pl.when(pl.col("suite").is_in(by_pair)).then(pl.lit(PAIR_AVERAGE)).otherwise(pl.lit(PARADIGM_AVERAGE))
    shown = measured.filter(
        pl.when(pl.col("kind") == "minimal_pairs")
        .then((pl.col("task") == average) & (pl.col("metric") == ACCURACY))
        .otherwise(pl.col("level").is_in(["task", "split"]) & pl.col("primary") & pl.col("main")),
        pl.col("value").is_not_null(),
    )
    columns = ("suite", "task", "metric", "run", "value", "sampling_deviation", "blind_guess")
    rows = shown.select(*columns, pl.col("basis").fill_null("")).rows()
    of_milestones = {row[:3] for row in rows if named[row[3]].milestone_of}
    seen = {run: number for run, number in words.items() if number is not None}
    rows = [row for row in rows if row[:3] in of_milestones and row[3] in seen]
    bases: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        bases.setdefault(row[:3], []).append(row[-1])
    labels = {key: distinguishing_labels(own) for key, own in bases.items()}
    found: dict[str, Lines] = {}
    for suite, task, metric, name, value, sampling, guess, basis in rows:
        run = named[name]
        title = readable(suite if task in (PARADIGM_AVERAGE, PAIR_AVERAGE) else f"{suite} {task}")
        parts = (title, metric_name(metric), labels[suite, task, metric][basis])
        lines = found.setdefault(", ".join(filter(None, parts)), Lines(metric))
        model = trainings.get(run.milestone_of, run.model)
        milestone = run.milestone if run.milestone_of else ""
        lines.points.setdefault(model, {}).setdefault(milestone, []).append((seen[name], value, sampling))
        if guess is not None:
            lines.chance.add(guess)
    return found


def _finish(axes: Axes, title: str, lines: Lines) -> None:
    axes.set_title(title, loc="left")
    axes.set_xlabel("words seen")
    places = [words for seen in lines.points.values() for seeds in seen.values() for words, _, _ in seeds if words > 0]
    if not places:
        no_measurements(axes)
        return
    if max(places) >= FAR_APART * min(places):
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(abbreviated))
    axes.grid(visible=True)
    for chance in lines.chance:
        axes.axhline(chance, color=MUTED, linestyle=(0, (4, 2)), linewidth=1.0, zorder=1)
        # Curves begin near chance level and would cover a label on the left, so write the label at the right end.
        axes.annotate(
            "chance",
            (1.0, chance),
            xycoords=("axes fraction", "data"),
            xytext=(-2, -2),
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize="small",
            color=MUTED,
        )
