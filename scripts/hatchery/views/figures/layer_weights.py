"""Layer weights as heatmaps, after Figure 1 of ELC-BERT (Charpentier and Samuel, 2023).

Cell (n, i) of a panel is n x alpha(n, i), where alpha(n, i) is the weight of the output of layer i (0 is the embedding)
in the input of layer n. A row sums to n. In a plain transformer, each cell is 1; panels of plain transformers come
first. The middle of the colour scale is 1, so that weights above and below 1 differ visibly.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from hatchery.analysis.read_tables import LayerWeights, read_layer_weights
from hatchery.analysis.settings import FigureSettings, models_with_counts
from hatchery.errors import EvaluationError
from hatchery.rendering.drawing import GRID, colour_bar, colour_on, grid_shape, is_narrow, most_lines
from hatchery.views.figures.registry import Declaration, Tables

FIGURE = Declaration(
    title="Layer weights",
    needs=("layer_weights",),
    version=1,
    caption="Learned layer weights: the weights that each layer gives to the outputs of earlier layers. A weight is "
    "multiplied by the number of these outputs, so that 1 is an equal share. A plain transformer adds all "
    "outputs with weight 1.",
    explanation="""
After Figure 1 of "Not all layers are equally as important: Every Layer Counts BERT" (Charpentier and Samuel, 2023).

The cell in row n and column i is n times the weight that layer n gives to the output of layer i; layer 0 is the
embedding. In a plain transformer, each cell is 1, which is the middle of the colour scale. Plain transformers of equal
depth share a panel, and their panels come first. In the other panels, row n sums to n. If the model's output is also a
weighted sum, a row after the last layer shows its weights. For models with several pretraining seeds, the mean is
shown.

Weights of different layers are comparable only if the layer outputs are normalised. Otherwise a small weight may belong
to an output of large magnitude.

