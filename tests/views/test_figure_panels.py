"""Each panel of a figure shows its own numbers: the title, the axis and the marks belong together."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from figure_readback import legend, row_names
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

from hatchery.analysis.analyses.correlation import TABULATED
from hatchery.analysis.read_tables import CurvePoint
from hatchery.analysis.settings import FigureSettings
from hatchery.analysis.tidy_tables import CURVES, MEASUREMENTS, write_rows
from hatchery.experiment.seeded_run import SeededRun
from hatchery.rendering.style import OKABE_ITO, ModelStyle, Style
from hatchery.tokenization.selection.table import Measures, SelectionRow
from hatchery.views.figures import token_frequency, translation_scores
from hatchery.views.figures.learning_curves import curve_of, draw_learning_curves
from hatchery.views.figures.marks import MeanRow, draw_means
from hatchery.views.figures.needs import SweptValues
from hatchery.views.figures.scaling_panels import draw_entries
from hatchery.views.figures.scores_by_cost import draw_scores
from hatchery.views.figures.swept_values import swept_panels
from hatchery.views.tokenizer_sweep import draw_tokenizer_sweep

RUN = {"experiment": "demo", "model": "plain", "run": "plain-s1", "seed": 1}
RUNS = (SeededRun("plain-s1", "plain", 1),)


def titled(figure: Figure) -> dict[str, Axes]:
    return {axes.get_title(loc="left"): axes for axes in figure.axes if axes.get_title(loc="left")}


def line(axes: Axes, index: int = 0) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in axes.lines[index].get_xydata()]  # type: ignore[union-attr]


PANELS = {
    "output_divergences": {
        "kl_unigram": "From unigram (nats)",
        "kl_uniform": "From uniform (nats)",
        "kl_empirical": "From the labels (nats)",
    },
    "bias_drift": {
        "bias_kl_unigram": "From unigram (nats)",
        "bias_norm": "L2 norm",
        "bias_change": "L2 norm of the change",
    },
    "translation_curves": {"development_bleu": "BLEU", "development_chrf": "chrF"},
}


@pytest.mark.parametrize("figure", PANELS)
def test_each_panel_over_steps_shows_its_own_column(figure: str, tmp_path: Path) -> None:
    """Column number n has the values n + 5, n + 2 and n + 3 at steps 0, 1 and 4; other columns have 90."""
    columns = PANELS[figure]
    others = dict.fromkeys({name for own in PANELS.values() for name in own}, 90.0)
    rows = [
        RUN | {"step": step} | others | {name: 10.0 * number + value for number, name in enumerate(columns)}
        for step, value in ((0, 5.0), (1, 2.0), (4, 3.0))
    ]
    write_rows(tmp_path / "curves.parquet", CURVES, rows)
    drawn = import_module(f"hatchery.views.figures.{figure}").draw
    found = titled(drawn(FigureSettings("demo", RUNS), {"curves": tmp_path / "curves.parquet"}))
    assert {title: line(axes) for title, axes in found.items()} == {
        title: [(0, 10 * number + 5), (1, 10 * number + 2), (4, 10 * number + 3)]
        for number, title in enumerate(columns.values())
    }
    # Only the distance from the unigram distribution of the output has a dot, at the step of its minimum.
    dots = [line(axes, index) for axes in found.values() for index in range(1, len(axes.lines))]
    assert dots == ([[(1, 2)]] if figure == "output_divergences" else [])


def test_each_mean_is_in_the_row_of_its_name_with_its_spread() -> None:
    axes = Figure().subplots()
    look = ModelStyle("black", "", "-")
    rows = [MeanRow("first", look, (30.0, 1.0)), MeanRow("second", look, (20.0, 2.0)), MeanRow("third", look, None)]
    draw_means(axes, "title", rows, 8.0)
    bars = [each for each in axes.containers if isinstance(each, ErrorbarContainer)]
    found = {}
    for bar in bars:
        ((x, y),) = bar.lines[0].get_xydata()
        found[row_names(axes)[round(float(y))]] = (x, bar.lines[2][0].get_segments()[0][:, 0].tolist())
    assert found == {"first": (30.0, [29.0, 31.0]), "second": (20.0, [18.0, 22.0])}
    assert row_names(axes)[::-1] == ["first", "second", "third"], "the first row is on top"


def test_translated_test_sets_have_a_panel_for_each_metric(tmp_path: Path) -> None:
    """The two seeds of `plain` are 1 above and below the mean, so the standard error is 1."""
    means = {("first", "bleu"): 30.0, ("first", "chrf"): 50.0, ("second", "bleu"): 20.0, ("second", "chrf"): 40.0}
    fixed = {"experiment": "demo", "model": "plain", "kind": "translation", "suite": "translation", "level": "split"}
    rows = [
        fixed | {"run": f"plain-s{seed}", "seed": seed, "task": test, "metric": metric, "value": mean + (-1) ** seed}
        for (test, metric), mean in means.items()
        for seed in (1, 2)
    ]
    write_rows(tmp_path / "measurements.parquet", MEASUREMENTS, rows)
    runs = tuple(SeededRun(f"plain-s{seed}", "plain", seed, "plain, rate 1") for seed in (1, 2))
    settings = FigureSettings("demo", runs)
    figure = translation_scores.draw(settings, {"measurements": tmp_path / "measurements.parquet"})
    found = {}
    for title, axes in titled(figure).items():
        (bar,) = axes.containers
        found[title] = (*bar.lines[0].get_xdata(), *bar.lines[2][0].get_segments()[0][:, 0])
    expected = {"first, BLEU": 30.0, "first, chrF": 50.0, "second, BLEU": 20.0, "second, chrF": 40.0}
    assert found == {title: pytest.approx((mean, mean - 1, mean + 1)) for title, mean in expected.items()}
    assert {tuple(row_names(axes)) for axes in figure.axes} == {("plain, rate 1",)}


def test_panels_of_token_frequency_are_those_of_their_split_and_metric(tmp_path: Path) -> None:
    fixed = RUN | {"kind": "perplexity", "suite": "perplexity", "level": "bin", "items": 20, "sampling_deviation": 0.5}
    values = {"dev_from_-3": (-2.5, -1.0, -4.0), "test_from_-3": (-2.25, -3.0, -5.0)}
    metrics = ("log_frequency_nats", "log_probability_nats", "log_probability_without_bias_nats")
    rows = [
        fixed | {"task": task, "metric": metric, "value": value}
        for task, of_task in values.items()
        for metric, value in zip(metrics, of_task, strict=True)
    ]
    write_rows(tmp_path / "measurements.parquet", MEASUREMENTS, rows)
    drawn = token_frequency.draw(FigureSettings("demo", RUNS), {"measurements": tmp_path / "measurements.parquet"})
    assert {title: line(axes) for title, axes in titled(drawn).items()} == {
        "dev, whole model": [(-2.5, -1)],
        "dev, without the bias": [(-2.5, -4)],
        "test, whole model": [(-2.25, -3)],
        "test, without the bias": [(-2.25, -5)],
    }


def curve(last: float) -> list[CurvePoint]:
    return [CurvePoint(1, 10, 3.0, None, None), CurvePoint(4, 40, last, last + 0.5, 12.0)]


def test_the_upper_axis_of_learning_curves_counts_steps() -> None:
    figure = draw_learning_curves(FigureSettings("demo", RUNS), [curve_of("plain", [curve(2.0)])], 10.0)
    figure.draw_without_rendering()
    for axes in figure.axes[:2]:
        (steps,) = axes.child_axes
        assert (axes.get_xlabel(), steps.get_xlabel()) == ("tokens seen", "optimiser steps")
        assert [10 * end for end in steps.get_xlim()] == pytest.approx(list(axes.get_xlim()))


def test_the_legend_of_grid_sets_counts_trained_models_and_no_seed_has_a_band() -> None:
    runs = tuple(SeededRun.from_seed(model, seed) for model in ("a", "b", "c", "d") for seed in (1, 2))
    settings = FigureSettings("demo", runs, sets={"a": "large_ones", "b": "small_ones", "c": "large_ones", "d": "rest"})
    curves = [curve_of(model, [curve(2.0), curve(4.0)]) for model in ("a", "b", "c")] + [curve_of("d", [[], []])]
    figure = draw_learning_curves(settings, curves, None)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert {"large ones (2 models)", "small ones (1 model)", "rest (0 models)"} == set(labels)
    colours = [each.get_color() for each in figure.axes[0].lines[:3]]
    assert colours[0] == colours[2] != colours[1]
    assert not figure.axes[0].collections and not figure.axes[1].collections


LAW = {"kind": "law", "source": "ours", "axis": "flops", "r_squared": "0.97", "coefficient": "20"}
LAWS: list[dict[str, Any]] = [
    *(
        {"kind": "point", "source": "ours", "model": model, "flops": flops, "tokens": tokens, "parameters": "7"}
        | {"loss": loss, "optimal": optimal}
        for model, flops, tokens, loss, optimal in (
            ("a", "1", "4", "20", "1"),
            ("a", "16", "64", "9", "0"),
            ("b", "16", "16", "5", "1"),
            ("b", "256", "81", "3", "1"),
        )
    ),
    LAW | {"region": "all", "points": "3", "exponent": "-0.25", "above": "", "up_to": ""},
    LAW | {"region": "below", "points": "2", "exponent": "-0.5", "above": "", "up_to": "16"},
    LAW | {"region": "beyond", "points": "2", "exponent": "-0.75", "above": "16", "up_to": "1e9"},
    LAW | {"region": "all", "points": "3", "exponent": "-0.5", "above": "", "up_to": "", "axis": "tokens"},
]


def test_a_power_law_is_drawn_over_its_region_and_its_exponent_is_in_the_title() -> None:
    (axes,) = draw_entries(FigureSettings("demo", ()), {"laws": LAWS}, "flops").axes
    assert axes.get_xlabel() == "FLOPs"
    assert axes.get_title(loc="left").replace("\N{MINUS SIGN}", "-").split("\n") == [
        "ours",
        "all: e = -0.2500, R² = 0.970",
        "below: e = -0.5000, R² = 0.970",
        "beyond: e = -0.7500, R² = 0.970",
    ]
    drawn = [each for each in axes.lines if each.get_color() == "black"]
    ends = [(each.get_linestyle(), *each.get_xydata()[[0, -1]].flatten().tolist()) for each in drawn]
    # 20 times 256 to the power -1/4 is 5; 20 times 16 to the power -1/2 is 5.
    assert ends[0] == ("--", *map(pytest.approx, (1, 20, 256, 5)))
    assert ends[1] == ("-", *map(pytest.approx, (1, 20, 16, 5)))
    # 20 times 16 to the power -3/4 is 2.5; 20 times 256 to the power -3/4 is 0.3125.
    assert ends[2] == ("-", *map(pytest.approx, (16, 2.5, 256, 0.3125)))
    dots = [each for each in axes.lines if each.get_color() == OKABE_ITO[2]]
    assert [each.get_xydata().tolist() for each in dots] == [[[1, 20], [16, 5], [256, 3]]]
    assert [line(axes, place) for place in (0, 1)] == [[(1, 20), (16, 9)], [(16, 5), (256, 3)]]


def test_the_law_over_tokens_has_the_tokens_on_its_axis() -> None:
    (axes,) = draw_entries(FigureSettings("demo", ()), {"laws": LAWS}, "tokens").axes
    assert axes.get_xlabel() == "tokens"
    assert axes.get_title(loc="left").endswith("\ne = \N{MINUS SIGN}0.5000, R² = 0.970")
    (law,) = [each for each in axes.lines if each.get_color() == "black"]
    # 20 times 4 to the power -1/2 is 10; 20 divided by the root of 81 is 20 / 9.
    assert law.get_xydata()[[0, -1]].flatten().tolist() == pytest.approx([4, 10, 81, 20 / 9])
    assert law.get_linestyle() == "-"


def test_a_panel_of_laws_shows_its_entry_its_break_and_the_regions_of_one_model() -> None:
    same = LAW | {"region": "same", "points": "3", "exponent": "-0.25", "above": "", "up_to": "16"}
    point = {"kind": "point", "source": "ours", "model": "b", "tokens": "100", "parameters": "7", "optimal": "1"}
    rows = [*LAWS, same, point | {"flops": "4096", "loss": "2"}]
    cuts = [{"kind": "break", "source": "ours", "above": "16", "up_to": "64", "gain": gain} for gain in ("9", "11")]
    entries = {"first_fit": [*rows, cuts[1]], "second": [*LAWS, cuts[0]]}
    flops, tokens = (draw_entries(FigureSettings("demo", ()), entries, axis) for axis in ("flops", "tokens"))
    titles = [axes.get_title(loc="left").split("\n") for axes in flops.axes]
    assert [title[0] for title in titles] == ["first fit: ours", "second: ours"]
    # The law `same` is fitted to all three points, as the law of all.
    assert [line.partition(":")[0] for line in titles[0][1:]] == ["all", "below", "beyond"]
    # A break needs a gain above 10. Model `b` is optimal at three consecutive points only in the first entry.
    assert [[len(axes.patches) for axes in figure.axes] for figure in (flops, tokens)] == [[1, 0], [1, 0]]
    (shaded,), (region,) = flops.axes[0].patches, tokens.axes[0].patches
    assert (shaded.get_x(), shaded.get_width()) == (16, 48)
    assert (region.get_x(), region.get_x() + region.get_width()) == pytest.approx((16 / 1.12, 100 * 1.12))
    common = {"a model", "compute-optimal"}
    plain = draw_entries(FigureSettings("demo", ()), {"second": LAWS}, "tokens")
    assert [legend(figure) for figure in (flops, tokens, plain)] == [
        common | {"power law of a region", "power law of all", "break"},
        common | {"power law", "one model stays compute-optimal"},
        common | {"power law"},
    ]


def test_a_score_is_at_the_parameters_and_at_the_flops_of_its_model() -> None:
    fixed = {"kind": "model", "suite": "glue", "optimal": "0"}
    rows = [
        fixed | {"source": "ours", "parameters": "1e6", "flops": "1e15", "score": "61", "perplexity": "10"},
        fixed
        | {"source": "ours", "parameters": "2e6", "flops": "5e15", "score": "72", "perplexity": "40"}
        | {"optimal": "1"},
        fixed | {"source": TABULATED, "parameters": "3e6", "flops": "", "score": "83", "perplexity": ""},
    ]
    figure = draw_scores(FigureSettings("demo", ()), {"correlation": rows})
    found = {axes.get_xlabel(): axes for axes in figure.axes[:2]}
    assert [[line(axes, place)[0] for place in range(len(axes.lines))] for axes in found.values()] == [
        [(1e6, 61), (2e6, 72), (3e6, 83)],
        [(1e15, 61), (5e15, 72)],
    ]
    assert list(found) == ["parameters", "FLOPs"] and {axes.get_ylabel() for axes in found.values()} == {"average (%)"}
    # The lowest perplexity is at the dark end of the scale `cividis`.
    low, high = (sum(each.get_markerfacecolor()[:3]) for each in figure.axes[0].lines[:2])
    assert low < 0.7 < 1.5 < high
    bar = figure.axes[2].xaxis
    # Between 10 and 40 on a logarithmic scale: 10 times 4 to the powers 1/8, 3/8, 5/8 and 7/8.
    assert [label.get_text() for label in bar.get_ticklabels()] == ["11.9", "16.8", "23.8", "33.6"]
    assert list(bar.get_ticklocs()) == pytest.approx([11.9, 16.8, 23.8, 33.6])
    assert bar.get_label_text() == "perplexity of ours" and figure.axes[2].get_xlim() == pytest.approx((10, 40))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["ours", "ours, compute-optimal", TABULATED]
    assert [each.get_marker() for each in figure.axes[0].lines] == ["o", "*", "D"]
    several = draw_scores(FigureSettings("demo", ()), {"all_models": rows, "large_ones": rows[1:]})
    titles = [axes.get_title(loc="left") for axes in several.axes]
    assert titles == ["all_models: glue"] * 2 + ["large_ones: glue"] * 2 + [""]
    assert [len(axes.lines) for axes in several.axes[:4]] == [3, 2, 2, 1]


def test_a_sweep_of_tokenizers_marks_the_chosen_sizes_and_the_final_choice() -> None:
    def row(name: str, size: int | None, ratio: float, esms: float | None, **chosen: Any) -> SelectionRow:
        return SelectionRow(name, size, size, Measures(ratio, esms_definition=9.0, esms_published_code=esms), **chosen)

    rows = [
        row("bpe", 1000, 1.75, 0.25, selected_within_type=True),
        row("bpe", 2000, 1.5, 0.125),
        row("bpe", None, 1.25, None),
        row("unigram", 1000, 2.0, 0.5),
        row("unigram", 2000, 1.0, 0.75, selected_within_type=True, final_choice=True),
    ]
    ratios, scores = draw_tokenizer_sweep(rows, "esms_published_code", Style()).axes
    assert ratios.get_title(loc="left") == "word-split ratio (tokens per word)"
    assert scores.get_title(loc="left") == "ESMS (published code)"
    for axes, bpe, unigram in ((ratios, [1.75, 1.5], [2.0, 1.0]), (scores, [0.25, 0.125], [0.5, 0.75])):
        lines = [each for each in axes.lines if len(each.get_xdata()) == 2 and each.get_xdata()[1] == 2000]
        assert [list(each.get_ydata()) for each in lines] == [bpe, unigram]
        marks = {each.get_marker(): each.get_xydata().tolist() for each in axes.lines if each.get_markersize() > 8}
        assert marks == {"o": [[1000, bpe[0]]], "*": [[2000, unigram[1]]]}
        assert axes.get_xlabel() == "vocabulary size"
    assert [list(each.get_ydata()) for each in ratios.lines if list(each.get_xdata()) == [0, 1]] == [[1.25, 1.25]]


def test_a_published_value_is_at_the_swept_value_of_its_model_and_numbers_precede_words_on_the_axis() -> None:
    """The optimizer has three values, and the rate has two values, but words have no order."""
    values = {"a": ("lamb", 0.5), "b": ("adamw", 0.5), "c": ("muon", 2.0)}
    swept = {
        model: SweptValues("base", values={"optimizer.name": name, "rate": rate})
        for model, (name, rate) in values.items()
    }
    runs = [SeededRun.from_seed(model, 1) for model in values]
    found = {"accuracy": {"a-s1": 60.0, "b-s1": 70.0, "c-s1": 80.0}}
    (panel,) = swept_panels(runs, swept, found, {}, {"other": {"a": 99.0}, "accuracy": {"b": 71.0, "c": 83.0}})
    assert (panel.axis, panel.published) == ("rate", [(0.5, 71.0), (2.0, 83.0)])
    assert panel.lines == {
        "base, optimizer.name lamb": [(0.5, 60.0, 0.0)],
        "base, optimizer.name adamw": [(0.5, 70.0, 0.0)],
        "base, optimizer.name muon": [(2.0, 80.0, 0.0)],
    }
