"""Layer weights as heatmaps, after Figure 1 of ELC-BERT (Charpentier and Samuel, 2023).

Cell (n, i) of a panel is n x alpha(n, i): how much layer n takes of the output of layer i (0 is the embedding), so that
a row sums to n. A plain transformer gives weight 1 to everything, which is the first panel and the middle of the colour
scale: what a model takes more or less of than a residual stream stands out.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from hatchery.analysis.figures.drawing import figure_style, grid_shape, models_with_counts, save_svg
from hatchery.analysis.measurements import read_verified
from hatchery.analysis.pretraining_outputs import read_layer_weights
from hatchery.analysis.settings import FigureSettings, match_cells
from hatchery.errors import EvaluationError
from hatchery.typed import build, stage_body

COLOURS = {"okabe_ito": "PuOr_r", "grey": "Greys"}
LARGEST_AT_LEAST = 2.0
# Cells must hold a number of four characters, and few layers must not give cells as large as stamps.
SMALLEST_CELL_POINTS = 17.0
LARGEST_CELL_INCHES = 0.7
LAYERS_FOR_TWO_COLUMNS = 14

Weights = dict[tuple[int, int], float]


@dataclass(frozen=True)
class Panel:
    """One heatmap: scaled weights by (consuming layer, producing layer) under a title."""

    title: str
    weights: Weights


def plot_layer_weights(settings: Mapping[str, Any], pretraining: Mapping[str, Path], output: Path) -> None:
    """Draw the layer weights of the models named `CELL=manifest` into `output` (SVG).

    Raises ConfigError, ManifestError or EvaluationError naming the input at fault.
    """
    figure_settings = build(FigureSettings, stage_body(settings))
    weights = {
        name: read_layer_weights(read_verified(path))
        for name, path in match_cells(pretraining, figure_settings.cells, "--pretraining").items()
    }
    with figure_style(figure_settings.style):
        figure = draw_layer_weights(figure_settings, panels_of(figure_settings, weights))
        save_svg(figure, output, f"Layer weights of {figure_settings.experiment}")


def panels_of(settings: FigureSettings, weights: Mapping[str, Weights]) -> list[Panel]:
    """Panels in the order of the configuration, averaged over the seeds of a model.

    Models with nothing but unit weights look all the same, so those of one depth share one panel, which comes first.
    Raises EvaluationError when two seeds of a model differ in their layers.
    """
    plain: dict[int, list[str]] = {}
    weighted = []
    for model, label in models_with_counts(settings.cells).items():
        tables = [weights[cell.cell] for cell in settings.cells if cell.run == model]
        if any(set(table) != set(tables[0]) for table in tables):
            raise EvaluationError(f"layer weights: the seeds of {model} do not have the same layers")
        mean = {pair: math.fsum(table[pair] for table in tables) / len(tables) for pair in sorted(tables[0])}
        if all(math.isclose(value, 1.0, rel_tol=1e-6) for value in mean.values()):
            plain.setdefault(max(mean)[0], []).append(model)
        else:
            weighted.append(Panel(label, mean))
    units = [
        Panel(
            f"{', '.join(models)} (unit\N{NO-BREAK SPACE}weights)",
            {(n, i): 1.0 for n in range(1, depth + 1) for i in range(n)},
        )
        for depth, models in plain.items()
    ]
    return units + weighted


def draw_layer_weights(settings: FigureSettings, panels: Sequence[Panel]) -> Figure:
    """The figure: heatmaps with one common colour scale, every cell annotated with its weight."""
    style = settings.style
    depth = max(n for panel in panels for n, _ in panel.weights)
    columns = 3 if depth <= LAYERS_FOR_TWO_COLUMNS // 2 else 2 if depth <= LAYERS_FOR_TWO_COLUMNS else 1
    rows, columns = grid_shape(len(panels), columns)
    margin = 4.5 * style.font_size / 72
    cell = min((style.width_inches / columns - margin) / depth, LARGEST_CELL_INCHES)
    cell = max(cell, SMALLEST_CELL_POINTS / 72)
    width = columns * (cell * depth + margin)
    height = rows * (cell * depth + 7 * style.font_size / 72) + 6 * style.font_size / 72
    figure = Figure(figsize=(width, height), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    largest = max(LARGEST_AT_LEAST, *(value for panel in panels for value in panel.weights.values()))
    norm = TwoSlopeNorm(vcenter=1.0, vmin=min(0.0, *(min(p.weights.values()) for p in panels)), vmax=largest)
    font_size = min(style.font_size * 0.85, cell * 72 * 0.36)
    image = None
    for index, axes in enumerate(grid.flat):
        if index < len(panels):
            image = _heatmap(axes, panels[index], norm, COLOURS[style.colours], font_size)
            _label(axes, panels[index], index % columns == 0, cell * depth, style.font_size)
        else:
            axes.set_axis_off()
    assert image is not None
    bar = figure.colorbar(image, ax=grid, location="bottom", shrink=0.9, pad=0.03, aspect=40)
    bar.set_label("layer weight × number of inputs\n(1 = plain residual stream)")
    return figure


def _heatmap(axes: Axes, panel: Panel, norm: TwoSlopeNorm, colours: str, font_size: float) -> AxesImage:
    depth = max(n for n, _ in panel.weights)
    matrix = np.full((depth, depth), np.nan)
    for (consuming, producing), weight in panel.weights.items():
        matrix[consuming - 1, producing] = weight
    image = axes.imshow(matrix, cmap=colours, norm=norm, aspect="equal")
    for (consuming, producing), weight in panel.weights.items():
        red, green, blue, _ = image.cmap(norm(weight))
        # Relative luminance (Rec. 709) decides between black and white, so that every number can be read.
        dark = 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.45
        text = f"{weight:.1f}" if weight >= 9.95 else f"{weight:.2f}"
        colour = "white" if dark else "black"
        axes.text(producing, consuming - 1, text, ha="center", va="center", fontsize=font_size, color=colour)
    return image


def _label(axes: Axes, panel: Panel, first_column: bool, title_width: float, font_size: float) -> None:
    depth = max(n for n, _ in panel.weights)
    axes.set_xticks(range(depth), [str(i) for i in range(depth)])
    axes.set_yticks(range(depth), [str(n) for n in range(1, depth + 1)])
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_title(_wrapped(panel.title, title_width, font_size), loc="left")
    axes.set_xlabel("producing layer (0 = embedding)")
    if first_column:
        axes.set_ylabel("consuming layer")


def _wrapped(title: str, width_inches: float, font_size: float) -> str:
    """Break the title between words so that it stays about as wide as its panel."""
    limit = max(12, int(width_inches * 72 / (font_size * 0.58)))
    lines = [""]
    for word in title.split(" "):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > limit:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)