Source: `layers.parquet`.
""",
)

COLOURS = {"okabe_ito": "PuOr_r", "grey": "Greys"}
SCALE = ("layer weight × number of inputs", "(1 = plain residual stream)")
LARGEST_AT_LEAST = 2.0
# Minimum and maximum cell width. A number of four characters must fit into a cell, and the cells of a model with few
# layers must not be huge.
SMALLEST_CELL_POINTS = 17.0
LARGEST_CELL_INCHES = 0.7
LAYERS_FOR_TWO_COLUMNS = 14


@dataclass(frozen=True)
class LayerPanel:
    """One heatmap of layer weights, with its title."""

    title: str
    table: LayerWeights

    @property
    def consumers(self) -> int:
        """Number of rows and number of columns of the heatmap, which are equal: the number of layers, plus 1 if the
        model's output has layer weights.
        """
        return max(self.table.scaled)[0]


def draw(settings: FigureSettings, tables: Tables) -> Figure:
    """Return the figure. Raises ManifestError for an altered table, and EvaluationError if the seeds of a model have
    weights for different pairs of layers.
    """
    return draw_layer_weights(settings, panels_of(settings, read_layer_weights(tables["layers"], settings.runs)))


def panels_of(settings: FigureSettings, tables: Mapping[str, LayerWeights]) -> list[LayerPanel]:
    """Return panels of weights averaged over the seeds of each model, in the order of the configuration.

    Models of equal depth without layer weighting have equal weights, so they share a panel; these panels come first.
    Raises EvaluationError if two seeds of a model have weights for different pairs of layers.
    """
    plain: dict[int, list[str]] = {}
    weighted = []
    for model, label in models_with_counts(settings.runs).items():
        seeds = [tables[run.name] for run in settings.runs if run.model == model]
        if any((seed.plain, set(seed.scaled)) != (seeds[0].plain, set(seeds[0].scaled)) for seed in seeds):
            raise EvaluationError(
                f"layer weights: the runs of {model} with different seeds do not have the same layers"
            )
        if seeds[0].plain:
            plain.setdefault(seeds[0].layers, []).append(model)
            continue
        mean = {pair: math.fsum(seed.scaled[pair] for seed in seeds) / len(seeds) for pair in seeds[0].scaled}
        weighted.append(LayerPanel(label, LayerWeights(seeds[0].layers, False, mean)))
    units = [
        LayerPanel(
            f"{', '.join(models)} (unit\N{NO-BREAK SPACE}weights)",
            LayerWeights(layers, True, {(n, i): 1.0 for n in range(1, layers + 1) for i in range(n)}),
        )
        for layers, models in plain.items()
    ]
    return units + weighted


def draw_layer_weights(settings: FigureSettings, panels: Sequence[LayerPanel]) -> Figure:
    """Return the figure: heatmaps with one common colour scale, every cell annotated with its weight."""
    style = settings.style
    depth = max(panel.consumers for panel in panels)
    columns = 3 if depth <= LAYERS_FOR_TWO_COLUMNS // 2 else 2 if depth <= LAYERS_FOR_TWO_COLUMNS else 1
    if is_narrow(style):
        columns = 1
    rows, columns = grid_shape(len(panels), columns)
    margin = 4.5 * style.font_size / 72
    cell = min((style.width_inches / columns - margin) / depth, LARGEST_CELL_INCHES)
    cell = max(cell, SMALLEST_CELL_POINTS / 72)
    width = columns * (cell * depth + margin)
    titles = [_wrapped(panel.title, cell * depth, style.font_size) for panel in panels]
    lines = 6 + 1.2 * max(title.count("\n") + 1 for title in titles)
    scale = "\n".join(_wrapped(line, 0.75 * width, style.font_size) for line in SCALE)
    height = (
        rows * (cell * depth + lines * style.font_size / 72) + (3.6 + 1.2 * most_lines([scale])) * style.font_size / 72
    )
    # The constrained layout would leave gaps between panels of fixed aspect ratio, so use the compressed layout.
    figure = Figure(figsize=(width, height), layout="compressed")
    grid = figure.subplots(rows, columns, squeeze=False)
    largest = max(value for panel in panels for value in panel.table.scaled.values())
    norm = TwoSlopeNorm(vcenter=1.0, vmin=0.0, vmax=max(LARGEST_AT_LEAST, largest))
    font_size = min(style.font_size * 0.85, cell * 72 * 0.36)
    mapping = ScalarMappable(norm, COLOURS[style.colours])
    for index, axes in enumerate(grid.flat):
        if index < len(panels):
            _heatmap(axes, panels[index], mapping, font_size)
            axes.set_xlabel(_wrapped("producing layer (0 = embedding)", cell * depth, style.font_size))
            _label(axes, panels[index], titles[index], first_column=index % columns == 0)
        else:
            axes.set_axis_off()
    colour_bar(figure, mapping, grid, scale, shrink=0.9, pad=0.03)
    return figure


def _heatmap(axes: Axes, panel: LayerPanel, mapping: ScalarMappable, font_size: float) -> None:
    """Draw the heatmap of one panel, with each cell as a rectangle. `imshow` would store a bitmap in the SVG."""
    depth = panel.consumers
    axes.set_aspect("equal")
    axes.set_xlim(-0.5, depth - 0.5)
    axes.set_ylim(depth + 0.5, 0.5)
    fills = mapping.to_rgba(np.array(list(panel.table.scaled.values())))
    for ((consuming, producing), weight), fill in zip(panel.table.scaled.items(), fills, strict=True):
        corner = (producing - 0.5, consuming - 0.5)
        axes.add_patch(Rectangle(corner, 1, 1, facecolor=fill, edgecolor=GRID, linewidth=0.5))
        text = f"{weight:.1f}" if weight >= 9.95 else f"{weight:.2f}"
        axes.text(producing, consuming, text, ha="center", va="center", fontsize=font_size, color=colour_on(fill))


def _label(axes: Axes, panel: LayerPanel, title: str, first_column: bool) -> None:
    depth = panel.consumers
    axes.set_xticks(range(depth), [str(i) for i in range(depth)])
    names = [str(n) if n <= panel.table.layers else "output" for n in range(1, depth + 1)]
    axes.set_yticks(range(1, depth + 1), names)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_title(title, loc="left")
    if first_column:
        axes.set_ylabel("consuming layer")


def _wrapped(title: str, width_inches: float, font_size: float) -> str:
    """Wrap the title between words to about the width of its panel."""
    limit = max(12, int(width_inches * 72 / (font_size * 0.58)))
    lines = [""]
    for word in title.split(" "):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > limit:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)
