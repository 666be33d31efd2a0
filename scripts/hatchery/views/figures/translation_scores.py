"""BLEU and chrF of translated test sets by model: the mean over seeds with its standard error.

Source: "A Natural Bias for Language Generation Models", Figures 2, 5, 7, 10, 13 and 14.
"""

from dataclasses import replace

import polars as pl
from matplotlib.figure import Figure

from hatchery.analysis.aggregates import mean_and_error
from hatchery.analysis.scores import SHOWN_METRICS
from hatchery.analysis.settings import FigureSettings, labels_of, models_in_order, runs_by_name
from hatchery.analysis.tidy_tables import MEASUREMENTS, read_frame
from hatchery.evaluation.translation_settings import TRANSLATION_SUITE
from hatchery.rendering.drawing import is_narrow, no_measurements
from hatchery.translation.metrics import METRICS
from hatchery.views.figures.marks import MeanRow, draw_means
from hatchery.views.figures.registry import Declaration, Tables

FIGURE = Declaration(
    title="Translation of test sets",
    needs=("translated_tests",),
    version=1,
    caption="BLEU and chrF of every model on the test sets, in points: the mean over seeds with its standard error.",
    explanation="""
Each row of panels shows a test set, and each row in a panel is a model. The dot is the mean over the seeds of the
model, and the bar is the standard error. The range of each axis is the range of the scores in its panel, so distances
are only comparable within a panel.

Source: `measurements.parquet`.
""",
)


def draw(settings: FigureSettings, tables: Tables) -> Figure:
    """Return the figure. Raises ManifestError for an altered table."""
    frame = read_frame(tables["measurements"], MEASUREMENTS, run=runs_by_name(settings.runs))
    chosen = frame.filter((pl.col("suite") == TRANSLATION_SUITE) & pl.col("value").is_not_null())
    tests = chosen["task"].unique(maintain_order=True).to_list() or [""]
    models, style = models_in_order(settings.runs), settings.style
    looks, labels, size = settings.looks(models), labels_of(settings.runs), style.font_size
    columns = 1 if is_narrow(style) else len(METRICS)
    panels = [(test, metric) for test in tests for metric in METRICS]
    rows = -(-len(panels) // columns)
    height = rows * (3.2 + 1.7 * len(models)) * size / 72
    figure = Figure(figsize=(style.width_inches, height), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes, (test, metric) in zip(grid.flat, panels, strict=True):
        values = chosen.filter((pl.col("task") == test) & (pl.col("metric") == metric))
        means = {
            model: mean_and_error(rows["value"].to_list())
            for (model,), rows in values.partition_by("model", as_dict=True).items()
        }
        shown = [
            MeanRow(
                labels[model],
                replace(looks[model], marker="o"),
                (means[model][0], means[model][1] or 0.0) if model in means else None,
            )
            for model in models
        ]
        draw_means(axes, f"{test}, {SHOWN_METRICS[metric]}".lstrip(", "), shown, size)
        if values.is_empty():
            no_measurements(axes)
    return figure
