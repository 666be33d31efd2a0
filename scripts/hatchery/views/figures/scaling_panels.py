"""Panels of the scaling figures: each model as a line, the compute-optimal points, and power laws fitted to these
points.

Published losses include padding and thus have another scale, so published curves have panels of their own. The data are
the rows of `numbers.csv` of the analysis `power_laws`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from hatchery.analysis.analyses.power_laws import AXIS_NAMES
from hatchery.analysis.compute_optimal import regions_of_one_model
from hatchery.analysis.scaling_laws import DECISIVE, WHOLE
from hatchery.analysis.settings import FigureSettings
from hatchery.rendering.drawing import GRID, MUTED, abbreviated, grid_shape, is_narrow, legend_below, no_measurements
from hatchery.rendering.escaping import readable
from hatchery.rendering.style import OKABE_ITO, Style
from hatchery.views.figures.registry import Tables, numbers_of

OPTIMAL, REGION = OKABE_ITO[2], MUTED
Rows = Sequence[Mapping[str, str]]
"""Rows of `numbers.csv`: text by column."""


@dataclass(frozen=True)
class LawPanel:
    """One panel. `rows` are rows of the file `numbers.csv` of an analysis `power_laws`, either of our curves or of the
    published curves.
    """

    title: str
    rows: Rows

    def of_kind(self, kind: str) -> Rows:
        """Return the rows of a kind: data points, fitted power laws, or break points."""
        return [row for row in self.rows if row["kind"] == kind]


def law_panels(entries: Mapping[str, Rows]) -> list[LawPanel]:
    """Return panels with data points. The keys of `entries` are the names that the study gives to its analyses
    `power_laws`. Each analysis has a panel for our runs and a panel for published runs.

    If there are several analyses, the titles of panels contain their names.
    """
    found = []
    for entry, rows in entries.items():
        for source in dict.fromkeys(row["source"] for row in rows):
            title = source if len(entries) == 1 else f"{readable(entry)}: {source}"
            found.append(LawPanel(title, [row for row in rows if row["source"] == source]))
    return [panel for panel in found if panel.of_kind("point")]


def draw_laws(settings: FigureSettings, tables: Tables, axis: str) -> Figure:
    """Return the figure of the loss against `axis`: flops, tokens or parameters.

    Raises ManifestError for an altered table.
    """
    return draw_entries(settings, numbers_of(tables, "power_laws"), axis)


def draw_entries(settings: FigureSettings, entries: Mapping[str, Rows], axis: str) -> Figure:
    """Return the figure of the loss against `axis`: flops, tokens or parameters. `entries` are the rows of
    `numbers.csv` of each analysis `power_laws`, by the analysis's name in the study.
    """
    style, panels = settings.style, law_panels(entries)
    width, size = style.width_inches, style.font_size
    rows, columns = grid_shape(max(1, len(panels)), 1 if is_narrow(style) else 2)
    lines = max((len(_laws(panel, axis)) for panel in panels), default=0)
    height = rows * (width / columns * 0.6 + (4 + 1.3 * lines) * size / 72) + 4 * size / 72
    figure = Figure(figsize=(width, height), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for place, axes in enumerate(grid.flat):
        if place < len(panels):
            _draw_panel(axes, panels[place], axis, style)
        elif place:
            axes.set_axis_off()
        else:
            no_measurements(axes)
    legend_below(figure, _handles(panels, axis, size), style)
    return figure


def _draw_panel(axes: Axes, panel: LawPanel, axis: str, style: Style) -> None:
    size = style.font_size
    points = panel.of_kind("point")
    for model in dict.fromkeys(row["model"] for row in points):
        line = [(float(row[axis]), float(row["loss"])) for row in points if row["model"] == model]
        axes.plot(*_columns(line), color=GRID, linewidth=0.8, zorder=1)
    best = [(float(row[axis]), float(row["loss"])) for row in points if row["optimal"] == "1"]
    axes.plot(*_columns(best), linestyle="none", marker="o", markersize=size * 0.4, color=OPTIMAL, zorder=3)
    if axis != "flops":
        for region in _regions(panel, axis):
            _shade(axes, region)
    xs = [float(row[axis]) for row in points]
    texts = []
    for law in _laws(panel, axis):
        low, high = (float(law["above"] or min(xs)), float(law["up_to"] or max(xs)))
        low, high = max(low, min(xs)), min(high, max(xs))
        line_xs = np.geomspace(low, high, 50)
        whole = law["region"] == WHOLE and axis == "flops"
        ys = float(law["coefficient"]) * line_xs ** float(law["exponent"])
        axes.plot(line_xs, ys, color="black", linewidth=1.4, linestyle="--" if whole else "-", zorder=4)
        name = "" if axis != "flops" else f"{readable(law['region'])}: "
        minus = f"{float(law['exponent']):.4f}".replace("-", "\N{MINUS SIGN}")
        texts.append(f"{name}e = {minus}, R² = {float(law['r_squared']):.3f}")
    if axis == "flops":
        for cut in panel.of_kind("break"):
            if float(cut["gain"]) > DECISIVE:
                axes.axvspan(float(cut["above"]), float(cut["up_to"]), color=OKABE_ITO[5], alpha=0.35, zorder=0)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.grid(visible=True)
    # Inside the panel, exponents and R² could cover data, so write them into the title.
    axes.set_title("\n".join([panel.title, *texts]), loc="left")
    axes.set_xlabel(AXIS_NAMES[axis])
    axes.set_ylabel("development loss (nats)")
    _ticks(axes, axis)


def _regions(panel: LawPanel, axis: str) -> list[list[tuple[float, float]]]:
    """Return lists of compute-optimal points (x, loss), sorted by FLOPs. The points of a list are consecutive and
    belong to the same model. If only few consecutive points belong to a model, they have no list.
    """
    best = sorted((row for row in panel.of_kind("point") if row["optimal"] == "1"), key=lambda row: float(row["flops"]))
    found = regions_of_one_model([row["model"] for row in best])
    return [[(float(best[place][axis]), float(best[place]["loss"])) for place in places] for places in found]


def _shade(axes: Axes, points: Sequence[tuple[float, float]]) -> None:
    """Draw a box around points. Opposite margins of the box are equally wide on the logarithmic axes, because each
    margin is a factor.
    """
    bounds = [
        (min(values) / wide, max(values) * wide) for values, wide in zip(_columns(points), (1.12, 1.03), strict=True)
    ]
    (left, right), (low, high) = bounds
    box = Rectangle((left, low), right - left, high - low, facecolor=REGION, edgecolor="none", alpha=0.35, zorder=0)
    axes.add_patch(box)


def _laws(panel: LawPanel, axis: str) -> Rows:
    """Return the fitted power laws of a panel for an axis.

    There is one law of all compute-optimal points, and one law of each region (part of the points). A region's law is
    omitted if its number of points equals the number of all points, because both laws are then equal.
    """
    laws = [law for law in panel.of_kind("law") if law["axis"] == axis and law["exponent"]]
    every = next((law["points"] for law in laws if law["region"] == WHOLE), "")
    return [law for law in laws if law["region"] == WHOLE or law["points"] != every]


def _ticks(axes: Axes, axis: str) -> None:
    axes.yaxis.set_major_locator(MaxNLocator(6))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_locator(LogLocator(10, numticks=6))
    axes.xaxis.set_minor_formatter(NullFormatter())
    if axis != "flops":
        axes.xaxis.set_major_locator(LogLocator(10, subs=(1, 3), numticks=8))
        axes.xaxis.set_major_formatter(FuncFormatter(abbreviated))


def _handles(panels: Sequence[LawPanel], axis: str, size: float) -> list[Line2D]:
    handles = [
        Line2D([], [], color=GRID, linewidth=1.2, label="a model"),
        Line2D([], [], linestyle="none", marker="o", markersize=size * 0.4, color=OPTIMAL, label="compute-optimal"),
        Line2D([], [], color="black", linewidth=1.4, label="power law" if axis != "flops" else "power law of a region"),
    ]
    if axis == "flops":
        handles.append(Line2D([], [], color="black", linewidth=1.4, linestyle="--", label="power law of all"))
        if any(float(cut["gain"]) > DECISIVE for panel in panels for cut in panel.of_kind("break")):
            handles.append(Line2D([], [], color=OKABE_ITO[5], alpha=0.35, linewidth=8, label="break"))
    elif any(_regions(panel, axis) for panel in panels):
        handles.append(Line2D([], [], color=REGION, alpha=0.35, linewidth=8, label="one model stays compute-optimal"))
    return handles


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]
