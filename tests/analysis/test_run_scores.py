"""Which numbers of a model's runs are compared."""

import pytest
from measured_rows import frame

from hatchery.errors import EvaluationError
from hatchery.views.paper_tables.order_table import run_scores

Scores = dict[tuple[str, int, float], float | None]


def scores_of(scores: Scores) -> list[float]:
    rows = [
        {"task": task, "finetuning_seed": seed, "learning_rate": rate, "value": value}
        for (task, seed, rate), value in scores.items()
    ]
    return run_scores(frame(rows), sorted({task for task, _, _ in scores}))


def test_a_run_is_averaged_over_its_tasks():
    runs = {("rte", 1, 1e-5): 50.0, ("rte", 2, 1e-5): 60.0, ("wsc", 2, 1e-5): 62.0, ("wsc", 1, 1e-5): 70.0}
    assert scores_of(runs) == [60.0, 61.0]


def test_runs_at_several_learning_rates_stay_apart():
    runs = {(task, 1, rate): rate * 1e5 for task in ("a", "b") for rate in (1e-5, 2e-5, 3e-5)}
    assert scores_of(runs) == pytest.approx([1.0, 2.0, 3.0])


def test_tasks_with_learning_rates_of_their_own_are_matched_by_the_place_in_the_sweep():
    runs = {("qqp", 1, 5e-5): 80.0, ("rte", 1, 7e-5): 60.0, ("qqp", 2, 5e-5): 82.0, ("rte", 2, 7e-5): 50.0}
    assert scores_of(runs) == [70.0, 66.0]


def test_a_run_without_a_value_on_one_task_has_no_average():
    runs = {("a", 1, 1.0): None, ("b", 1, 1.0): 2.0, ("a", 2, 1.0): 3.0, ("b", 2, 1.0): 5.0}
    assert scores_of(runs) == [4.0]


def test_the_order_of_rows_changes_nothing():
    runs = {(task, seed, 1.0): 0.1 * seed + 0.7 * len(task) for task in ("a", "bb", "ccc") for seed in (1, 2)}
    assert scores_of(runs) == scores_of(dict(reversed(runs.items())))


def test_the_same_scores_on_other_tasks_give_the_same_average() -> None:
    rising, falling = (
        scores_of({(task, 1, 1.0): value for task, value in zip("abc", values, strict=True)})
        for values in ((0.1, 0.2, 0.3), (0.3, 0.2, 0.1))
    )
    assert rising == falling


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ({("a", 1, 1.0): 1.0, ("b", 1, 1.0): 1.0, ("a", 2, 1.0): 1.0}, "seed 42, 2 .* no score for b"),
        ({("a", 1, 1.0): 1.0, ("a", 1, 2.0): 1.0, ("b", 1, 1.0): 1.0}, "learning rate 2 .* no score for b"),
        ({("a", 1, 1.0): None}, "no run has a score for every task"),
    ],
)
def test_gaps_are_refused(scores: Scores, message: str) -> None:
    with pytest.raises(EvaluationError, match=message):
        scores_of(scores)


def test_a_run_that_occurs_twice_is_refused() -> None:
    row = {"task": "a", "finetuning_seed": 1, "learning_rate": 1.0, "value": 1.0}
    with pytest.raises(EvaluationError, match="two scores for a"):
        run_scores(frame([row, row]), ["a"])
