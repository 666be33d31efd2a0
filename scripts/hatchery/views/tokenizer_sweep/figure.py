"""A sweep of tokenizer sizes: word-split ratio and ESMS against the size of the vocabulary, one line per type.

Source: what Table 6 of the reduced-vocabulary study prints as numbers. The dashed lines are the references that each
type is compared with; a ring marks the size chosen of each type, a filled star the final choice.
"""

from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from hatchery.rendering.drawing import MUTED, Keywords, abbreviated, legend_below, legend_columns
from hatchery.rendering.style import ModelStyle, Style, model_styles
from hatchery.tokenization.selection.settings import Esms
from hatchery.tokenization.selection.table import SelectionRow

MARKERS = ("o", "s", "^", "D", "v", "P")


READINGS: dict[Esms, str] = {
    "esms_definition": "definition",
    "esms_published_code": "published code",
    "esms_published_code_corrected": "published code, corrected",
}


def draw_tokenizer_sweep(rows: Sequence[SelectionRow], choose_by: Esms, style: Style) -> Figure:
    """The figure: two panels, ratio and the reading of ESMS by which one is chosen, over a common legend."""
    types = list(dict.fromkeys(row.type for row in rows))
    looks = model_styles(types, style)
    handles = _legend(types, looks, rows, style)
    lines = -(-len(handles) // legend_columns([str(handle.get_label()) for handle in handles], style))
    height = style.width_inches * 0.38 + (3 + 1.6 * lines) * style.font_size / 72
    figure = Figure(figsize=(style.width_inches, height), layout="constrained")
    ratios, scores = figure.subplots(1, 2)
    for place, name in enumerate(types):
        mine = [row for row in rows if row.type == name]
        esms = [(row, getattr(row.measures, choose_by)) for row in mine]
        # Dashes of one type fall into the gaps of the others, so that equal references are all seen.
        dashes = (4.0 * place, (4.0, 4.0 * max(1, len(types) - 1)))
        for axes, values in (
            (ratios, [(row, row.measures.word_split_ratio) for row in mine]),
            (scores, [(row, score) for row, score in esms if score is not None]),
        ):
            _draw_type(axes, values, looks[name].colour, MARKERS[place % len(MARKERS)], dashes, style)
    ratios.set_title("word-split ratio (tokens per word)", loc="left")
    scores.set_title(f"ESMS ({READINGS[choose_by]})", loc="left")
    for axes in (ratios, scores):
        axes.set_xlabel("vocabulary size")
        axes.grid(visible=True)
        axes.margins(x=0.08, y=0.12)
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.xaxis.set_major_formatter(FuncFormatter(abbreviated))
    scores.set_ylim(bottom=0)
    legend_below(figure, handles, style)
    return figure


def _draw_type(
    axes: Axes,
    values: Sequence[tuple[SelectionRow, float]],
    colour: str,
    marker: str,
    dashes: tuple[float, tuple[float, float]],
    style: Style,
) -> None:
    sizes = [(row.size, number) for row, number in values if row.size is not None]
    if sizes:
        small = style.font_size * 0.45
        axes.plot(*zip(*sizes, strict=True), color=colour, linewidth=1.5, marker=marker, markersize=small)
    for row, number in values:
        if row.size is None:
            axes.axhline(number, color=colour, linestyle=dashes, linewidth=1.2)
        elif row.final_choice:
            axes.plot([row.size], [number], **_star(style, colour))
        elif row.selected_within_type:
            axes.plot([row.size], [number], **_ring(style, colour))


def _ring(style: Style, colour: str) -> Keywords:
    return {
        "marker": "o",
        "markersize": style.font_size * 1.1,
        "markerfacecolor": "none",
        "markeredgecolor": colour,
        "markeredgewidth": 1.6,
        "linestyle": "none",
        "zorder": 5,
    }


def _star(style: Style, colour: str) -> Keywords:
    return {
        "marker": "*",
        "markersize": style.font_size * 1.6,
        "markerfacecolor": colour,
        "markeredgecolor": "white",
        "markeredgewidth": 0.8,
        "linestyle": "none",
        "zorder": 6,
    }


def _legend(
    types: Sequence[str], looks: dict[str, ModelStyle], rows: Sequence[SelectionRow], style: Style
) -> list[Artist]:
    handles: list[Artist] = [
        Line2D(
            [],
            [],
            color=looks[name].colour,
            marker=MARKERS[index % len(MARKERS)],
            linewidth=1.5,
            markersize=style.font_size * 0.45,
            label=name,
        )
        for index, name in enumerate(types)
    ]
    if any(row.is_reference for row in rows):
        handles.append(Line2D([], [], color=MUTED, linestyle=(0, (4, 3)), linewidth=1.1, label="reference"))
    if any(row.selected_within_type and not row.final_choice for row in rows):
        handles.append(Line2D([], [], **_ring(style, MUTED), label="chosen size of the type"))
    handles.append(Line2D([], [], **_star(style, MUTED), label="final choice"))
    return handles
