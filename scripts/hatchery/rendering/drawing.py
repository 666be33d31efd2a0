"""Functions that all figures share: font sizes, legends, and reproducible files. The module `style` defines the style
of each model.

A figure is drawn twice, for wide screens and for phones; the SVG file of the figure contains both drawings. Equal
numbers produce byte-identical files: identifiers are hashed with a fixed salt, and files contain neither time nor
software version.
"""

import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from hatchery.artifacts.atomic import write_bytes, write_text
from hatchery.artifacts.checksums import write_checksums
from hatchery.rendering.style import ModelStyle, Style
from hatchery.rendering.templates import NARROW_ID, prefixed_ids

Keywords = dict[str, Any]
"""Keyword arguments of a Matplotlib function, such as `Axes.plot`."""

MUTED = "#595959"
GRID = "#D9D9D9"
LIGHT = 0.65
# Font size in points, approximately, of a remark above a drawing. The remark is wrapped accordingly.
REMARK = 8
MOST_NAMED = 3
# Maximum width of a drawing in inches. A phone shows a drawing of this width without shrinking its letters.
NARROW_INCHES = 3.8


def outline(colour: str) -> str:
    """Return a colour for lines on a white background: `colour`, or a darker shade if it is light (yellow, greys)."""
    red, green, blue = to_rgb(colour)
    # The weighted sum is the relative luminance of the colour (Rec. 709).
    if 0.2126 * red + 0.7152 * green + 0.0722 * blue < LIGHT:
        return colour
    return to_hex((0.6 * red, 0.6 * green, 0.6 * blue))


@contextmanager
def figure_style(style: Style) -> Iterator[None]:
    """Set Matplotlib's fonts, lines and SVG options inside the `with` block, and restore the previous options
    afterwards.
    """
    size = style.font_size
    parameters: Any = {
        "font.family": "DejaVu Sans",
        "font.size": size,
        "axes.titlesize": size,
        "axes.labelsize": size,
        "xtick.labelsize": size * 0.9,
        "ytick.labelsize": size * 0.9,
        "legend.fontsize": size * 0.9,
        "legend.frameon": False,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.linewidth": 0.8,
        "axes.axisbelow": True,
        "grid.color": GRID,
        "grid.linewidth": 0.6,
        "hatch.linewidth": 0.6,
        # SVG and PDF measure lengths in points, 72 per inch.
        "figure.dpi": 72,
        "svg.hashsalt": "hatchery",
        "svg.fonttype": "path",
        "pdf.fonttype": 42,
    }
    with mpl.rc_context(parameters):
        yield


def is_narrow(style: Style) -> bool:
    """Return True if the figure width that `style` sets is too small for panels side by side."""
    return style.width_inches < 1.5 * NARROW_INCHES


def save_drawings(
    draw: Callable[[Style], Figure],
    style: Style,
    path: str | Path,
    title: str,
    remark: str = "",
    pdf: Path | None = None,
) -> None:
    """Write an SVG file with two drawings of a figure: one with the width of `style`, and one for the width of a phone.

    Viewers show the first drawing. The second drawing is stored as a `symbol`, which a page may show instead. If
    `style` is already narrow, there is no second drawing. If `pdf` is given, the first drawing is also written as PDF.
    The text `remark`, for example on models that are not shown, is printed above the drawing.
    """
    with figure_style(style):
        figure = draw(style)
        wide = _svg(figure, title, remark)
        if pdf is not None:
            write_bytes(pdf, _pdf(figure, title))
        if not is_narrow(style):
            narrow = _svg(draw(replace(style, width_inches=NARROW_INCHES)), title, remark)
            wide = _with_symbol(wide, narrow)
    write_text(path, wide)


def save_svg(figure: Figure, path: str | Path, title: str) -> None:
    """Write the figure to `path` as SVG, atomically and reproducibly. Call this function inside `figure_style`."""
    write_text(path, _svg(figure, title))


def _svg(figure: Figure, title: str, remark: str = "") -> str:
    if remark:
        text = "\n".join(wrapped(line, figure.get_figwidth() * 72, REMARK) for line in remark.split("\n"))
        figure.suptitle(text, fontsize="small", color=MUTED)
    FigureCanvasSVG(figure)
    if (engine := figure.get_layout_engine()) is not None:
        # Computing the layout takes most of the time. Compute the layout once here, because `savefig` would compute it
        # twice.
        engine.execute(figure)
        figure.set_layout_engine(None)
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Title": title, "Creator": "Hatchery", "Date": None})
    return buffer.getvalue()


def _pdf(figure: Figure, title: str) -> bytes:
    """Return the figure, as it was last drawn, as PDF. Text remains text instead of paths, and no time is stored."""
    buffer = io.BytesIO()
    metadata: Any = {"Title": title, "Creator": "Hatchery", "Producer": None, "CreationDate": None}
    figure.savefig(buffer, format="pdf", metadata=metadata)
    return buffer.getvalue()


def _with_symbol(wide: str, narrow: str) -> str:
    """Return the SVG document `wide`, to which the drawing of `narrow` is added as a symbol.

    The ids in `narrow` get a prefix, so that they differ from the ids in `wide`.
    """
    inside = prefixed_ids(narrow[narrow.index("<svg") :], f"{NARROW_ID}-")
    sizes = re.search(r'<svg[^>]*?(viewBox="[^"]*")', inside)
    assert sizes is not None
    body = re.sub(r"<metadata>.*?</metadata>", "", inside[inside.index(">") + 1 : inside.rindex("</svg>")], flags=re.S)
    symbol = f'<symbol id="{NARROW_ID}" {sizes[1]}>{body}</symbol>\n'
    end = wide.rindex("</svg>")
    return wide[:end] + symbol + wide[end:]


