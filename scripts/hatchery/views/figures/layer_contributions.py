"""Contributions of the layers to each probed task, as heatmaps after Table 5 of LTG-BERT (Samuel et al., 2023).

Each model is a panel with a row per task. If there are more models than tasks, each task is a panel with a row per
model. Columns are layers, and a row's cells sum to 100 %. The last column is the slope of a least-squares line over the
layers, in percentage points per layer. Darker cells have higher values, so colour-blind readers can also compare the
cells.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from hatchery.analysis.read_tables import LayerContribution, read_layer_contributions
from hatchery.analysis.settings import FigureSettings, models_in_order, models_with_counts
from hatchery.rendering.drawing import GRID, MUTED, colour_bar, colour_on
from hatchery.rendering.escaping import readable
from hatchery.views.figures.registry import Declaration, Tables

FIGURE = Declaration(
    title="Layer contributions",
    needs=("probes",),
    version=1,
    caption="Weights of the layers in the probes, in percent, averaged over runs.",
    explanation="""
After Table 5 of "Trained on 100 million words and still in shape: BERT meets British National Corpus" (Samuel et al.,
2023).

A probe reads a learned weighted mean of one vector per layer of the model: the contribution or the output of the layer
(option `layer_reading` of the head). The weights, in percent, are the contributions of the layers to the probe. They
are averaged over the runs of a probe, and over both poolers if a task has two spans. The last column is the slope of a
least-squares line over the layers. A negative slope means that the probe mainly reads early layers. There is one panel
per model, or one panel per task if there are fewer tasks than models.

Source: `layers.parquet`.
""",
)

COLOURS = {"okabe_ito": "Blues", "grey": "Greys"}
LARGEST_AT_LEAST = 20.0
SMALLEST_CELL_POINTS = 22.0
LARGEST_CELL_INCHES = 0.75
# Width of the column of slopes, which follows the last layer, in cell widths.
SLOPE_CELLS = 1.2
# With more rows than this number, each row is only as high as its text.
MOST_HIGH_ROWS = 24

Rows = Sequence[tuple[str, LayerContribution]]


def draw(settings: FigureSettings, tables: Tables) -> Figure:
    """Return the figure. Raises ManifestError for an altered table, and EvaluationError if the seeds of a model have
    different numbers of layers.
    """
    return draw_layer_contributions(settings, read_layer_contributions(tables["layers"], settings.runs))


def draw_layer_contributions(settings: FigureSettings, contributions: Sequence[LayerContribution]) -> Figure:
    """Return the figure: the heatmaps of all panels from top to bottom, with one common colour scale."""
    style = settings.style
    panels = _panels(settings, contributions)
    depth = max(len(entry.percent) for entry in contributions)
    line = style.font_size / 72
    names = 0.62 * line * max(len(row) for _, rows in panels for row, _ in rows)
    cell = (style.width_inches - names - 3 * line) / (depth + SLOPE_CELLS)
    cell = max(min(cell, LARGEST_CELL_INCHES), SMALLEST_CELL_POINTS / 72)
    row = max(0.62 * cell, 1.9 * line) if len(contributions) <= MOST_HIGH_ROWS else 1.9 * line
    heights = [len(rows) * row for _, rows in panels]
    width = cell * (depth + SLOPE_CELLS) + names + 3 * line
    height = sum(heights) + len(panels) * 5.5 * line + 5.5 * line
    figure = Figure(figsize=(width, height), layout="constrained")
    grid = figure.subplots(len(panels), 1, squeeze=False, gridspec_kw={"height_ratios": heights})
    largest = max(percent for entry in contributions for percent in entry.percent)
    mapping = ScalarMappable(Normalize(0.0, max(LARGEST_AT_LEAST, largest)), COLOURS[style.colours])
    font_size = min(style.font_size * 0.9, cell * 72 * 0.32)
    for axes, (heading, rows) in zip(grid.flat, panels, strict=True):
        _heatmap(axes, rows, depth, mapping, font_size)
        axes.set_title(heading, loc="left")
    grid.flat[-1].set_xlabel("layer")
    # Matplotlib expects thickness and distance as fractions of the figure's height. This height grows with the number
    # of panels.
    thickness, distance = 2 * line / height, 1.5 * line / height
    colour_bar(figure, mapping, grid, "contribution (%)", shrink=0.7, fraction=thickness, pad=distance)
    return figure


def _panels(settings: FigureSettings, contributions: Sequence[LayerContribution]) -> list[tuple[str, Rows]]:
    """Return (heading, rows) of each panel: a panel per model, or per task if there are fewer tasks than models."""
    labels = models_with_counts(settings.runs)
    models = [model for model in models_in_order(settings.runs) if any(c.model == model for c in contributions)]
    tasks = list(dict.fromkeys(entry.task for entry in contributions))
    if len(models) > len(tasks):
        of = {(entry.task, entry.model): entry for entry in contributions}
        return [
            (readable(task), [(labels[model], of[task, model]) for model in models if (task, model) in of])
            for task in tasks
        ]
    return [
        (labels[model], [(readable(entry.task), entry) for entry in contributions if entry.model == model])
        for model in models
    ]


def _heatmap(axes: Axes, rows: Rows, depth: int, mapping: ScalarMappable, font_size: float) -> None:
    """Draw the heatmap of one panel, with each cell as a rectangle. `imshow` would store a bitmap in the SVG."""
    axes.set_xlim(0.5, depth + 0.5 + SLOPE_CELLS)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    for place, (_, entry) in enumerate(rows):
        fills = mapping.to_rgba(np.array(entry.percent))
        for layer, (percent, fill) in enumerate(zip(entry.percent, fills, strict=True), start=1):
            axes.add_patch(Rectangle((layer - 0.5, place - 0.5), 1, 1, facecolor=fill, edgecolor=GRID, linewidth=0.5))
            colour = colour_on(fill)
            text = f"{percent:.1f}"
            axes.text(layer, place, text, ha="center", va="center_baseline", fontsize=font_size, color=colour)
        slope = f"{entry.slope:+.2f}".replace("-", "\N{MINUS SIGN}")
        axes.text(depth + 0.5 + SLOPE_CELLS, place, slope, ha="right", va="center_baseline", fontsize=font_size)
    axes.text(depth + 0.5 + SLOPE_CELLS, -0.62, "slope", ha="right", va="bottom", fontsize=font_size, color=MUTED)
    axes.set_xticks(range(1, depth + 1), [str(layer) for layer in range(1, depth + 1)])
    axes.set_yticks(range(len(rows)), [name for name, _ in rows])
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
