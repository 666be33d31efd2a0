"""Parts that all drawings share: sizes, colours, wrapped names and legends."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from hatchery.rendering.drawing import (
    colour_on,
    entry_rows,
    grid_shape,
    legend_columns,
    legend_rows,
    not_evaluated,
    outline,
    save_figure,
    wrapped,
)
from hatchery.rendering.style import GREYS, MARKERS, OKABE_ITO, ModelStyle, Style, model_styles
from hatchery.rendering.templates import embedded_figure


def test_a_page_shows_the_drawing_for_the_window_and_enlarges_it_by_at_most_35_percent(tmp_path: Path) -> None:
    path = tmp_path / "figure.svg"
    save_figure(lambda style: Figure(figsize=(style.width_inches, 1)), Style(), path, "A title")
    text, pdf = path.read_text(encoding="utf-8"), path.with_suffix(".pdf").read_bytes()
    # The width is 9 inches or, on a phone, 3.8 inches. An inch has 72 points.
    assert 'width="648pt"' in text and '<symbol id="narrow" viewBox="0 0 273.6 72">' in text
    assert b"/MediaBox [ 0 0 648 72 ]" in pdf
    checksums = path.with_suffix(".sha256").read_text(encoding="utf-8")
    assert all(hashlib.sha256(file.read_bytes()).hexdigest() in checksums for file in (path, path.with_suffix(".pdf")))
    page = embedded_figure(path, "caption", ["See `x`."])
    # A point has 4/3 CSS pixels: 648 x 4/3 x 1.35 and 273.6 x 4/3 x 1.35.
    assert 'style="max-width: 1166px"' in page and 'viewBox="0 0 273.6 72" style="max-width: 492px"' in page
    assert '<figcaption id="caption-figure">caption</figcaption>' in page and "<p>See <code>x</code>.</p>" in page


def test_a_name_is_wrapped_after_spaces_underscores_and_hyphens_if_it_is_too_wide() -> None:
    # A letter is estimated as 0.58 times the font size, so 58 points are ten letters.
    assert wrapped("a_long name-of things", 58, 10) == "a_long\nname-of\nthings"
    assert [wrapped(text, 58, 10) for text in ("abcde fghi", "abcde fghij")] == ["abcde fghi", "abcde\nfghij"]


def test_a_legend_has_as_many_columns_as_fit() -> None:
    labels = ["ab", "abc\nabcdef", "c", "d", "e"]
    # An entry of six letters has 9 x (0.6 x 6 + 5) = 77.4 points; the figures have 648 and 273.6 points.
    for width, columns, rows in ((9, 5, 1), (3.8, 3, 2)):
        style = Style(width_inches=width)
        assert (legend_columns(labels, style), entry_rows(labels, style)) == (columns, rows)
        assert legend_rows([Line2D([], [], label=label) for label in labels], style) == 2 * rows


def test_a_grid_of_panels_has_no_empty_row_or_column() -> None:
    assert [grid_shape(count, 3) for count in (7, 3, 2, 1)] == [(3, 3), (1, 3), (1, 2), (1, 1)]


def test_text_and_outlines_are_readable_on_their_background() -> None:
    fills = {"black": [(1, 1, 1, 1), (0, 1, 0, 1)], "white": [(0, 0, 0, 1), (1, 0, 0, 1), (0, 0, 1, 1)]}
    assert {text: [colour_on(np.array(fill)) for fill in fills[text]] for text in fills} == {
        **{"black": ["black"] * 2, "white": ["white"] * 3}
    }
    # Yellow is light: 0.6 times (240, 228, 66).
    assert (outline("#F0E442"), outline("#0072B2")) == ("#908928", "#0072B2")


@pytest.mark.parametrize(("models", "text"), [("", ""), ("abc", "not evaluated: a, b, c"), ("abcd", "4 models")])
def test_up_to_three_models_without_scores_are_named(models: str, text: str) -> None:
    axes = Figure().subplots()
    not_evaluated(axes, list(models), Style())
    assert axes.get_title(loc="right").endswith(text) and bool(axes.get_title(loc="right")) == bool(models)


def test_hatches_and_dashes_change_after_all_colours_or_with_every_grey() -> None:
    names = list("abcdefghi")
    coloured, grey = (model_styles(names, Style(colours=colours)) for colours in ("okabe_ito", "grey"))
    assert coloured["h"] == ModelStyle(OKABE_ITO[7], "", "-", MARKERS[7])
    assert coloured["i"] == ModelStyle(OKABE_ITO[0], "//", "--", MARKERS[8])
    assert grey["b"] == ModelStyle(GREYS[1], "//", "--", MARKERS[1])