def save_figure(draw: Callable[[Style], Figure], style: Style, path: str | Path, title: str, remark: str = "") -> None:
    """Write a figure as SVG with `save_drawings`, as PDF next to the SVG file, and a file with the checksums of both
    files.
    """
    pdf = Path(path).with_suffix(".pdf")
    save_drawings(draw, style, path, title, remark, pdf)
    write_checksums([path, pdf])


def legend_columns(labels: Sequence[str], style: Style) -> int:
    """Return the number of entries that fit side by side in a legend below a figure.

    The width of a letter is estimated as 0.6 times the font size.
    """
    longest = max(len(line) for label in labels for line in label.split("\n"))
    entry_points = style.font_size * 0.9 * (0.6 * longest + 5)
    return max(1, min(len(labels), int(style.width_inches * 72 / entry_points)))


def entry_rows(labels: Sequence[str], style: Style) -> int:
    """Return the number of rows of entries in a legend below the figure; `labels` are the labels of the entries."""
    return -(-len(labels) // legend_columns(labels, style))


def legend_rows(handles: Sequence[Artist], style: Style) -> int:
    """Return the number of text lines of the legend that `legend_below` draws."""
    labels = [_legend_label(handle, style) for handle in handles]
    return entry_rows(labels, style) * most_lines(labels)


def legend_below(figure: Figure, handles: Sequence[Artist], style: Style) -> None:
    """Draw one legend below the figure; its entries are in the order of `handles`, row by row."""
    labels = [_legend_label(handle, style) for handle in handles]
    for handle, label in zip(handles, labels, strict=True):
        handle.set_label(label)
    columns, rows = legend_columns(labels, style), entry_rows(labels, style)
    # Matplotlib fills the columns of a legend one after another. Reorder the entries, so that the reader reads them row
    # by row.
    grid = [handles[row * columns : (row + 1) * columns] for row in range(rows)]
    transposed = [line[column] for column in range(columns) for line in grid if column < len(line)]
    figure.legend(handles=transposed, loc="outside lower center", ncols=columns)


def _legend_label(handle: Artist, style: Style) -> str:
    """Return the label of a legend entry, wrapped if it would be wider than the figure."""
    size = style.font_size * 0.9
    return wrapped(str(handle.get_label()), style.width_inches * 72 - 5 * size, size)


def wrapped(text: str, width_points: float, font_size: float) -> str:
    """Return a name, wrapped after spaces, underscores and hyphens into lines of at most about `width_points`."""
    limit = max(8, int(width_points / (font_size * 0.58)))
    lines = [""]
    for piece in re.findall(r"[^ _-]*[ _-]?", text):
        if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > limit:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.strip() for line in lines)


def most_lines(labels: Sequence[str]) -> int:
    """Return the number of lines of the label with the most lines."""
    return max((label.count("\n") + 1 for label in labels), default=1)


def not_evaluated(axes: Axes, models: Sequence[str], style: Style) -> None:
    """Write the names of `models`, which have no scores in a panel, next to the panel's title; do nothing without
    models.
    """
    if models:
        named = ", ".join(models) if len(models) <= MOST_NAMED else f"{len(models)} models"
        text = wrapped(f"not evaluated: {named}", style.width_inches * 72 * 0.5, style.font_size * 0.8)
        axes.set_title(text, loc="right", fontsize=style.font_size * 0.8, color=MUTED)


def no_measurements(axes: Axes, text: str = "no measurements") -> None:
    """Write `text`, the reason why a panel is empty, into the centre of the panel."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", color=MUTED)


def line_handles(labels: Mapping[str, str], looks: Mapping[str, ModelStyle], **line: Any) -> list[Line2D]:
    """Return the legend entries for the lines of the models. `labels` maps models to the texts of the entries, and
    `looks` maps models to their styles.
    """
    return [
        Line2D([], [], color=looks[model].colour, linestyle=looks[model].dashes, label=label, **line)
        for model, label in labels.items()
    ]


def colour_bar(figure: Figure, mapping: ScalarMappable, grid: np.ndarray, label: str, **bar: Any) -> Colorbar:
    """Draw a colour bar with the text `label` below the panels `grid`, and return it; `mapping` maps numbers to
    colours.
    """
    made = figure.colorbar(mapping, ax=grid, location="bottom", aspect=40, **bar)
    # By default, Matplotlib stores the colour bar as a bitmap. Draw the colour bar as vector shapes, with edges in the
    # colour of each shape to close thin gaps.
    if made.solids is not None:
        made.solids.set(rasterized=False, edgecolor="face")
    made.set_label(label)
    return made


def colour_on(fill: np.ndarray) -> str:
    """Return the colour of text, black or white, that is readable on the background `fill` (RGBA).

    The choice depends on the relative luminance of the background (Rec. 709).
    """
    red, green, blue, _ = fill
    return "white" if 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.45 else "black"


def abbreviated(value: float, _: int | None = None) -> str:
    """Return a count as text for an axis, in thousands (k), millions (M) or billions (B)."""
    for size, unit in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def grid_shape(count: int, columns: int) -> tuple[int, int]:
    """Return the number of rows and the number of columns of a grid of `count` panels. The grid has at most `columns`
    columns."""
    columns = max(1, min(count, columns))
    return -(-count // columns), columns
