"""Gain in the log-likelihood of a regression of reading times, if a language model's surprisals are added as
predictors.

A table of reading times has one or more responses (columns with reading times). Each response is drawn as a row of two
panels. In one panel, the x axis is the model's perplexity; in the other panel, the x axis is the number of words that
the model has seen.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import fmean

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from hatchery.analysis.aggregates import aggregate_values
from hatchery.analysis.comparability import distinguishing_labels
from hatchery.analysis.read_tables import read_measurements, read_runs
from hatchery.analysis.settings import models_in_order, models_with_counts
from hatchery.evaluation.reading_times.measurements import PER_WORD, PERPLEXITY_OF_WORDS
from hatchery.experiment.seeded_run import SeededRun
from hatchery.rendering.drawing import (
    MUTED,
    abbreviated,
    entry_rows,
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
    title="Likelihood gain of reading times",
    needs=("reading_times", "runs"),
    version=1,
    caption="Gain in log-likelihood per word if a model's surprisals are added to a regression of reading times, "
    "against the perplexity of the model on the same texts, and against the number of words that the "
    "model has seen. Lines are means over pretraining seeds. The band is their standard deviation. "
    "With a single seed, the band is the 95 % confidence interval due to the sampling of the readers or, in "
    "a table without readers, of the items.",
    explanation="""
A row of panels shows a table of reading times, or one response of a table with several responses. A point is a finished
model or, if `evaluate_milestones` contains `reading_times`, an intermediate checkpoint; a line joins the points of a
training.

The gain is a difference of two maximum log-likelihoods: of the regression with the model's surprisals, and of the
regression without them. It is divided by the number of rows, and given in thousandths of a nat. The perplexity is per
word of the texts, so it is comparable across tokenizers. Masked models also see the following words, so their
perplexity is a pseudo-perplexity. Both x axes are logarithmic. The number of training words of imported models is
unknown, so imported models are only in the panels of perplexity. Gains that are not comparable have separate rows.

Source: `measurements.parquet`, `runs.parquet`.
""",
)


@dataclass
class Gains:
    """The points to draw for one response (a column of reading times), by model and milestone. Each seed is a tuple
    (perplexity, number of words seen, gain in log-likelihood, standard deviation of the gain due to the sampling of
    readers or items).

    Unknown values are None.
    """

    points: dict[str, dict[str, list[tuple[float | None, float | None, float, float | None]]]] = field(
        default_factory=dict
    )

    def points_of(self, model: str, axis: int) -> list[Point]:
        """Return a point for each milestone of a model, averaged over seeds. Points are sorted by their x coordinate,
        which is the perplexity (`axis` 0) or the number of words seen (`axis` 1).

        A milestone has no point if its x coordinate is unknown for any seed.
        """
        found = []
        for seeds in self.points.get(model, {}).values():
            places = [seed[axis] for seed in seeds]
            known = [place for place in places if place is not None]
            if len(known) < len(places):
                continue
            gain = aggregate_values([(value, "", deviation) for _, _, value, deviation in seeds])
            assert gain.mean is not None
            found.append((fmean(known), gain.mean, gain.whisker or 0.0))
        return sorted(found)


def draw(settings: MilestonesFigure, tables: Tables) -> Figure:
    """Return the figure. Raises ManifestError for an altered table."""
    runs = (*settings.runs, *settings.milestones)
    words = {row["run"]: row["words"] for row in read_runs(tables["runs"], runs)}
    rows = rows_of(runs, words, read_measurements(tables["measurements"], runs, kind="reading_times"))
    models, style = models_in_order(settings.runs), settings.style
    looks, labels, size = settings.looks(models), models_with_counts(settings.runs), settings.style.font_size
    shown = list(rows.items()) or [("", Gains())]
    columns = 1 if is_narrow(style) else 2
    n_rows = len(shown) * (2 // columns)
    legend = entry_rows(list(labels.values()), style)
    height = n_rows * style.width_inches * (0.7 if columns == 1 else 0.4) + (4 + 1.6 * legend) * size / 72
    figure = Figure(figsize=(style.width_inches, height), layout="constrained")
    grid = figure.subplots(n_rows, columns, squeeze=False).reshape(len(shown), 2)
    for (title, gains), own in zip(shown, grid, strict=True):
        for axis, axes in enumerate(own):
            for model in models:
                if points := gains.points_of(model, axis):
                    draw_band(axes, points, looks[model], marker=looks[model].marker, markersize=size * 0.4)
            label = "words seen" if axis else "perplexity per word"
            _finish(axes, wrapped(title, style.width_inches * 72 / columns * 0.8, size), label)
    legend_below(figure, line_handles(labels, looks, linewidth=1.6), style)
    return figure


def rows_of(runs: Iterable[SeededRun], words: Mapping[str, int | None], measured: pl.DataFrame) -> dict[str, Gains]:
    """Return the data of each row of panels; the keys are the titles of these rows. The order is that of the rows of
    `measured`. `words` is the number of words that each run has seen.
    """
    named = {run.name: run for run in runs}
    trainings = {run.name: run.model for run in named.values() if not run.milestone_of}
    perplexity = {
        (run, task): value
        for run, task, value in measured.filter(metric=PERPLEXITY_OF_WORDS).select("run", "task", "value").iter_rows()
    }
    columns = ("task", "run", "value", "sampling_deviation")
    gains = measured.filter(pl.col("value").is_not_null(), metric=PER_WORD)
    rows = gains.select(*columns, pl.col("basis").fill_null("")).rows()
    bases: dict[str, list[str]] = {}
    for task, *_, basis in rows:
        bases.setdefault(task, []).append(basis)
    labels = {task: distinguishing_labels(own) for task, own in bases.items()}
    found: dict[str, Gains] = {}
    for task, name, value, deviation, basis in rows:
        run = named[name]
        row = found.setdefault(", ".join(filter(None, (readable(task), labels[task][basis]))), Gains())
        model = trainings.get(run.milestone_of, run.model)
        milestone = run.milestone if run.milestone_of else ""
        of_texts = perplexity.get((name, task.partition("/")[0]))
        seeds = row.points.setdefault(model, {}).setdefault(milestone, [])
        seeds.append((of_texts, words.get(name) or None, value, deviation))
    return found


def _finish(axes: Axes, title: str, label: str) -> None:
    axes.set_title(title, loc="left")
    axes.set_xlabel(label)
    axes.set_ylabel("gain (millinats per word)")
    if not axes.lines:
        no_measurements(axes)
        return
    axes.set_xscale("log")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(abbreviated))
    axes.axhline(0, color=MUTED, linestyle=(0, (4, 2)), linewidth=1.0, zorder=1)
    axes.grid(visible=True)
