"""Means and deviations over runs."""

import math
import statistics
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured_rows import frame

from hatchery.analysis.aggregates import (
    Aggregate,
    aggregate_runs,
    average_of_tasks,
    average_per_run,
    mean_and_deviation,
)

PERCENT = st.floats(min_value=0, max_value=100)


def run(value: float | None, seed: int = 1, failed: str = "", task: str = "cola", rate: float = 1e-5) -> dict[str, Any]:
    return {"task": task, "value": value, "finetuning_seed": seed, "failed": failed, "learning_rate": rate}


@given(st.lists(PERCENT, min_size=2, max_size=20))
def test_the_deviation_is_the_sample_standard_deviation(values: list[float]) -> None:
    mean, deviation = mean_and_deviation(values)
    assert mean == pytest.approx(statistics.fmean(values))
    assert deviation == pytest.approx(statistics.stdev(values), abs=1e-9)


def test_one_run_has_a_mean_but_no_deviation() -> None:
    assert mean_and_deviation([61.4]) == (61.4, None)
    assert mean_and_deviation([]) == (None, None)


def test_runs_that_failed_are_averaged_in_and_counted_and_those_without_a_number_are_in_no_mean() -> None:
    runs = [run(80.0, 1), run(84.0, 2), run(61.0, 3, "majority_class"), run(None, 4, "nan")]
    found = aggregate_runs(frame(runs))
    assert (found.mean, found.mean_without_failed) == (75.0, 82.0)
    assert found.std == pytest.approx(math.sqrt((25 + 81 + 196) / 2))
    assert (found.n, found.n_failed, found.n_without_number) == (3, 1, 1)


def test_a_metric_of_which_all_runs_failed_has_their_mean_and_none_without_them() -> None:
    assert aggregate_runs(frame([run(61.4, 1, "majority_class")])) == Aggregate(61.4, None, n=1, n_failed=1)


def test_a_metric_of_which_no_run_gave_a_number_has_no_mean() -> None:
    assert aggregate_runs(frame([run(None, 1, "nan")])) == Aggregate(None, None, n=0, n_without_number=1)


def test_the_deviation_of_an_average_of_tasks_is_the_root_mean_square_of_the_tasks() -> None:
    average = average_of_tasks([Aggregate(60.0, 3.0, 5, 0, 60.0), Aggregate(80.0, 4.0, 4, 1, 90.0, 1)])
    assert average == Aggregate(70.0, pytest.approx(5 / math.sqrt(2)), 4, 1, 75.0, 1)


def test_an_average_has_no_mean_where_a_task_has_none_and_none_without_failed_runs_where_all_of_a_task_failed() -> None:
    sound = Aggregate(60.0, 3.0, 5, 0, 60.0)
    assert average_of_tasks([sound, Aggregate(None, None, 0, n_without_number=5)]).mean is None
    collapsed = average_of_tasks([sound, Aggregate(80.0, 3.0, 5, n_failed=5)])
    assert (collapsed.mean, collapsed.mean_without_failed) == (70.0, None)


def test_averaging_within_runs_sees_tasks_that_compensate_each_other() -> None:
    cola = [run(60.0, 1), run(70.0, 2)]
    rte = [run(70.0, 1, task="rte"), run(60.0, 2, task="rte")]
    assert average_per_run(frame(cola + rte), 2, None) == Aggregate(65.0, 0.0, n=2, mean_without_failed=65.0)
    tasks = [aggregate_runs(frame(task)) for task in (cola, rte)]
    assert average_of_tasks(tasks).std == pytest.approx(math.sqrt(50))


def test_a_run_that_failed_on_one_task_is_in_the_average_within_runs_and_one_that_lacks_a_number_is_not() -> None:
    cola = [run(60.0, 1), run(69.0, 2, "zero_mcc"), run(None, 3, "nan"), run(60.0, 4)]
    rte = [run(70.0, 1, task="rte"), run(91.0, 2, task="rte"), run(90.0, 3, task="rte")]
    found = average_per_run(frame(cola + rte), 2, None)
    assert (found.mean, found.mean_without_failed) == (72.5, 65.0)
    assert (found.n, found.n_failed, found.n_without_number) == (2, 1, 2)


def test_runs_of_tasks_with_rates_of_their_own_are_matched_by_the_rank_of_the_rate() -> None:
    cola = [run(value, rate=rate) for value, rate in ((60.0, 7e-5), (70.0, 9e-5))]
    qqp = [run(value, task="qqp", rate=rate) for value, rate in ((90.0, 8e-5), (80.0, 5e-5))]
    found = average_per_run(frame(cola + qqp), 2, None)
    assert found == Aggregate(75.0, pytest.approx(math.sqrt(50)), n=2, mean_without_failed=75.0)
