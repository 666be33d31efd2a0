"""Means and deviations over runs, and averages over fine-tuned tasks: included tasks, joined metrics and names."""

import math
import statistics
from dataclasses import replace
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured_rows import frame

from hatchery.analysis.aggregates import (
    Aggregate,
    aggregate_runs,
    aggregate_values,
    average_of_tasks,
    average_per_run,
    least_of_best,
    mean_and_deviation,
)
from hatchery.analysis.task_averages import (
    BABYLM_GLUE_TASKS,
    EDGE_PROBING_TASKS,
    LTG_GLUE_METRICS,
    LTG_GLUE_SUBSET,
    MSGS_AMBIGUOUS_TASKS,
    task_averages,
)
from hatchery.evaluation.evaluation import TidyRow
from hatchery.experiment.project import Project


def runs(
    suite: str, task: str, values: dict[str, list[float]], main: bool = True, failed: dict[int, str] | None = None
) -> list[TidyRow]:
    """Return measurements of a task; `values` maps metrics to values by seed. The first metric is the task's own."""
    return [
        {
            **{"suite": suite, "task": task, "metric": f"{metric}_percent", "value": value, "finetuning_seed": seed},
            **{"failed": (failed or {}).get(seed, ""), "primary": metric == next(iter(values))},
            **{"learning_rate": 1e-5, "origin": task, "main": main},
        }
        for metric, row in values.items()
        for seed, value in enumerate(row)
    ]


def averages_of(suite: str, measurements: list[TidyRow]) -> dict[tuple[str, str], Aggregate]:
    return {(average.task, average.metric): average.aggregate for average in task_averages(suite, frame(measurements))}


def ltg_values() -> dict[tuple[str, str], float]:
    keys = [key for keys in LTG_GLUE_METRICS for key in keys]
    return {key: 50.0 + 2.5 * index for index, key in enumerate(keys)}


def ltg_mean(values: dict[tuple[str, str], float]) -> float:
    return fmean(fmean(values[key] for key in keys) for keys in LTG_GLUE_METRICS)


def ltg_runs() -> list[TidyRow]:
    by_task: dict[str, dict[str, list[float]]] = {}
    for (task, metric), value in ltg_values().items():
        by_task.setdefault(task, {})[metric] = [value - 1, value + 1]
    return [
        run
        for task, values in by_task.items()
        for run in runs("glue", task, values, main=not task.endswith("_mismatched"))
    ]


def test_a_complete_suite_has_the_published_average() -> None:
    glue = {task: 60.0 + index for index, task in enumerate(BABYLM_GLUE_TASKS)}
    found = averages_of(
        "babylm_glue", [r for task, v in glue.items() for r in runs("babylm_glue", task, {"accuracy": [v, v + 2]})]
    )
    means = {task: value + 1 for task, value in glue.items()}
    assert found["average", "score_percent"].mean == pytest.approx(fmean(means.values()))
    expected = fmean(mean for task, mean in means.items() if task != "babylm_wsc")
    assert found["average_without_wsc", "score_percent"].mean == pytest.approx(expected)
    assert found["average", "score_percent"].std == pytest.approx(math.sqrt(2))
    assert found["average", "run_score_percent"].std == pytest.approx(math.sqrt(2))
    assert len(found) == 4


def test_ltg_bert_joins_the_metrics_of_a_task_first_and_counts_both_sets_of_mnli() -> None:
    found = averages_of("glue", [*ltg_runs(), *runs("glue", "hans", {"accuracy": [0.0, 0.0]}, main=False)])
    values = ltg_values()
    assert found["average", "score_percent"].mean == pytest.approx(ltg_mean(values))
    table_3 = found["average_of_ltg_bert_table_3", "score_percent"]
    assert table_3.mean == pytest.approx(fmean(values[key] for key in LTG_GLUE_SUBSET))
    assert found["average", "run_score_percent"].n == 2


