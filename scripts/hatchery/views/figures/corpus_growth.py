"""Growth of a corpus's vocabulary: types against running words, one line per source and one for all together.

Both axes are logarithmic, so that sources of very different sizes can be compared where they are equally long and
Heaps' law is a straight line. A line ends where its source ends, or in a cross where measuring stopped.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from hatchery.rendering.drawing import (
    MUTED,
    abbreviated,
    entry_rows,
    is_narrow,
    legend_below,
    no_measurements,
    save_drawings,
)
from hatchery.rendering.style import DASHES, GREYS, OKABE_ITO, ModelStyle, Style
from hatchery.views.cards.vocabulary import VocabularyFacts
from hatchery.views.figures.registry import Declaration

FIGURE = Declaration(
    title="Vocabulary growth",
    caption="Types (different words) against running words, both on logarithmic axes; every source in the order of the "
    "corpus, measured exactly at ten points per factor of ten. A dot marks the end of a source.",
    also={
        "mixed": "Dotted: all sources together with their words in random order (the expected number of types, "
        "computed from the word frequencies), since in the order of the corpus every new source would make a step.",
        "stopped": "A cross marks where measuring stopped because the number of types held in memory was reached; all "
        "sources together are then what was measured of each.",
    },
)
ALL_LINE = {"color": MUTED, "linestyle": (0, (1, 1)), "linewidth": 2.6}


def plot_vocabulary_growth(
    corpus: str, sources: Mapping[str, VocabularyFacts], together: VocabularyFacts | None, style: Style, output: Path
) -> None:
    """Draw the curves of `sources`, and of all `together` if given, into `output` (SVG)."""
    title = f"{FIGURE.title} of {corpus}"
    save_drawings(lambda style: draw_vocabulary_growth(sources, together, style), style, output, title)


def draw_vocabulary_growth(
    sources: Mapping[str, VocabularyFacts], together: VocabularyFacts | None, style: Style
) -> Figure:
    """The figure: one panel, and below it a legend with the types and words at the end of every line."""
    looks = source_styles(list(sources), style)
    labels = {name: f"{plain(name)}: {_size(facts)}" for name, facts in sources.items()}
    handles = []
    if together is not None:
        handles.append(Line2D([], [], **ALL_LINE, label=f"all sources, mixed: {_size(together)}"))  # type: ignore[arg-type]
    handles += [
        Line2D([], [], color=looks[name].colour, linestyle=looks[name].dashes, linewidth=1.6, label=label)
        for name, label in labels.items()
    ]
    rows = entry_rows([str(handle.get_label()) for handle in handles], style)
    height = style.width_inches * (0.9 if is_narrow(style) else 0.5) + (4 + 1.6 * rows) * style.font_size / 72
    figure = Figure(figsize=(style.width_inches, height), layout="constrained")
    axes = figure.subplots()
    if together is not None and together.points:
        axes.plot(*zip(*together.points, strict=True), **ALL_LINE)  # type: ignore[arg-type]
    for name, facts in sources.items():
        if facts.points:
            look = looks[name]
            axes.plot(
                *zip(*facts.points, strict=True),
                color=look.colour,
                linestyle=look.dashes,
                linewidth=1.5,
                marker="o" if facts.complete else "X",
                markevery=[len(facts.points) - 1],
                markersize=style.font_size * (0.45 if facts.complete else 0.8),
            )
    curves = [facts.points for facts in (*sources.values(), together) if facts is not None and facts.points]
    if curves:
        # The first words tell little; of the shortest source at least one factor of ten is seen.
        left = min(1000, 10 ** max(0, len(str(min(points[-1][0] for points in curves))) - 2))
        logarithmic_axis(axes, "x", left, max(points[-1][0] for points in curves))
        seen = [types for points in curves for words, types in points if words >= left]
        logarithmic_axis(axes, "y", min(seen), max(seen))
    else:
        no_measurements(axes, "no words")
    axes.grid(visible=True)
    axes.set_xlabel("running words read")
    axes.set_ylabel("types (different words)")
    if handles:
        legend_below(figure, handles, style)
    return figure


def source_styles(sources: Sequence[str], style: Style) -> dict[str, ModelStyle]:
    """A look for every source by its place; without the yellow, which is hard to see as a line on white."""
    palette = OKABE_ITO[:-1] if style.colours == "okabe_ito" else GREYS
    stride = len(palette) if style.colours == "okabe_ito" else 1
    return {
        source: ModelStyle(palette[index % len(palette)], "", DASHES[index // stride % len(DASHES)])
        for index, source in enumerate(sources)
    }


def logarithmic_axis(axes: Axes, which: Literal["x", "y"], low: float, high: float) -> None:
    """Make an axis logarithmic from `low` to a little above `high`, with ticks at 1, 2 and 5 where it is short."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    top = high * max(1.1, (high / low) ** 0.04)
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    (axes.set_xlim if which == "x" else axes.set_ylim)(low, top)
    # Bins of counts begin half a unit below 1, but there are no half units to be named.
    steps = (1, 2, 5) if high < 1000 * low else (1,)
    ticks = [step * 10**power for power in range(len(str(int(top)))) for step in steps]
    axis.set_major_locator(FixedLocator([tick for tick in ticks if low <= tick <= top]))
    axis.set_major_formatter(FuncFormatter(abbreviated))
    axis.set_minor_locator(NullLocator())


def plain(label: str) -> str:
    """A name as it is: in figures a pair of dollar signs would be read as a formula."""
    return label.replace("$", r"\$")


def rounded(number: float) -> str:
    """A count in three digits with its unit of a thousand (k), a million (M) or a billion (B)."""
    return abbreviated(float(f"{number:.3g}"))


def _size(facts: VocabularyFacts) -> str:
    stopped = "" if facts.complete else ", stopped"
    return f"{rounded(facts.types)} types, {rounded(facts.running_words)} words{stopped}"
