"""The results of a sweep of tokenizers: a table (`selection.md`), and a figure.

The table has the layout of Table 6 of the reduced-vocabulary study (docs/papers/reduced-vocabulary.md, "Word-split
ratio and choice"). The figure shows the word-split ratio and the exact sub-token matching score (ESMS) against
vocabulary size, with one line per tokenizer type (BPE, ...). Dashed lines show the values of each type's reference
tokenizers. A ring marks each type's selected vocabulary size; a filled star marks the final choice.
"""

from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from hatchery.rendering.drawing import MUTED, Keywords, abbreviated, legend_below, legend_rows
from hatchery.rendering.style import ModelStyle, Style, model_styles
from hatchery.rendering.table import Cell, Content, table
from hatchery.tokenization.selection.frequency_rule import SearchResult
from hatchery.tokenization.selection.settings import Esms, SweepSettings
from hatchery.tokenization.selection.sweep import Sweep
from hatchery.tokenization.selection.table import PRETRAINED, SelectionRow, printed_of


def selection_markdown(settings: SweepSettings, sweep: Sweep) -> str:
    """Return the text of `selection.md`: the table with notes."""
    facts, search = sweep.facts, sweep.search
    header = (
        "type",
        "size",
        "word-split ratio",
        "published word-split ratio",
        "ESMS (published code)",
        "published ESMS",
        "ESMS (definition)",
        "ESMS (code, corrected)",
        "frequency at 95 %",
        "published frequency",
        "fertility",
        "unknown, %",
    )
    shown = table(header, [_cells(row, printed_of(row, sweep.printed)) for row in sweep.rows])
    lines = [f"# Tokenizer selection: {settings.name}", "", shown.markdown()]
    final = sweep.final
    lines += [
        "",
        f"Bold: the size chosen for each tokenizer type. **Final choice: {final.type}, {final.size:,}** (highest "
        f"`{settings.choose_by}` among the chosen sizes).",
        "",
        f"Word-split ratio, fertility and unknown tokens are measured on {facts.sequences:,} sequences with "
        f"{facts.sample_words:,} space-separated words, drawn with seed {settings.seed}. ESMS is measured on "
        f"{facts.reference_words} words with {facts.reference_morphemes} morphemes ({facts.morphemes}). The "
        "word-split ratio is measured on words in isolation, and fertility is measured in running text. Published "
        "values were measured on the papers' corpora and word lists.",
    ]
    if search is not None and settings.frequency_search is not None:
        lines += ["", *_search_lines(settings, search)]
    return "\n".join(lines) + "\n"


def _search_lines(settings: SweepSettings, search: SearchResult) -> list[str]:
    rule = settings.frequency_search
    assert rule is not None
    if search.largest_size is None:
        found = f"none from {rule.lowest:,} on"
    else:
        end = ", the end of the range" if search.largest_size == rule.highest else ""
        found = f"{search.largest_size:,}{end}"
    return [
        f"## Largest vocabulary of frequent entries ({rule.type})",
        "",
        f"The largest vocabulary size at which 95 % of the entries occur at least {rule.least_frequency:,} "
        f"times in the training text (Gowda and May, 2020): **{found}**. Sizes from {rule.lowest:,} to "
        f"{rule.highest:,} in steps of {rule.step:,} were searched. The binary search assumes that the "
        "frequency of the rarest entries decreases with increasing size.",
        "",
        table(
            ("size", "frequency at 95 %"),
            [(f"{probe.size:,}", f"{probe.frequency_at_95_percent:,}") for probe in search.probes],
            words=0,
        ).markdown(),
    ]


def _cells(row: SelectionRow, printed: dict[str, str]) -> list[Content]:
    measures = row.measures
    chosen = row.selected_within_type
    return [
        Cell(row.type, bold=chosen),
        Cell(PRETRAINED if row.size is None else f"{row.size:,}", bold=chosen),
        f"{measures.word_split_ratio:.2f}",
        printed.get("word_split_ratio", ""),
        _shown(measures.esms_published_code, 4),
        printed.get("esms", ""),
        _shown(measures.esms_definition, 4),
        _shown(measures.esms_published_code_corrected, 4),
        "" if measures.frequency_at_95_percent is None else f"{measures.frequency_at_95_percent:,}",
        printed.get("frequency_at_95_percent", ""),
        _shown(measures.fertility, 2),
        "" if measures.unknown_rate is None else f"{100 * measures.unknown_rate:.2f}",
    ]


def _shown(value: float | None, decimals: int) -> str:
    return "" if value is None else f"{value:.{decimals}f}"


MARKERS = ("o", "s", "^", "D", "v", "P")


READINGS: dict[Esms, str] = {
    "esms_definition": "definition",
    "esms_published_code": "published code",
    "esms_published_code_corrected": "published code, corrected",
}


def draw_tokenizer_sweep(rows: Sequence[SelectionRow], choose_by: Esms, style: Style) -> Figure:
    """Return the figure: panels of the word-split ratio and of the exact sub-token matching score in its version
    `choose_by`, with a common legend.
    """
    types = list(dict.fromkeys(row.type for row in rows))
    looks = model_styles(types, style)
    handles = _legend(types, looks, rows, style)
    height = style.width_inches * 0.38 + (3 + 1.6 * legend_rows(handles, style)) * style.font_size / 72
    figure = Figure(figsize=(style.width_inches, height), layout="constrained")
    ratios, scores = figure.subplots(1, 2)
    for place, name in enumerate(types):
        mine = [row for row in rows if row.type == name]
        esms = [(row, getattr(row.measures, choose_by)) for row in mine]
        # Reference lines of several tokenizer types may coincide. Shift their dash patterns, so that all lines are
        # visible.
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
        handles.append(Line2D([], [], **_ring(style, MUTED), label="size chosen for the tokenizer type"))
    handles.append(Line2D([], [], **_star(style, MUTED), label="final choice"))
    return handles