def test_a_run_that_failed_in_one_part_of_a_task_failed_and_is_in_the_mean() -> None:
    measurements = [run for run in ltg_runs() if run["task"] != "glue_mnli_mismatched"]
    measurements += runs("glue", "glue_mnli_mismatched", {"accuracy": [10.0, 20.0]}, False, {0: "majority_class"})
    found = averages_of("glue", measurements)["average", "score_percent"]
    assert (found.n, found.n_failed) == (2, 1)
    later = {key: value + (1 if "mnli" in key[0] else 0) for key, value in ltg_values().items()}
    later["glue_mnli_mismatched", "accuracy"] = 20.0
    assert found.mean_without_failed == pytest.approx(ltg_mean(later))


def test_a_task_of_which_no_run_gave_a_number_leaves_the_average_without_one_and_is_named() -> None:
    measurements = [*runs("hers", "cola", {"accuracy": [50.0]}), *runs("hers", "rte", {"accuracy": [50.0]})]
    measurements = [run | {"value": None, "failed": "nan"} if run["task"] == "rte" else run for run in measurements]
    by_task, by_run = task_averages("hers", frame(measurements))
    assert (by_task.aggregate.mean, by_task.without_number) == (None, ("rte",))
    assert by_run.aggregate.mean is None


def test_a_run_that_lacks_one_metric_of_a_task_has_no_number_for_the_task() -> None:
    """Runs 0 and 1 are one below and one above each value. Run 1 has no F1 on MRPC."""
    measurements = [
        row | {"value": None}
        if (row["task"], row["metric"], row["finetuning_seed"]) == ("glue_mrpc", "f1_percent", 1)
        else row
        for row in ltg_runs()
    ]
    found = averages_of("glue", measurements)
    by_task, by_run = (found["average", metric] for metric in ("score_percent", "run_score_percent"))
    # MRPC's mean is that of run 0; the other 13 tasks have the mean of both runs.
    assert by_task.mean == pytest.approx(ltg_mean(ltg_values()) - 1 / 14)
    assert (by_task.n, by_task.n_without_number) == (1, 1)
    assert by_run.mean == pytest.approx(ltg_mean(ltg_values()) - 1)
    assert (by_run.n, by_run.n_without_number) == (1, 1)


def test_msgs_averages_ambiguous_tasks_and_never_controls() -> None:
    ambiguous = dict(zip(MSGS_AMBIGUOUS_TASKS, (-72, 20, -42, -86, -20, -50), strict=True))
    measurements = [r for task, v in ambiguous.items() for r in runs("msgs", task, {"mcc": [float(v)]})]
    measurements += runs("msgs", "msgs_main_verb_control", {"mcc": [100.0]})
    found = averages_of("msgs", measurements)
    assert found["average", "score_percent"].mean == pytest.approx(fmean(ambiguous.values()))
    partial = averages_of("msgs", [run for run in measurements if "lexical" not in run["task"]])
    assert partial["average_of_3_tasks", "score_percent"].mean == pytest.approx((20 - 86 - 50) / 3)
    controls = [r for name in ("a_control", "b_control") for r in runs("msgs", name, {"mcc": [100.0]})]
    assert averages_of("msgs", controls) == {}


def test_a_suite_named_after_one_of_the_papers_is_averaged_like_it() -> None:
    tasks = [f"my_{task}" for task in MSGS_AMBIGUOUS_TASKS]
    measurements = [r for task in (*tasks, "my_msgs_main_verb_control") for r in runs("my_msgs", task, {"mcc": [50.0]})]
    assert ("average", "score_percent") in averages_of("my_msgs", measurements)
    assert ("average_of_2_tasks", "score_percent") in averages_of(
        "my_msgs", [run for run in measurements if run["task"] in tasks[:2]]
    )


@pytest.mark.parametrize(
    ("suite", "prefix", "name"),
    [
        # No paper averages these tasks, or the paper does not say how.
        *((suite, suite, "average") for suite in ("rv_glue", "my_rv_glue", "hers")),
        # Tasks of the published average are missing.
        ("babylm_glue", "babylm", "average_of_2_tasks"),
    ],
)
def test_a_suite_that_has_no_published_average_has_a_plain_one(suite: str, prefix: str, name: str) -> None:
    measurements = [r for task in ("cola", "rte") for r in runs(suite, f"{prefix}_{task}", {"accuracy": [50.0]})]
    assert set(averages_of(suite, measurements)) == {(name, "score_percent"), (name, "run_score_percent")}


