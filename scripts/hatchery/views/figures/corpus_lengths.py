"""Lengths of the sentences and documents of a corpus: a row of two panels per source, on common logarithmic axes.

The height of a bin is its share per doubling of length, so that equal areas of a panel are equal shares although the
bins are not equally wide; a line marks the median. With several sources each panel has its own height, since the few
documents of a small source would dwarf the others.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hatchery.rendering.drawing import MUTED, is_narrow, save_drawings
from hatchery.rendering.style import Style
from hatchery.views.cards.measure_corpus import Bin, LengthFacts
from hatchery.views.figures.corpus_growth import logarithmic_axis, plain, source_styles
from hatchery.views.figures.registry import Declaration

FIGURE = Declaration(
    title="Lengths of sentences and documents",
    caption="Lengths in words (pieces between white space) on logarithmic axes, three bins per doubling; the height is "
    "the share of sentences or documents per doubling of length, so that equal areas of a panel are equal shares. The "
    "line is the median. All splits together.",
    also={"scaled": "Every panel is scaled to its own highest bin; lengths share one axis."},
)
KINDS = ("sentences", "documents")
Lengths = Mapping[tuple[str, str], tuple[Sequence[Bin], LengthFacts | None]]
"""Bins and facts by (source, kind), kind being one of `KINDS`."""


def plot_lengths(corpus: str, sources: Sequence[str], lengths: Lengths, style: Style, output: Path) -> None:
    """Draw the lengths of `sources` into `output` (SVG)."""
    title = f"{FIGURE.title} of {corpus}"
    save_drawings(lambda style: draw_lengths(sources, lengths, style), style, output, title)


def draw_lengths(sources: Sequence[str], lengths: Lengths, style: Style) -> Figure:
    """The figure; sources from top to bottom, sentences on the left (or above), documents on the right (below)."""
    rows = max(1, len(sources))
    columns = 1 if is_narrow(style) else 2
    panel = style.width_inches * (0.3 if rows == 1 else 0.15 if rows <= 3 else 0.09) * 2 / columns
    height = 2 / columns * (rows * panel + 6 * style.font_size / 72)
    figure = Figure(figsize=(style.width_inches, height), layout="constrained")
    # A column for each kind, also where the figure has them below each other.
    grid = figure.subplots(2 * rows // columns, columns, squeeze=False, sharex="col" if columns == 2 else False)
    if columns == 1:
        grid = grid.reshape(2, rows).T
        for column in range(2):
            for axes in grid[:-1, column]:
                axes.sharex(grid[-1, column])
                axes.tick_params(labelbottom=False)
    looks = source_styles(sources, style)
    for column, kind in enumerate(KINDS):
        found = [lengths[source, kind] for source in sources]
        low, high = _range([bins for bins, _ in found])
        for axes, source, (bins, facts) in zip(grid[:, column], sources, found, strict=False):
            _draw_panel(axes, bins, facts, looks[source].colour, style, right_of=math.sqrt(low * high))
            if rows > 1:
                axes.set_yticks([])
        grid[0][column].set_title(f"{kind.capitalize()} by length", loc="left")
        grid[-1][column].set_xlabel(f"words per {kind.removesuffix('s')}")
        logarithmic_axis(grid[-1][column], "x", low, high)
    if rows > 1:
        for column in range(3 - columns):
            for axes, source in zip(grid[:, column], sources, strict=True):
                axes.set_ylabel(plain(source), rotation=0, ha="right", va="center")
    else:
        for axes in grid[0][: 3 - columns]:
            axes.set_ylabel("share per doubling of length (%)")
    return figure


def _range(panels: Sequence[Sequence[Bin]]) -> tuple[float, float]:
    """The ends of the bins that are not empty, with a margin on the left; 0.5 to 10.5 where there are none."""
    used = [item for bins in panels for item in bins if item.count]
    if not used:
        return 0.5, 10.5
    low, high = min(item.low for item in used) - 0.5, max(item.high for item in used) + 0.5
    # The margin keeps the first bar off the axis; the other end gets its own in `logarithmic_axis`.
    return low / (high / low) ** 0.03, high


def _draw_panel(
    axes: Axes, bins: Sequence[Bin], facts: LengthFacts | None, colour: str, style: Style, right_of: float
) -> None:
    """One histogram; the median is written to the left of its line where that is `right_of` the middle."""
    axes.grid(visible=True, axis="x")
    if facts is None:
        axes.set_yticks([])
        axes.text(0.5, 0.5, "none", transform=axes.transAxes, ha="center", va="center", color=MUTED)
        return
    edges = [0.5, *(item.high + 0.5 for item in bins)]
    heights = [100 * item.count / facts.number / item.doublings for item in bins]
    axes.stairs(heights, edges, fill=True, color=colour, alpha=0.35)
    axes.stairs(heights, edges, color=colour, linewidth=1.2)
    # Room for the number above the bars.
    axes.set_ylim(0, 1.3 * max(heights))
    axes.axvline(facts.median, color="black", linewidth=1)
    left = facts.median > right_of
    axes.annotate(
        f"median {facts.median:,}",
        (facts.median, 1),
        xycoords=("data", "axes fraction"),
        xytext=(-4 if left else 4, -1),
        textcoords="offset points",
        ha="right" if left else "left",
        va="top",
        fontsize=style.font_size * 0.85,
    )
