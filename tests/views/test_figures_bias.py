"""The two figures of the Linguistic Bias Score show the scores of all runs, including failed runs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from figure_readback import PRINTED, ROWS, STRICT, assert_nothing_overlaps, dots, legend, published, row_names, typed

from hatchery.analysis.task_averages import MSGS_AMBIGUOUS_TASKS, bias_features
from hatchery.errors import EvaluationError
from hatchery.rendering.drawing import NARROW_INCHES, figure_style
from hatchery.rendering.style import MARKERS
from hatchery.views.figures import bias_violins, feature_dots
from hatchery.views.figures.bias_runs import BIAS_LANE, BiasTask, read_bias_runs, swarm_offsets
from hatchery.views.figures.bias_violins import kernel_density

MVLC, MVRTP, CRLC, CRRTP, SCLC, SCRTP = MSGS_AMBIGUOUS_TASKS
SEEDS, RATES = (12, 369, 2395), (1e-5, 2e-5, 3e-5)


def scores(low: float, high: float) -> list[float]:
    """Nine bimodal scores."""
    return [low + 0.01 * index if index % 2 else high + 0.01 * index for index in range(9)]


def add_runs(experiment: Any, cell: str, task: str, values: list[float | None], failures: dict[int, str]) -> None:
    runs = [(seed, rate) for seed in SEEDS for rate in RATES]
    results = {
        run: ((value,), failures.get(index, "")) for index, (run, value) in enumerate(zip(runs, values, strict=False))
    }
    experiment.add_finetuning(cell, task, ("mcc",), results, suite="msgs")


@pytest.fixture
def bimodal(experiment: Any) -> Any:
    """Two models, six tasks, nine runs. One run of `elc` collapsed (MCC 0), another has no value."""
    for model in ROWS:
        cell = experiment.add_model(model, 42, [])
        for place, task in enumerate(MSGS_AMBIGUOUS_TASKS):
            values: list[float | None] = [*scores(-0.9 + 0.05 * place, 0.5 + 0.02 * place)]
            failures = {}
            if (model, task) == ("elc", SCRTP):
                values[0], values[1], failures = 0.0, None, {0: "zero_mcc", 1: "nan"}
            add_runs(experiment, cell, task, values, failures)
    return experiment


def drop_task(experiment: Any, task: str) -> None:
    experiment.tasks.remove(task)
    for cell in experiment.pretraining:
        del experiment.finetuning[f"{cell}:{task}"]


def test_the_six_ambiguous_tasks_are_all_pairs_of_features_and_nothing_else_is() -> None:
    pairs = [bias_features(task) for task in MSGS_AMBIGUOUS_TASKS]
    assert len(set(pairs)) == 6
    assert bias_features(SCRTP) == ("syntactic_category", "relative_position")
    assert bias_features(MVRTP) == ("main_verb", "relative_position")
    assert bias_features(f"demo_{MVLC}") == ("main_verb", "lexical_content")
    for other in ("msgs_main_verb_control", "msgs_relative_position_control", "babylm_cola", f"{MVLC}_mm"):
        assert bias_features(other) is None


def test_every_run_of_a_violin_is_a_dot_and_the_failed_ones_are_hollow(bimodal: Any) -> None:
    figure = bias_violins.draw(typed(bimodal), bimodal.tables())
    (axes,) = figure.axes
    assert row_names(axes) == ["ltg (1 seed)", "elc (1 seed)"]
    expected = sorted(value for place in range(6) for value in scores(-0.9 + 0.05 * place, 0.5 + 0.02 * place))
    assert sorted(x for x, _ in dots(axes, MARKERS[0], failed=False)) == pytest.approx(expected)
    assert len(dots(axes, MARKERS[1], failed=False)) == 52
    assert sorted(x for x, _ in dots(axes, MARKERS[1], failed=True)) == [BIAS_LANE, 0.0]
    assert "no\nvalue" in [label.get_text() for label in axes.get_xticklabels()]
    assert [text.get_text() for text in axes.texts] == ["54 runs", "54 runs\n2 failed"]
    assert legend(figure) == {"middle half of the runs", "median", "mean", "run", "failed run"}


def test_a_violin_has_its_median_and_its_mean_over_tasks(bimodal: Any) -> None:
    axes = bias_violins.draw(typed(bimodal), bimodal.tables()).axes[0]
    values = [value for place in range(6) for value in scores(-0.9 + 0.05 * place, 0.5 + 0.02 * place)]
    means = [float(line.get_xdata()[0]) for line in axes.lines if line.get_marker() == "|"]  # type: ignore[index]
    assert means[0] == pytest.approx(np.mean(values))
    # The task with a missing value has eight runs, including the collapsed run, and the same weight as other tasks.
    last = [0.0, *scores(-0.9 + 0.05 * 5, 0.5 + 0.02 * 5)[2:]]
    tasks = [np.mean(values[9 * place : 9 * place + 9]) for place in range(5)] + [np.mean(last)]
    assert means[1] == pytest.approx(np.mean(tasks))
    medians = {round(y): x for x, y in dots(axes, "o", failed=True) if y - round(y) == pytest.approx(-0.12)}
    assert medians == {0: pytest.approx(np.median(values)), 1: pytest.approx(np.median([*values[:45], *last]))}
    # The first model has 24 low and 30 high scores. The quartiles are a quarter of the way from the 14th to the 15th
    # low score, and between the 16th and the 17th high score, which are equal.
    boxes = [[*map(float, line.get_xdata())] for line in axes.lines if line.get_solid_capstyle() == "butt"]  # type: ignore[arg-type]
    assert boxes[0] == pytest.approx([-0.715, 0.6])
    # The first model is on top. Violins have equal areas, and the highest density has a half height of 0.3 rows.
    assert axes.get_ylim() == (1.5, -0.5)
    outlines = [violin.get_paths()[0].vertices for violin in axes.collections]
    areas = [abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1))) / 2 for x, y in (each.T for each in outlines)]
    assert areas[0] == pytest.approx(areas[1], rel=0.01)
    assert max(np.ptp(each[:, 1]) for each in outlines) == pytest.approx(2 * 0.3)


def test_a_model_has_a_mean_only_if_it_was_evaluated_on_all_tasks_of_the_others_and_a_violin_from_three_runs_on(
    bimodal: Any,
) -> None:
    del bimodal.finetuning[f"{[*bimodal.pretraining][1]}:{CRLC}"]
    for model, values in (("two", [0.5, 0.7]), ("three", [0.5, 0.7, 0.9])):
        add_runs(bimodal, bimodal.add_model(model, 42, []), MVLC, [*values], {})
    (axes,) = bias_violins.draw(typed(bimodal), bimodal.tables()).axes
    strokes = [float(line.get_ydata()[0]) for line in axes.lines if line.get_marker() == "|"]  # type: ignore[index]
    assert [round(place) for place in strokes] == [0]
    assert [round(float(violin.get_paths()[0].vertices[:, 1].mean())) for violin in axes.collections] == [0, 1, 3]
    assert [text.get_text() for text in axes.texts] == ["54 runs", "45 runs\n2 failed", "2 runs", "3 runs"]


def test_the_density_integrates_to_one_and_keeps_two_modes_apart() -> None:
    places = np.linspace(-1, 1, 2001)
    density = kernel_density([-1.0] * 5 + [0.7] * 4, places)
    assert np.trapezoid(density, places) == pytest.approx(1.0, abs=1e-3)
    assert density[np.abs(places).argmin()] < 1e-3
    assert density[0] == density.max()


@pytest.mark.parametrize("tasks", [MSGS_AMBIGUOUS_TASKS, MSGS_AMBIGUOUS_TASKS[:5]])
def test_the_published_mean_is_marked_where_it_is_over_the_same_tasks(
    bimodal: Any, repository: Path, tasks: tuple[str, ...]
) -> None:
    for task in set(MSGS_AMBIGUOUS_TASKS).difference(tasks):
        drop_task(bimodal, task)
    figure = bias_violins.draw(typed(bimodal, STRICT), bimodal.tables(repository / PRINTED))
    # ELC-BERT Table 2: LTG-BERT -0.42, ELC-BERT -0.26.
    complete = len(tasks) == 6
    assert [x for x, _ in published(figure.axes[0])] == (
        [pytest.approx(-0.42), pytest.approx(-0.26)] if complete else []
    )
    assert ("published mean" in legend(figure)) == complete


def test_a_panel_of_dots_holds_every_run_of_its_pair_of_features(bimodal: Any, repository: Path) -> None:
    figure = feature_dots.draw(typed(bimodal, STRICT), bimodal.tables(repository / PRINTED))
    order = (MVLC, MVRTP, SCLC, SCRTP, CRLC, CRRTP)
    # ELC-BERT Table 10, last six columns of both models.
    printed = {
        **{MVLC: (-0.72, -0.01), MVRTP: (0.20, 0.44), SCLC: (-0.20, 0.01)},
        **{SCRTP: (-0.50, -0.57), CRLC: (-0.42, -0.64), CRRTP: (-0.86, -0.81)},
    }
    assert len(figure.axes) == 6
    for axes, task in zip(figure.axes, order, strict=True):
        place = MSGS_AMBIGUOUS_TASKS.index(task)
        expected = sorted(scores(-0.9 + 0.05 * place, 0.5 + 0.02 * place))
        assert sorted(x for x, _ in dots(axes, MARKERS[0], failed=False)) == pytest.approx(expected)
        assert sorted(published(axes), key=lambda mark: mark[1]) == [
            (pytest.approx(value), row) for row, value in enumerate(printed[task])
        ]
        assert len(dots(axes, MARKERS[1], failed=True)) == (2 if task == SCRTP else 0)
        # The mean of the second model includes the run with the score 0, but not the run without a value.
        with_value = [0.0, *scores(-0.65, 0.6)[2:]] if task == SCRTP else expected
        strokes = [float(x) for line in axes.lines if line.get_marker() == "|" for x in line.get_xdata()]  # type: ignore[union-attr]
        assert strokes == pytest.approx([np.mean(expected), np.mean(with_value)])
    titles = [axes.get_title(loc="left").replace("\n", " ") for axes in figure.axes]
    assert titles[0] == "main verb (+1) or lexical content (\N{MINUS SIGN}1)"
    assert titles[3] == "syntactic category (+1) or relative token position (\N{MINUS SIGN}1)"
    assert row_names(figure.axes[0]) == ["ltg (1 seed)", "elc (1 seed)"]


def test_a_title_names_the_suite_if_there_are_several() -> None:
    pair = ("my_msgs", "main_verb", "relative_position")
    own, other = BiasTask("my_msgs", MVRTP, *pair[1:]), BiasTask("msgs", MVRTP, *pair[1:])
    title = "main verb (+1) or relative token position (\N{MINUS SIGN}1)"
    assert feature_dots._title(pair, {own: {}}) == title
    assert feature_dots._title(pair, {own: {}, other: {}}) == f"my msgs: {title}"


def test_pairs_of_features_that_were_not_run_say_so(bimodal: Any) -> None:
    for task in (MVRTP, CRLC, CRRTP, SCLC):
        drop_task(bimodal, task)
    figure = feature_dots.draw(typed(bimodal), bimodal.tables())
    shown = [[text.get_text() for text in axes.texts] == ["not run"] for axes in figure.axes]
    assert shown == [False, True, True, False]
    # Model names are next to the first panel of each row.
    assert row_names(figure.axes[3]) == ["ltg (1 seed)", "elc (1 seed)"]
    assert_nothing_overlaps(figure)


@pytest.mark.parametrize("style", [{}, {"width_inches": 6, "font_size": 8}, {"width_inches": NARROW_INCHES}])
def test_twelve_models_with_long_names_do_not_overlap(experiment: Any, style: dict[str, Any]) -> None:
    names = [f"elc_bert_with_a_rather_long_name_of_variant_{index}" for index in range(12)]
    for name in names:
        cell = experiment.add_model(name, 42, [])
        for task in MSGS_AMBIGUOUS_TASKS:
            add_runs(experiment, cell, task, [*scores(-0.9, 0.8)], {3: "zero_mcc"})
    settings, tables = typed(experiment, **style), experiment.tables()
    with figure_style(settings.style):
        for figure in (module.draw(settings, tables) for module in (bias_violins, feature_dots)):
            assert row_names(figure.axes[0]) == [f"{name} (1 seed)" for name in names]
            assert_nothing_overlaps(figure)


def test_models_of_which_every_run_failed_are_still_drawn(experiment: Any) -> None:
    cell = experiment.add_model("elc", 42, [])
    add_runs(experiment, cell, MVLC, [None] * 4 + [0.0] * 5, {i: "nan" if i < 4 else "zero_mcc" for i in range(9)})
    settings, tables = typed(experiment), experiment.tables()
    for figure in (module.draw(settings, tables) for module in (bias_violins, feature_dots)):
        hollow = [x for x, _ in dots(figure.axes[0], "o", failed=True)]
        # The hollow dots of a violin plot include the white median.
        medians = sum(label == "median" for label in legend(figure))
        assert sorted(hollow) == [BIAS_LANE] * 4 + [0.0] * (5 + medians)
        assert dots(figure.axes[0], "o", failed=False) == []
        assert {"run", "failed run", "mean"} <= legend(figure)
        assert_nothing_overlaps(figure)


def test_dots_that_would_hide_each_other_are_moved_apart_but_not_beyond_the_limit() -> None:
    assert swarm_offsets([0.0, 0.5, 1.0], 0.1, 0.2, 1.0) == [0.0, 0.0, 0.0]
    assert sorted(swarm_offsets([0.3] * 5, 0.1, 0.2, 1.0)) == pytest.approx([-0.4, -0.2, 0.0, 0.2, 0.4])
    crowded = swarm_offsets([0.3] * 101, 0.1, 0.2, 1.0)
    assert len(set(crowded)) == 101
    assert max(map(abs, crowded)) == pytest.approx(1.0)


def test_tasks_that_are_not_ambiguous_have_no_bias(bimodal: Any) -> None:
    for cell in bimodal.pretraining:
        bimodal.add_finetuning(cell, "msgs_main_verb_control", ("mcc",), {12: ((1.0,), "")}, suite="msgs")
    assert {task.task for task in read_bias_runs(typed(bimodal), bimodal.tables())} == set(MSGS_AMBIGUOUS_TASKS)


def test_a_task_without_its_correlation_names_the_table(experiment: Any) -> None:
    cell = experiment.add_model("elc", 42, [])
    experiment.add_finetuning(cell, MVLC, ("accuracy",), {12: ((0.5,), "")}, suite="msgs")
    with pytest.raises(EvaluationError, match=r"measurements\.parquet: elc: the metric mcc of " + MVLC):
        read_bias_runs(typed(experiment), experiment.tables())
