"""The contents of figures. Files do not change from run to run."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from figure_readback import assert_nothing_overlaps, row_names, typed
from matplotlib.colors import to_hex
from matplotlib.container import ErrorbarContainer
from matplotlib.patches import Rectangle
from matplotlib.text import Annotation
from measured_rows import frame

from hatchery.analysis import read_tables
from hatchery.analysis.aggregates import Aggregate
from hatchery.analysis.pretrained_run import read_layer_weights
from hatchery.analysis.read_tables import CurvePoint
from hatchery.analysis.settings import FigureSettings
from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.manifests import read_manifest, stage_run
from hatchery.errors import EvaluationError
from hatchery.experiment.project import Project
from hatchery.experiment.seeded_run import SeededRun
from hatchery.rendering import drawing
from hatchery.rendering.style import OKABE_ITO, Style, model_styles
from hatchery.runner import run_stage
from hatchery.views.figures import layer_weights, phenomena
from hatchery.views.figures.learning_curves import (
    curve_of,
    draw_learning_curves,
    interval_means,
    interval_width,
    tokens_per_step,
)
from hatchery.views.figures.needs import drawable
from hatchery.views.figures.phenomena import (
    AVERAGE_GAP,
    SuiteBars,
)
from hatchery.views.stages.draw_figure import draw_figure


def panels_of(experiment: Any) -> list[layer_weights.LayerPanel]:
    settings = typed(experiment)
    return layer_weights.panels_of(
        settings, read_tables.read_layer_weights(experiment.tables()["layers"], settings.runs)
    )


def test_the_first_panel_of_layer_weights_is_the_plain_residual_stream(two_models: Any) -> None:
    plain, elc = panels_of(two_models)
    assert plain.title.startswith("plain (unit")
    assert plain.table.scaled == {(1, 0): 1.0, (2, 0): 1.0, (2, 1): 1.0}
    assert elc.title == "elc (1 seed)"
    assert elc.table.scaled == {(1, 0): 1.0, (2, 0): 0.5, (2, 1): 1.5}


def test_layer_weights_are_averaged_over_the_seeds_of_a_model(experiment: Any) -> None:
    experiment.add_model("elc", 1, [], alphas={(1, 0): 1.0, (2, 0): 0.2, (2, 1): 0.8})
    experiment.add_model("elc", 2, [], alphas={(1, 0): 1.0, (2, 0): 0.4, (2, 1): 0.6})
    (panel,) = panels_of(experiment)
    assert panel.title == "elc (2 seeds)"
    assert panel.table.scaled == {(1, 0): 1.0, (2, 0): pytest.approx(0.6), (2, 1): pytest.approx(1.4)}


def test_plain_models_of_one_depth_share_a_panel(experiment: Any) -> None:
    for name, layers in (("random", 2), ("plain", 2), ("deep", 4)):
        experiment.add_model(name, 1, [], layers=layers)
    panels = panels_of(experiment)
    assert [panel.title.split(" (")[0] for panel in panels] == ["random, plain", "deep"]
    assert len(panels[1].table.scaled) == 10


def test_every_cell_of_the_lower_triangle_is_drawn_and_annotated(experiment: Any) -> None:
    alphas = {(n, i): 1 / n for n in range(1, 14) for i in range(n)}
    experiment.add_model("weighted", 1, [], layers=12, alphas=alphas)
    figure = layer_weights.draw(typed(experiment), experiment.tables())
    axes = figure.axes[0]
    assert len([patch for patch in axes.patches if isinstance(patch, Rectangle)]) == 13 * 14 / 2
    assert {text.get_text() for text in axes.texts} == {"1.00"}
    assert [label.get_text() for label in axes.get_yticklabels()] == [*map(str, range(1, 13)), "output"]
    # The row of the first consumer is on top, as in the paper.
    assert axes.get_ylim()[0] > axes.get_ylim()[1]


def test_numbers_can_be_read_on_dark_and_on_light_cells(experiment: Any) -> None:
    experiment.add_model(
        "elc", 1, [], layers=3, alphas={(1, 0): 1, (2, 0): 0, (2, 1): 1, (3, 0): 0, (3, 1): 0, (3, 2): 1}
    )
    figure = layer_weights.draw(typed(experiment), experiment.tables())
    colours = {text.get_text(): text.get_color() for text in figure.axes[0].texts}
    assert {name: colours[name] for name in ("0.00", "1.00", "3.00")} == {
        **{"0.00": "white", "1.00": "black", "3.00": "white"}
    }


def test_a_weight_that_has_two_digits_before_the_point_has_one_after_it() -> None:
    weights = {(1, 0): 9.96, (2, 0): 9.94, (2, 1): -0.5}
    panel = layer_weights.LayerPanel("t", read_tables.LayerWeights(2, False, weights))
    figure = layer_weights.draw_layer_weights(FigureSettings("demo", ()), [panel])
    assert [text.get_text() for text in figure.axes[0].texts] == ["10.0", "9.94", "-0.50"]


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        (
            '[{"consuming_layer": 1, "producing_layer": 1, "scaled_weight": 1}]',
            "the weight with which layer 1 reads the output of layer 0 is missing",
        ),
        (
            '[{"consuming_layer": 1, "producing_layer": 0, "scaled_weight": 1}]',
            "the weight with which layer 2 reads the output of layer 0 is missing",
        ),
        ('[{"consuming_layer": 1, "producing_layer": 0, "scaled_weight": null}]', "expected a number"),
    ],
)
def test_wrong_layer_weights_name_the_file(tmp_path: Path, rows: str, complaint: str) -> None:
    with stage_run(tmp_path / "manifest.json", {}) as run:
        write_text(tmp_path / "layer_weights.json", f'{{"rows": {rows}}}')
        write_text(tmp_path / "config.json", '{"num_hidden_layers": 2, "layer_weighting": "zero"}')
        run.add_output(tmp_path / "layer_weights.json")
        run.add_output(tmp_path / "config.json")
    with pytest.raises(EvaluationError, match=complaint) as caught:
        read_layer_weights(read_manifest(tmp_path / "manifest.json"))
    assert "layer_weights.json" in str(caught.value)


def test_weights_between_blocks_are_no_shares_of_layers_and_have_no_figure(tmp_path: Path, repository: Path) -> None:
    with stage_run(tmp_path / "manifest.json", {}) as run:
        write_text(tmp_path / "config.json", '{"num_hidden_layers": 2, "layer_weighting": "unrestricted"}')
        run.add_output(tmp_path / "config.json")
    assert read_layer_weights(read_manifest(tmp_path / "manifest.json")).scaled == {}
    assert "layer_weights" not in drawable(Project(repository / "config"), "gpt_bert_mini")


def test_training_losses_are_averaged_in_equal_intervals_of_steps() -> None:
    rows = [(step, 10 * step, float(step)) for step in range(1, 8)]
    # Steps 0-3 and 4-7 are two intervals of four steps.
    assert list(interval_means(rows, interval_width(rows, 2)).values()) == [(20.0, 2.0), (55.0, 5.5)]
    every = [(10.0 * step, float(step)) for step in range(1, 8)]
    assert list(interval_means(rows, interval_width(rows, 200)).values()) == every
    many = [(step, step, 1.0) for step in range(1, 31251)]
    assert len(interval_means(many, interval_width(many))) <= 200
    # The steps 1 to 400 do not fit into 200 intervals of two steps, because the first interval contains step 0.
    assert len(interval_means(many[:400], interval_width(many[:400]))) <= 200


def test_an_axis_of_steps_is_drawn_only_where_all_runs_share_it() -> None:
    def points(tokens: list[int]) -> list[CurvePoint]:
        return [CurvePoint(step, count, 1.0, None, None) for step, count in enumerate(tokens, start=1)]

    assert tokens_per_step([points([100, 200, 300]), points([101, 199, 300])]) == 100
    assert tokens_per_step([points([100, 200, 300]), points([200, 400, 600])]) is None
    assert tokens_per_step([points([100, 200, 600])]) is None
    assert tokens_per_step([[], []]) is None


def test_seeds_are_one_line_with_a_band_and_models_that_were_not_trained_are_told_in_the_legend() -> None:
    def points(last: float, *more: CurvePoint) -> list[CurvePoint]:
        return [CurvePoint(1, 10, 3.0, None, None), CurvePoint(2, 20, last, last + 0.5, 12.0), *more]

    runs = {"plain": (1, 2), "single": (1,), "random": (1, 2)}
    cells = tuple(SeededRun.from_seed(model, seed) for model, seeds in runs.items() for seed in seeds)
    curves = [
        curve_of("plain", [points(2.0), points(4.0, CurvePoint(3, 30, 2.0, None, None))]),
        curve_of("single", [points(2.0)]),
        curve_of("random", [[], []]),
    ]
    figure = draw_learning_curves(FigureSettings("demo", cells), curves, 10.0)
    training, development = figure.axes[:2]
    # Only one seed has the third step.
    assert [list(line.get_xdata()) for line in training.lines] == [[10, 20, 30], [10, 20], []]
    assert [list(line.get_ydata()) for line in training.lines] == [[3.0, 3.0, 2.0], [3.0, 2.0], []]
    assert [list(line.get_ydata()) for line in development.lines] == [[3.5], [2.5], []]
    assert [len(axes.collections) for axes in (training, development)] == [1, 1], "a band where there are two seeds"
    (band,) = (path.get_extents() for path in training.collections[0].get_paths())
    assert (band.y0, band.y1) == (pytest.approx(3 - 2**0.5), pytest.approx(3 + 2**0.5))
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["plain (2 seeds)", "single (1 seed)", "random (2 seeds), not trained"]


def test_bars_are_means_over_seeds_with_whiskers_and_a_line_of_chance(two_models: Any) -> None:
    (axes,) = phenomena.draw(typed(two_models), two_models.tables()).axes
    assert row_names(axes) == ["agreement", "ellipsis", "phenomenon average"]
    widths = [bar.get_width() for bar in axes.patches if isinstance(bar, Rectangle)]
    assert widths == pytest.approx([72.5, 77.5, 55.0, 75.0, 63.75, 76.25])
    # With two seeds, the standard deviation. With one seed, 1.96 binomial deviations of 75 right of 100 pairs, with two
    # right and two wrong pairs added.
    whiskers = [each for each in axes.containers if isinstance(each, ErrorbarContainer)]
    spans = [np.ptp(whisker.lines[2][0].get_segments()[0][:, 0]) / 2 for whisker in whiskers]
    assert spans[::2] == pytest.approx([2.5 * 2**0.5, 5 * 2**0.5, 1.25 * 2**0.5])
    assert spans[3] == pytest.approx(196 * (77 / 104 * 27 / 104 / 104) ** 0.5)
    assert any(list(line.get_xdata()) == [50.0, 50.0] for line in axes.lines)


def test_a_whisker_near_a_hundred_percent_ends_there_and_is_whole_on_the_other_side(experiment: Any) -> None:
    experiment.add_minimal_pairs(experiment.add_model("elc", 1, []), "blimp", {"agreement": {"a": (99, 100)}})
    (axes,) = phenomena.draw(typed(experiment), experiment.tables()).axes
    whisker = next(each for each in axes.containers if isinstance(each, ErrorbarContainer))
    expected = (99 - 196 * (101 / 104 * 3 / 104 / 104) ** 0.5, 100)
    assert whisker.lines[2][0].get_segments()[0][:, 0] == pytest.approx(expected)


def test_chance_is_that_of_the_items_and_a_suite_without_right_answers_has_a_panel(experiment: Any) -> None:
    cell = experiment.add_model("ltg", 1, [])
    right = {"states": {"one": (30, 100)}, "goals": {"two": (40, 100)}}
    # `tracking` has five candidates, `piqa` four and two.
    experiment.add_minimal_pairs(cell, "tracking", right, chance=dict.fromkeys(right, 0.2))
    experiment.add_minimal_pairs(cell, "piqa", right, chance={"states": 0.25, "goals": 0.5})
    experiment.add_correlations(cell, "wug", {"past": -0.24, "adjectives": 0.6})
    figure = phenomena.draw(typed(experiment), experiment.tables())
    panels = {axes.get_title(loc="left"): axes for axes in figure.axes}
    dashed = {
        name: {line.get_xdata()[0] for line in axes.lines if line.get_linestyle() == "--"}  # type: ignore[index]
        for name, axes in panels.items()
    }
    assert dashed == {"tracking": {20.0}, "piqa": {25.0, 50.0, 37.5}, "wug": {0.0}}
    wug = panels["wug"]
    assert [bar.get_width() for bar in wug.patches if isinstance(bar, Rectangle)] == [60.0, -24.0]
    # Every second ten has a tick, so that 0 and 100 have ticks.
    assert list(wug.get_xticks()) == [-20, 0, 20, 40, 60, 80, 100]
    assert wug.get_xlim()[0] == -30 and "correlation" in wug.get_xlabel() and row_names(wug) == ["adjectives", "past"]
    assert "accuracy" in panels["piqa"].get_xlabel() and panels["tracking"].get_xlabel() == ""
    assert_nothing_overlaps(figure)


def test_bars_are_in_the_order_of_the_legend_and_a_number_is_beyond_lines_and_marks_at_the_end_of_its_bar() -> None:
    """Model `c` has no bar. Chance differs between the phenomena; `ellipsis` of `a` ends just before chance."""
    chances = {"agreement": 25.0, "ellipsis": 50.0, "phenomenon_average": 37.5}
    means = {("agreement", "a"): 60.0, ("agreement", "b"): 70.0, ("ellipsis", "a"): 49.0, ("ellipsis", "b"): 80.0}
    means |= {("phenomenon_average", "a"): 54.5, ("phenomenon_average", "b"): 75.0}
    bars = {key: Aggregate(mean, 0.5, 2, blind_guess=chances[key[0]]) for key, mean in means.items()}
    panel = SuiteBars("blimp", list(chances), bars, {("agreement", "b"): 73.0, ("ellipsis", "b"): 95.0})
    settings = FigureSettings("demo", tuple(SeededRun.from_seed(model, 1) for model in ("c", "a", "b")))
    (axes,) = phenomena.draw_phenomena(settings, [panel]).axes
    # A group of two bars has the height of 2.8 bars; averages are 0.6 rows lower.
    centres = [group + side * 0.5 / 2.8 for group in (0, 1, 2.6) for side in (-1, 1)]
    drawn = [bar for bar in axes.patches if isinstance(bar, Rectangle)]
    assert [bar.get_y() + bar.get_height() / 2 for bar in drawn] == pytest.approx(centres)
    assert [bar.get_width() for bar in drawn] == list(means.values())
    assert [to_hex(bar.get_facecolor()).upper() for bar in drawn] == [*OKABE_ITO[1:3]] * 3
    assert [label.get_fontweight() for label in axes.get_yticklabels()] == ["normal", "normal", "bold"]
    assert axes.get_ylim() == pytest.approx((3.1, -0.5))
    assert list(axes.get_xticks()) == [*range(0, 101, 10)]
    dashed = [np.transpose(line.get_xydata()).tolist() for line in axes.lines if line.get_linestyle() == "--"]
    expected = [[[chance] * 2, [place - 0.5, place + 0.5]] for chance, place in ((25.0, 0), (50.0, 1), (37.5, 2.6))]
    assert np.ravel(dashed) == pytest.approx(np.ravel(expected))
    assert [list(line.get_ydata()) for line in axes.lines if list(line.get_xdata()) == [0, 1]] == [
        [pytest.approx(1.8)] * 2
    ]
    # The published value 73 would cover the number after its bar; the published value 95 is further right.
    numbers = {text.get_text(): text.xy[0] for text in axes.texts if isinstance(text, Annotation)}
    ends = {"60.0": 60.5, "70.0": 73.0, "49.0": 50.0, "80.0": 80.5, "54.5": 55.0, "75.0": 75.5}
    assert numbers == ends
    (chance,) = [text for text in axes.texts if text.get_text() == "chance"]
    assert chance.get_position()[0] == 25.0
    assert axes.get_title(loc="right") == "not evaluated: c"
    # No published value and no score of a blind guess is known in half of the second panel.
    guesses = {("agreement", "a"): Aggregate(60.0, 0.5, 2, blind_guess=50.0), ("islands", "a"): Aggregate(60.0, 0.5, 2)}
    figure = phenomena.draw_phenomena(settings, [panel, SuiteBars("other", ["agreement", "islands"], guesses)])
    assert "published mean" in [text.get_text() for text in figure.legends[0].get_texts()]
    (dashed_line,) = [line for line in figure.axes[1].lines if line.get_linestyle() == "--"]
    assert dashed_line.get_xydata().tolist() == [[50.0, -0.5], [50.0, 0.5]]


def test_the_average_of_a_suite_is_over_pairs_if_there_is_one_else_over_several_phenomena() -> None:
    def shown(*tasks: str) -> list[str]:
        fixed = {"kind": "minimal_pairs", "suite": "x", "metric": "accuracy_percent", "value": 60.0}
        rows = [fixed | {"task": task, "level": "average" if "average" in task else "phenomenon"} for task in tasks]
        return phenomena.suite_bars("x", frame(rows)).phenomena

    averages = ("phenomenon_average", "paradigm_average")
    assert shown("b", "a", *averages, "pair_average") == ["a", "b", "pair_average"]
    assert shown("b", "a", *averages) == ["a", "b", "phenomenon_average"]
    assert shown("a", *averages) == ["a"]


def test_averages_of_phenomena_stand_apart_from_them() -> None:
    panel = SuiteBars("blimp", ["agreement", "ellipsis", "phenomenon_average"], {})
    assert panel.places() == [0, 1, pytest.approx(2 + AVERAGE_GAP)]
    assert SuiteBars("blimp", ["agreement"], {}).places() == [0]


def test_the_axis_of_a_suite_contains_whiskers_below_zero() -> None:
    ranges = [
        SuiteBars("wug", ["plural"], {("plural", "a"): Aggregate(mean, 12.0, 3)}).extent() for mean in (12.0, 11.0, 5.0)
    ]
    assert ranges == [(0.0, 100.0), (-10.0, 100.0), (-10.0, 100.0)]
    assert SuiteBars("wug", ["plural"], {}).extent() == (0.0, 100.0)
    assert SuiteBars("wug", ["plural"], {("plural", "a"): Aggregate(-95.0, 12.0, 3)}).extent() == (-100.0, 100.0)


def test_the_line_of_chance_crosses_no_number(experiment: Any) -> None:
    # These bars end at the chance line, so that their numbers would cross it.
    cell = experiment.add_model("elc", 1, [])
    experiment.add_minimal_pairs(cell, "blimp", {"agreement": {"a": (48, 100)}, "ellipsis": {"b": (49, 100)}})
    (axes,) = phenomena.draw(typed(experiment), experiment.tables()).axes
    (line,) = [line for line in axes.lines if list(line.get_xdata()) == [50.0, 50.0]]
    numbers = [text for text in axes.texts if re.fullmatch(r"\d+\.\d", text.get_text())]
    assert len(numbers) == 3
    for number in numbers:
        box = number.get_bbox_patch()
        assert box is not None and box.get_facecolor() == (1, 1, 1, 1)
        assert number.get_zorder() > line.get_zorder()
        # Numbers start to the right of the chance line.
        assert number.get_window_extent().x0 > axes.transData.transform((50, 0))[0]


def test_a_figure_holds_a_second_drawing_for_phones_in_which_nothing_overlaps(two_models: Any, tmp_path: Path) -> None:
    tables = two_models.tables()
    run_stage(draw_figure, two_models.figure_settings(), tmp_path / "a.svg", tables=tables)
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids)) and "narrow" in ids
    assert all(name in ids for name in re.findall(r'(?:href="#|url\(#)([^")]+)', text))
    run_stage(draw_figure, two_models.figure_settings(width_inches=4), tmp_path / "b.svg", tables=tables)
    assert "<symbol" not in (tmp_path / "b.svg").read_text(encoding="utf-8")
    settings = typed(two_models, width_inches=drawing.NARROW_INCHES)
    points = read_tables.read_curves(tables["curves"], settings.runs)
    curves = [curve_of(run.model, [points[run.name]]) for run in settings.runs]
    figure = draw_learning_curves(settings, curves, tokens_per_step(list(points.values())))
    above, below = (axes.get_position() for axes in figure.axes)
    assert above.y0 > below.y1, "one panel above the other"
    assert_nothing_overlaps(layer_weights.draw(settings, tables))


def test_more_models_than_colours_are_still_told_apart() -> None:
    for colours in ("okabe_ito", "grey"):
        styles = model_styles([f"m{index}" for index in range(20)], Style(colours=colours))
        assert len(set(styles.values())) == 20


def test_a_legend_in_several_rows_is_read_in_the_configured_order() -> None:
    cells = tuple(SeededRun(f"model_number_{index}-s1", f"model_number_{index}", 1) for index in range(5))
    figure = draw_learning_curves(FigureSettings("demo", cells, Style(width_inches=4)), [], None)
    legend = figure.legends[0]
    figure.canvas.draw()
    places = {text.get_text(): text.get_window_extent() for text in legend.get_texts()}
    order = sorted(places, key=lambda name: (-round(places[name].y0), places[name].x0))
    assert order == [f"model_number_{index} (1 seed)" for index in range(5)]


def test_word_frequencies_alone_are_a_line_in_both_panels_of_the_learning_curves() -> None:
    cells = (SeededRun("plain-s1", "plain", 1),)
    curves = [curve_of("plain", [[CurvePoint(1, 10, 3.0, None, None), CurvePoint(2, 20, 2.0, 2.5, 12.0)]])]
    figure = draw_learning_curves(FigureSettings("demo", cells), curves, 10.0, [2.25])
    for axes in figure.axes[:2]:
        assert [list(line.get_ydata()) for line in axes.lines].count([2.25, 2.25]) == 1
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["plain (1 seed)", "word frequencies alone"]
    without = draw_learning_curves(FigureSettings("demo", cells), curves, 10.0)
    assert [text.get_text() for text in without.legends[0].get_texts()] == ["plain (1 seed)"]
