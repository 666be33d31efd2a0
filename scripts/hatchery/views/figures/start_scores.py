"""Translation scores, and the areas under the learning curves of these scores, for each initialisation of the output
bias.

Source: "A Natural Bias for Language Generation Models", Figures 2, 3, 5 to 8, 10, 13 and 14. The data come from the
analysis `starts`.
"""

from collections.abc import Iterator, Mapping, Sequence

from matplotlib.figure import Figure

from hatchery.analysis.scores import SHOWN_METRICS
from hatchery.analysis.settings import FigureSettings, labels_of
from hatchery.rendering.drawing import is_narrow, no_measurements
from hatchery.rendering.escaping import readable
from hatchery.rendering.style import model_styles
from hatchery.translation.metrics import METRICS
from hatchery.views.figures.marks import MeanRow, draw_means
from hatchery.views.figures.registry import Declaration, Tables, numbers_of

FIGURE = Declaration(
    title="Starts of the output bias",
    needs=("starts",),
    all_models=True,
    version=1,
    caption="Translation scores by initialisation of the output bias, for each experiment, in points: scores on test "
    "sets, and areas under the learning curves on development text over the first steps. Dots are means over "
    "seeds, and bars are standard errors.",
    explanation="""
A row of panels shows the scores on a test set of an experiment, or the areas under its learning curves divided by the
number of steps. The dot is the mean over the seeds of a model, and the bar is the standard error. Each panel has its
own axis, which spans at least half a point.

Source: `numbers.csv` of the analysis `starts`.
""",
)

LEAST_SPAN = 0.5
"""Minimum range of an axis in points, as in the paper."""

Rows = Sequence[Mapping[str, str]]
Panel = tuple[str, str, dict[str, tuple[float, float]]]
"""(title, metric, values); the values are (mean, standard error) by model, and the error is 0 for a single seed."""


def draw(settings: FigureSettings, tables: Tables) -> Figure:
    """Return the figure. Raises ManifestError for an altered table."""
    entries = numbers_of(tables, "starts")
    panels = [panel for rows in entries.values() for panel in panels_of(rows)]
    style, labels, size = settings.style, labels_of(settings.runs), settings.style.font_size
    columns = 1 if is_narrow(style) else len(METRICS)
    lines = [max(2, *(len(found) for *_, found in panels[at : at + columns])) for at in range(0, len(panels), columns)]
    heights = [(4.6 + 1.5 * count) * size / 72 for count in lines or [8]]
    figure = Figure(figsize=(style.width_inches, sum(heights)), layout="constrained")
    grid = figure.subplots(len(heights), columns, squeeze=False, gridspec_kw={"height_ratios": heights})
    if not panels:
        no_measurements(grid.flat[0])
    for axes, (title, metric, found) in zip(grid.flat, panels, strict=False):
        styles = model_styles(list(found), style)
        rows = [
            MeanRow(labels.get(model, model).partition("/")[2] or model, styles[model], mean)
            for model, mean in found.items()
        ]
        draw_means(axes, f"{title}, {metric}", rows, size, least=2)
        low, high = axes.get_xlim()
        lacking = max(0.0, LEAST_SPAN - (high - low))
        if lacking:
            axes.set_xlim(low - lacking / 2, high + lacking / 2)
    return figure


def panels_of(rows: Rows) -> Iterator[Panel]:
    """Yield the panels of the figure, made from `rows` of `numbers.csv`. For each experiment, the scores of the test
    sets precede the areas under the learning curves, and BLEU is next to chrF.
    """
    found: dict[tuple[str, str, str], dict[str, tuple[float, float]]] = {}
    for row in rows:
        kind, _, metric = row["metric"].rpartition("_")
        if kind in ("", "alc"):
            task = readable(row["task"]) if kind == "" else f"area, {readable(row['task'])}"
            key = (row["model"].partition("/")[0], task, metric)
            found.setdefault(key, {})[row["model"]] = float(row["mean"]), float(row["standard_error"] or 0.0)
    for experiment in dict.fromkeys(experiment for experiment, _, _ in found):
        tasks = dict.fromkeys(task for name, task, _ in found if name == experiment)
        for task in sorted(tasks, key=lambda task: task.startswith("area, ")):
            for metric in METRICS:
                yield f"{experiment}\n{task}", SHOWN_METRICS[metric], found.get((experiment, task, metric), {})
