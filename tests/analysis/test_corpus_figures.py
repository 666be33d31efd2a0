"""The figures of a corpus card: one line or row per source, axes with units, nothing cut off, files without a date."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from hatchery.rendering.drawing import figure_style
from hatchery.rendering.style import Style
from hatchery.views.cards.measure_corpus import bins_of, facts_of_lengths
from hatchery.views.cards.vocabulary import Vocabulary, VocabularyFacts, facts_of, facts_of_all
from hatchery.views.figures.corpus_growth import draw_vocabulary_growth, plot_vocabulary_growth
from hatchery.views.figures.corpus_lengths import KINDS, Lengths, draw_lengths, plot_lengths

STYLE = Style()
NAMES = {
    1: ["only"],
    11: [f"a_rather_long_name_of_source_{index}" for index in range(11)],
}


def vocabularies(names: Sequence[str], words: int = 3000) -> dict[str, Vocabulary]:
    found = {}
    for index, name in enumerate(names):
        found[name] = Vocabulary(10**6)
        found[name].add([f"w{(i * i) % (50 + 70 * index)}" for i in range(words)])
    return found


def growth_of(names: Sequence[str]) -> tuple[dict[str, VocabularyFacts], VocabularyFacts | None]:
    found = vocabularies(names)
    facts = {name: facts_of(vocabulary, 3) for name, vocabulary in found.items()}
    return facts, facts_of_all(list(found.values()), 3) if len(names) > 1 else None


def lengths_of(names: Sequence[str], scale: int = 1) -> Lengths:
    counted = Counter({scale * (3 + index): 20 - index for index in range(20)})
    return {(name, kind): (bins_of(counted), facts_of_lengths(counted)) for name in names for kind in KINDS}


def assert_nothing_is_cut_off(figure: Figure) -> None:
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    page = figure.bbox
    for axes in figure.axes:
        low, high = axes.get_xlim()
        ticks = [label for label in axes.get_xticklabels() if low <= label.get_position()[0] <= high]
        for text in (axes.title, axes.xaxis.label, axes.yaxis.label, *axes.texts, *ticks):
            if text.get_text() and text.get_visible():
                box = text.get_window_extent()
                assert box.x0 >= page.x0 - 1, text.get_text()
                assert box.x1 <= page.x1 + 1, text.get_text()
    for legend in figure.legends:
        box = legend.get_window_extent()
        assert page.x0 <= box.x0 < box.x1 <= page.x1
        # The legend lies below the axes and covers no data.
        assert all(box.y1 <= axes.get_window_extent().y0 for axes in figure.axes)


@pytest.mark.parametrize("number", [1, 11])
def test_growth_has_a_line_per_source_and_one_for_all_with_units_on_the_axes(number: int) -> None:
    facts, together = growth_of(NAMES[number])
    with figure_style(STYLE):
        figure = draw_vocabulary_growth(facts, together, STYLE)
        assert_nothing_is_cut_off(figure)
    (axes,) = figure.axes
    assert len(axes.lines) == number + (number > 1)
    for name, line in zip(NAMES[number], axes.lines[1 if number > 1 else 0 :], strict=True):
        assert list(zip(line.get_xdata(), line.get_ydata(), strict=True)) == facts[name].points
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("running words read", "types (different words)")
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert sum(": 50 types, 3k words" in label for label in labels) <= 1
    assert {label.split(":")[0] for label in labels} == {
        *NAMES[number],
        *(["all sources, mixed"] if number > 1 else []),
    }
    looks = {(line.get_color(), str(line.get_linestyle())) for line in axes.lines}
    assert len(looks) == len(axes.lines)


def test_a_curve_that_stopped_is_marked_and_told() -> None:
    vocabulary = Vocabulary(5)
    vocabulary.add(list("abcdefgh"))
    with figure_style(STYLE):
        figure = draw_vocabulary_growth({"big": facts_of(vocabulary, 1)}, None, STYLE)
    assert figure.axes[0].lines[0].get_marker() == "X"
    assert figure.legends[0].get_texts()[0].get_text() == "big: 8 types, 8 words, stopped"


def test_sources_without_words_are_drawn_empty_and_said_to_be(tmp_path: Path) -> None:
    empty = facts_of(Vocabulary(5), 1)
    with figure_style(STYLE):
        figure = draw_vocabulary_growth({"none": empty}, None, STYLE)
    assert [text.get_text() for text in figure.axes[0].texts] == ["no words"]
    plot_lengths("x", ["none"], {("none", kind): ([], None) for kind in KINDS}, STYLE, tmp_path / "lengths.svg")
    assert (tmp_path / "lengths.svg").is_file()


@pytest.mark.parametrize("number", [1, 11])
@pytest.mark.parametrize("scale", [1, 10_000])
def test_lengths_have_two_panels_per_source_on_common_axes_with_units(number: int, scale: int) -> None:
    with figure_style(STYLE):
        figure = draw_lengths(NAMES[number], lengths_of(NAMES[number], scale), STYLE)
        assert_nothing_is_cut_off(figure)
    assert len(figure.axes) == 2 * number
    last = figure.axes[-2:]
    assert [axes.get_xlabel() for axes in last] == ["words per sentence", "words per document"]
    assert [axes.get_title(loc="left") for axes in figure.axes[:2]] == ["Sentences by length", "Documents by length"]
    assert {axes.get_xlim() for axes in figure.axes[::2]} == {last[0].get_xlim()}
    names = [axes.get_ylabel() for axes in figure.axes[::2]]
    assert names == (["share per doubling of length (%)"] if number == 1 else NAMES[number])
    medians = {text.get_text() for axes in figure.axes for text in axes.texts}
    assert medians == {f"median {8 * scale:,}"}


def test_the_area_of_a_histogram_is_all_of_it() -> None:
    bins, facts = lengths_of(["x"])["x", "sentences"]
    assert facts is not None
    assert sum(item.count / facts.number for item in bins) == pytest.approx(1)
    with figure_style(STYLE):
        axes = draw_lengths(["x"], lengths_of(["x"]), STYLE).axes[0]
    heights, edges, _ = axes.patches[0].get_data()  # type: ignore[attr-defined]
    widths = [item.doublings for item in bins]
    assert sum(height * width for height, width in zip(heights, widths, strict=True)) == pytest.approx(100)
    assert list(edges) == [0.5, *(item.high + 0.5 for item in bins)]


def test_a_name_that_looks_like_a_formula_or_a_comment_is_drawn_as_it_is(tmp_path: Path) -> None:
    names = ["a $x^$ b", "--><script>alert(1)</script>"]
    facts, together = growth_of(names)
    plot_vocabulary_growth("c & <d>", facts, together, STYLE, tmp_path / "growth.svg")
    plot_lengths("c & <d>", names, lengths_of(names), STYLE, tmp_path / "lengths.svg")
    for name in ("growth", "lengths"):
        text = (tmp_path / f"{name}.svg").read_text(encoding="utf-8")
        outside_comments = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
        assert "script" not in outside_comments
        assert "c &amp; &lt;d&gt;" in text
