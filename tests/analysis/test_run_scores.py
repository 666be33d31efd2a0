"""Which numbers of a model's runs are compared."""

import pytest

from hatchery.analysis.run_scores import RunScore, score_lists
from hatchery.errors import ConfigError, EvaluationError


def table(scores: dict[tuple[str, int, float], float | None]) -> list[RunScore]:
    return [RunScore(task, (seed,), rate, value) for (task, seed, rate), value in scores.items()]


def test_a_run_is_averaged_over_its_tasks():
    runs = table({("rte", 1, 1e-5): 50.0, ("rte", 2, 1e-5): 60.0, ("wsc", 2, 1e-5): 62.0, ("wsc", 1, 1e-5): 70.0})
    assert score_lists({"model": runs}) == {"model": [60.0, 61.0]}


def test_pooled_scores_are_all_scores():
    runs = table({("rte", 1, 1e-5): 50.0, ("rte", 2, 1e-5): None, ("wsc", 2, 1e-5): 62.0, ("wsc", 1, 1e-5): 70.0})
    assert sorted(score_lists({"model": runs}, "pooled")["model"]) == [50.0, 62.0, 70.0]


def test_runs_at_several_learning_rates_stay_apart():
    runs = table({(task, 1, rate): rate * 1e5 for task in ("a", "b") for rate in (1e-5, 2e-5, 3e-5)})
    assert score_lists({"model": runs})["model"] == pytest.approx([1.0, 2.0, 3.0])


def test_tasks_with_learning_rates_of_their_own_are_matched_by_the_place_in_the_sweep():
    runs = table({("qqp", 1, 5e-5): 80.0, ("rte", 1, 7e-5): 60.0, ("qqp", 2, 5e-5): 82.0, ("rte", 2, 7e-5): 50.0})
    assert score_lists({"model": runs})["model"] == [70.0, 66.0]


def test_a_run_without_a_value_on_one_task_has_no_average():
    runs = table({("a", 1, 1.0): None, ("b", 1, 1.0): 2.0, ("a", 2, 1.0): 3.0, ("b", 2, 1.0): 5.0})
    assert score_lists({"model": runs})["model"] == [4.0]


def test_the_order_of_rows_changes_nothing():
    runs = table({(task, seed, 1.0): 0.1 * seed + 0.7 * len(task) for task in ("a", "bb", "ccc") for seed in (1, 2)})
    assert score_lists({"model": runs}) == score_lists({"model": runs[::-1]})


def test_the_same_scores_on_other_tasks_give_the_same_average():
    rising, falling = (
        table({(task, 1, 1.0): value for task, value in zip("abc", values, strict=True)})
        for values in ((0.1, 0.2, 0.3), (0.3, 0.2, 0.1))
    )
    lists = score_lists({"rising": rising, "falling": falling})
    assert lists["rising"] == lists["falling"]


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ({"m": {("a", 1, 1.0): 1.0, ("b", 1, 1.0): 1.0, ("a", 2, 1.0): 1.0}}, "m: .*seed 2 .* no score for b"),
        ({"m": {("a", 1, 1.0): 1.0, ("a", 1, 2.0): 1.0, ("b", 1, 1.0): 1.0}}, "learning rate 2 .* no score for b"),
        ({"m": {("a", 1, 1.0): 1.0}, "n": {("b", 1, 1.0): 1.0}}, "n was run on b, but m on a"),
        ({"m": {("a", 1, 1.0): None}}, "m: no run has a score for every task"),
        ({"m": {}}, "m: no run has a score"),
    ],
)
def test_gaps_are_refused(models, message):
    with pytest.raises(EvaluationError, match=message):
        score_lists({name: table(scores) for name, scores in models.items()})


def test_a_run_that_occurs_twice_is_refused():
    with pytest.raises(EvaluationError, match="two scores for a"):
        score_lists({"m": table({("a", 1, 1.0): 1.0}) * 2})


def test_another_unit_is_refused():
    with pytest.raises(ConfigError, match="unit: 'mean'"):
        score_lists({"m": table({("a", 1, 1.0): 1.0})}, "mean")
