"""What the figures of scaling show of the rows that their analyses found."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from hatchery.analysis.analyses.analysis import Findings
from hatchery.analysis.compute_optimal import regions_of_one_model
from hatchery.analysis.settings import FigureSettings
from hatchery.rendering.drawing import NARROW_INCHES, figure_style, save_drawings
from hatchery.rendering.style import OKABE_ITO, Style
from hatchery.views.figures.scaling_panels import draw_entries
from hatchery.views.figures.scores_by_cost import draw_scores

Rows = Sequence[Mapping[str, str]]
WIDE = FigureSettings("invented", ())
PAPER = "reduced_vocabulary"


def as_texts(found: Findings) -> Rows:
    """The rows as `numbers.csv` gives them back."""
    return [{name: "" if value is None else str(value) for name, value in row.items()} for row in found.rows]


@pytest.fixture(scope="module")
def laws(analysed: Callable[..., Findings]) -> Rows:
    regions = {"below_break": {"up_to": 2.2e15}, "above_break": {"above": 2.65e15}}
    return as_texts(
        analysed("power_laws", experiments=["one"], bins="january_2023", regions=regions, draws=2, paper=PAPER)
    )


@pytest.fixture(scope="module")
def scores(analysed: Callable[..., Findings]) -> Rows:
    return as_texts(analysed("correlation", experiments=["one"], paper=PAPER))


def panels(figure: Figure) -> dict[str, Axes]:
    return {axes.get_title(loc="left").split("\n")[0]: axes for axes in figure.axes if axes.get_title(loc="left")}


def dots(axes: Axes) -> list[tuple[float, float]]:
    (line,) = [line for line in axes.lines if line.get_color() == OKABE_ITO[2]]
    return list(zip(line.get_xdata(), line.get_ydata(), strict=True))  # type: ignore[arg-type]


@pytest.mark.parametrize("axis", ["flops", "tokens", "parameters"])
def test_the_compute_optimal_points_of_each_source_have_a_panel(laws: Rows, axis: str) -> None:
    found = panels(draw_entries(WIDE, {"power_laws": laws}, axis))
    assert list(found) == ["ours", "published curves"]
    for source, axes in found.items():
        best = [row for row in laws if (row["source"], row["optimal"]) == (source, "1")]
        assert dots(axes) == [(float(row[axis]), float(row["loss"])) for row in best]
        # A line for each model, the points, and at least one law.
        models = {row["model"] for row in laws if (row["kind"], row["source"]) == ("point", source)}
        assert len(axes.lines) > len(models) + 1


def test_regions_with_all_points_are_not_drawn_twice(laws: Rows) -> None:
    found = panels(draw_entries(WIDE, {"power_laws": laws}, "flops"))
    assert [len(axes.get_title(loc="left").split("\n")) - 1 for axes in found.values()] == [1, 3]
    assert "above break: e = \N{MINUS SIGN}0.1429, R² = 0.990" in found["published curves"].get_title(loc="left")


def test_the_break_is_shaded_where_it_is_decisive_and_on_the_axis_of_flops_alone(laws: Rows) -> None:
    assert len(panels(draw_entries(WIDE, {"power_laws": laws}, "flops"))["published curves"].patches) == 1
    doubtful = [row | {"gain": "3"} if row["kind"] == "break" else row for row in laws]
    assert not panels(draw_entries(WIDE, {"power_laws": doubtful}, "flops"))["published curves"].patches


@pytest.mark.parametrize("axis", ["flops", "tokens", "parameters"])
def test_the_points_of_a_model_that_stays_compute_optimal_lie_in_a_grey_box_but_for_the_axis_of_flops(
    laws: Rows, axis: str
) -> None:
    axes = panels(draw_entries(WIDE, {"power_laws": laws}, axis))["published curves"]
    best = sorted((row for row in laws if row["source"] == "published curves" and row["optimal"] == "1"), key=by_flops)
    regions = regions_of_one_model([row["model"] for row in best])
    boxes = [patch for patch in axes.patches if isinstance(patch, Rectangle) and patch.get_alpha() == 0.35]
    if axis == "flops":
        assert len(regions) == 4 and len(boxes) == 1  # the break
        return
    assert len(boxes) == len(regions)
    for box, places in zip(boxes, regions, strict=True):
        left, low, right, high = box.get_x(), box.get_y(), box.get_x() + box.get_width(), box.get_y() + box.get_height()
        inside = [left < float(row[axis]) < right and low < float(row["loss"]) < high for row in best]
        assert all(inside[place] for place in places)


def by_flops(row: Mapping[str, str]) -> float:
    return float(row["flops"])


def test_a_compute_optimal_model_is_a_star_with_its_word_in_the_legend(scores: Rows) -> None:
    first = next(row["model"] for row in scores if row["source"] == "ours")
    marked = [row | {"optimal": str(int(row["model"] == first))} if row["optimal"] else row for row in scores]
    figure = draw_scores(WIDE, {"correlation": marked})
    stars = [sum(line.get_marker() == "*" for line in axes.lines) for axes in figure.axes if axes.lines]
    assert stars == [1] * 4
    assert "ours, compute-optimal" in {text.get_text() for legend in figure.legends for text in legend.get_texts()}


def test_entries_are_told_apart_where_there_are_several(laws: Rows) -> None:
    found = panels(draw_entries(WIDE, {"all_models": laws, "small_ones": laws}, "flops"))
    assert list(found)[::2] == ["all models: ours", "small ones: ours"]


def test_every_model_is_a_mark_in_its_panels(scores: Rows) -> None:
    figure = draw_scores(WIDE, {"correlation": scores})
    drawn = [axes for axes in figure.axes if axes.get_title(loc="left")]
    assert [axes.get_title(loc="left") for axes in drawn] == ["rv_glue", "rv_glue", *["rv_glue_filtered"] * 2]
    # Twelve of ours and nineteen published ones.
    assert [len(axes.lines) for axes in drawn] == [12 + 19] * 4
    ours = [row for row in scores if (row["kind"], row["suite"], row["source"]) == ("model", "rv_glue", "ours")]
    marks = ["*" if row["optimal"] == "1" else "o" for row in ours] + ["D"] * 19
    assert sorted(line.get_marker() for line in drawn[0].lines) == sorted(marks)


@pytest.mark.parametrize("draw", [lambda s, rows: draw_entries(s, rows, "flops"), draw_scores])
def test_without_measurements_the_figure_says_so(draw: Callable[..., Figure]) -> None:
    for entries in ({}, {"empty": []}):
        figure = draw(WIDE, entries)
        assert "no measurements" in {text.get_text() for axes in figure.axes for text in axes.texts}


@pytest.mark.parametrize("name", ["laws", "scores"])
def test_the_same_rows_give_the_same_file_for_wide_screens_and_phones(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    rows = request.getfixturevalue(name)

    def draw(style: Style) -> Figure:
        settings = FigureSettings("invented", (), style)
        return draw_entries(settings, {"e": rows}, "tokens") if name == "laws" else draw_scores(settings, {"e": rows})

    for file in ("a.svg", "b.svg"):
        save_drawings(draw, Style(), tmp_path / file, "a figure")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert "<symbol" in (tmp_path / "a.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("colours", ["okabe_ito", "grey"])
@pytest.mark.parametrize("width", [NARROW_INCHES, 9.0])
def test_every_style_can_be_drawn(laws: Rows, scores: Rows, width: float, colours: Any) -> None:
    settings = FigureSettings("invented", (), Style(width_inches=width, colours=colours))
    with figure_style(settings.style):
        for figure in (draw_entries(settings, {"e": laws}, "flops"), draw_scores(settings, {"e": scores})):
            figure.draw_without_rendering()
            assert figure.get_figwidth() == width