def test_a_suite_that_no_paper_averages_has_a_plain_average_of_its_main_sets() -> None:
    measurements = [
        *runs("demo", "a", {"accuracy": [60.0, 62.0], "f1": [0.0, 0.0]}),
        *runs("demo", "b", {"f1": [80.0, 78.0]}),
        *runs("demo", "b_mismatched", {"f1": [0.0, 0.0]}, main=False),
    ]
    found = averages_of("demo", measurements)
    assert found["average", "score_percent"] == Aggregate(70.0, pytest.approx(math.sqrt(2)), 2, 0, 70.0)
    assert found["average", "run_score_percent"] == Aggregate(70.0, 0.0, 2, 0, 70.0)


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


def test_the_deviation_over_items_is_that_of_the_one_run_with_a_number() -> None:
    diverged, sound = (None, "nan", 9.0), (50.0, "", 2.0)
    assert aggregate_values([diverged, sound]).sampling_deviation == 2.0
    assert aggregate_values([sound, sound]).sampling_deviation is None


def test_a_mean_without_failed_runs_needs_a_sound_one_and_a_mean_needs_a_number() -> None:
    assert aggregate_runs(frame([run(61.4, 1, "majority_class")])) == Aggregate(61.4, None, n=1, n_failed=1)
    assert aggregate_runs(frame([run(None, 1, "nan")])) == Aggregate(None, None, n=0, n_without_number=1)


def test_the_deviation_of_an_average_of_tasks_is_the_root_mean_square_of_the_tasks() -> None:
    tasks = [
        Aggregate(60.0, 3.0, 5, 2, 60.0, 3, blind_guess=50.0, seeds=3, basis="text: a; items: 9"),
        Aggregate(80.0, 4.0, 4, 1, 90.0, 1, blind_guess=30.0, seeds=2, basis="text: a; items: 9"),
    ]
    average = average_of_tasks(tasks)
    # Numbers of failed runs and of runs without a number are summed. Numbers of runs and seeds are minima over tasks.
    assert average == Aggregate(70.0, pytest.approx(5 / math.sqrt(2)), 4, 3, 75.0, 4, blind_guess=40.0)
    assert (average.seeds, average_of_tasks(tasks[::-1]).seeds) == (2, 2)
    assert average.basis == "text: a; items: 9"
    assert average_of_tasks([tasks[0], replace(tasks[1], blind_guess=None)]).blind_guess is None
    assert average_of_tasks([tasks[0], replace(tasks[1], std=None)]).std is None


def test_a_whisker_is_the_deviation_over_runs_or_half_an_interval_over_items() -> None:
    assert Aggregate(60.0, 1.5, 3, sampling_deviation=2.0).whisker == 1.5
    assert Aggregate(60.0, None, 1, sampling_deviation=2.0).whisker == pytest.approx(3.92)
    assert Aggregate(60.0, None, 1).whisker is None


def test_the_largest_reach_of_the_best_numbers_counts_and_its_end_is_within() -> None:
    # In binary, 0.8 - 0.1 is slightly above 0.7.
    assert 0.6999 < least_of_best([(0.8, 0.05), (0.8, 0.1), (0.75, 9.0)]) <= 0.7


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


def test_every_task_of_an_average_is_a_task_of_this_repository(repository):
    names = set(Project(repository / "config").names("task"))
    ltg = {task.removesuffix("_mismatched") for keys in LTG_GLUE_METRICS for task, _ in keys}
    named = {*BABYLM_GLUE_TASKS, *MSGS_AMBIGUOUS_TASKS, *EDGE_PROBING_TASKS, *ltg}
    assert named <= names
    assert len(LTG_GLUE_METRICS) == 14
