"""The averages over fine-tuned tasks that a summary shows: within one suite, never across suites.

Where a suite has all tasks of a published average, `average` is that one, after `suite_averages`: eleven tasks of
BabyLM's GLUE, the six ambiguous tasks of MSGS, LTG-BERT's fourteen tasks with their metrics joined first, its five
probes. Where tasks are missing, `average_of_<n>_tasks` is the plain mean of what is there; suites that no paper
averages have the plain mean as `average`. Each comes with both deviations (docs/papers/babylm-evaluation.md,
"Statistics"). A suite that has the layout of one of the papers and is named after it is averaged like it: `my_msgs`
with the tasks `my_msgs_...`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import polars as pl

from hatchery.analysis.aggregates import Aggregate, aggregate_runs, average_of_tasks, average_per_run, first_failure
from hatchery.analysis.suite_averages import (
    BABYLM_GLUE_TASKS,
    EDGE_PROBING_TASKS,
    LTG_GLUE_METRICS,
    LTG_GLUE_SUBSET,
    MSGS_AMBIGUOUS_TASKS,
)

AVERAGE = "average"
AVERAGE_METRIC = "score_percent"
RUN_AVERAGE_METRIC = "run_score_percent"
WITHOUT_WSC = "average_without_wsc"
LTG_TABLE_3 = "average_of_ltg_bert_table_3"

# A task of an average: one or more (task, metric) whose values are joined by their mean; the metric "" is the first
# one of the task.
Member = tuple[tuple[str, str], ...]


def _first_metrics(tasks: Iterable[str]) -> tuple[Member, ...]:
    return tuple(((task, ""),) for task in tasks)


PUBLISHED_AVERAGES: dict[str, dict[str, tuple[Member, ...]]] = {
    "babylm_glue": {
        AVERAGE: _first_metrics(BABYLM_GLUE_TASKS),
        WITHOUT_WSC: _first_metrics(task for task in BABYLM_GLUE_TASKS if task != "babylm_wsc"),
    },
    "msgs": {AVERAGE: _first_metrics(MSGS_AMBIGUOUS_TASKS)},
    "probing": {AVERAGE: _first_metrics(EDGE_PROBING_TASKS)},
    "glue": {
        AVERAGE: LTG_GLUE_METRICS,
        LTG_TABLE_3: tuple((key,) for key in LTG_GLUE_SUBSET),
    },
    # Its paper does not say which metrics its average is of (MNLI-mm is not stated), so the plain mean is taken.
    "rv_glue": {},
}


@dataclass(frozen=True)
class TaskAverage:
    """One row over tasks: its name as a task, its metric (one per way of taking the deviation), and what is in it.

    `manifests` are those behind it, `without_number` the tasks of which no run gave a number, so that there is no
    average.
    """

    task: str
    metric: str
    aggregate: Aggregate
    manifests: tuple[str, ...]
    without_number: tuple[str, ...] = ()


def task_averages(suite: str, measured: pl.DataFrame) -> list[TaskAverage]:
    """The averages of one model over its fine-tuned tasks of one suite, of whose measurements these are the rows.

    There is none over fewer than two tasks.
    """
    named = measured.with_columns(pl.col("metric").str.strip_suffix("_percent"))
    numbers = pl.concat([named, named.filter("primary").with_columns(metric=pl.lit(""))])
    present = set(numbers.select("task", "metric").iter_rows())
    averages = []
    for name, members in _averages(suite, measured, present).items():
        runs = _runs_of(members, numbers)
        aggregates = [aggregate_runs(task) for task in runs.partition_by("task", maintain_order=True)]
        lacking = tuple(member[0][0] for member, task in zip(members, aggregates, strict=True) if task.mean is None)
        by_task = average_of_tasks(aggregates)
        by_run = average_per_run(runs, len(members), by_task.blind_guess)
        manifests = tuple(runs["manifest"].explode().unique())
        averages.append(TaskAverage(name, AVERAGE_METRIC, by_task, manifests, lacking))
        averages.append(TaskAverage(name, RUN_AVERAGE_METRIC, by_run, manifests))
    return averages


def _runs_of(members: Sequence[Member], numbers: pl.DataFrame) -> pl.DataFrame:
    """One row per member, called `task` by its number, and run, with the mean of its values in all parts of the member.

    It failed where any of them failed, and has no value where a part has none.
    """
    parts = [(place, len(member), *key) for place, member in enumerate(members) for key in member]
    wanted = pl.DataFrame(parts, ["member", "parts", "task", "metric"], orient="row")
    rows = wanted.join(numbers, on=["task", "metric"], maintain_order="left_right")
    # Two values at most are in a mean, so that it is exact.
    means = [
        pl.when(pl.col(column).count() == pl.col("parts").first()).then(pl.col(column).mean()).alias(column)
        for column in ("value", "blind_guess")
    ]
    run = ("seed", "finetuning_seed", "learning_rate")
    return rows.group_by(pl.col("member").alias("task"), *run, maintain_order=True).agg(
        *means, first_failure(), pl.col("sampling_deviation").first(), "manifest"
    )


def _averages(suite: str, measured: pl.DataFrame, present: Iterable[tuple[str, str]]) -> dict[str, tuple[Member, ...]]:
    """The members of every average that can be taken, by its name."""
    original = original_suite(suite)
    prefix = suite.removesuffix(original)
    published = {
        name: tuple(tuple((prefix + task, metric) for task, metric in member) for member in members)
        for name, members in PUBLISHED_AVERAGES.get(original, {}).items()
    }
    keys = set(present)
    complete = {
        name: members for name, members in published.items() if all(key in keys for member in members for key in member)
    }
    if AVERAGE in complete:
        return complete
    tasks = sorted(measured.filter("main")["task"].unique())
    if original == "msgs":
        # A control is judged by generalisation, an ambiguous task by its bias: their mean says neither.
        tasks = [task for task in tasks if task.removeprefix(prefix) in MSGS_AMBIGUOUS_TASKS]
    if len(tasks) < 2:
        return complete
    return {**complete, f"average_of_{len(tasks)}_tasks" if published else AVERAGE: _first_metrics(tasks)}


def original_suite(suite: str) -> str:
    """The suite of the papers after which this one is named; itself where there is none."""
    named = [name for name in PUBLISHED_AVERAGES if f"_{suite}".endswith(f"_{name}")]
    return max(named, key=len, default=suite)
