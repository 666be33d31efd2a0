"""Means and deviations over runs, and the two kinds of average over tasks.

A run is one combination of pretraining seed, fine-tuning seed and learning rate. Runs that failed (majority class, MCC
0, constant, not a number) are counted and named, and left out of the mean: their value says that training collapsed,
not how good the model is.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hatchery.analysis.measurements import Measurement


@dataclass(frozen=True)
class Aggregate:
    """A mean over `n` runs, with `n_failed` more left out.

    `mean` is None when no run is left; `std`, the sample standard deviation (n - 1), is None for fewer than two.
    """

    mean: float | None
    std: float | None
    n: int
    n_failed: int
    sampling_deviation: float | None = None


def mean_and_deviation(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Arithmetic mean and sample standard deviation (divided by n - 1), each None where it is not defined."""
    if not values:
        return None, None
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return mean, None
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def mean_and_error(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean of at least one value, and its standard error: the sample deviation over the root of their number.

    The error is None with one value.
    """
    mean, deviation = mean_and_deviation(values)
    assert mean is not None
    return mean, None if deviation is None else deviation / math.sqrt(len(values))


def aggregate_runs(runs: Iterable[Measurement]) -> Aggregate:
    """Mean and deviation of one metric over runs; failed runs are counted, not averaged."""
    runs = list(runs)
    sound = [run for run in runs if not run.failed and run.value is not None]
    values = [run.value for run in sound if run.value is not None]
    return aggregate_values(values, len(runs) - len(sound), sound[0].sampling_deviation if sound else None)


def aggregate_values(values: Sequence[float], n_failed: int, sampling_deviation: float | None) -> Aggregate:
    """Mean and deviation of the values of sound runs; the deviation of sampling is that of a single one."""
    mean, std = mean_and_deviation(values)
    return Aggregate(mean, std, len(values), n_failed, sampling_deviation if len(values) == 1 else None)


def average_of_tasks(tasks: Sequence[Aggregate]) -> Aggregate:
    """Unweighted mean of task means; the deviation is the root mean square of the tasks' deviations.

    This is what the papers print behind an average (it is not the deviation of the average, which is smaller when
    tasks vary independently). `n` is that of the task with the fewest runs, `n_failed` the sum.
    """
    n_failed = sum(task.n_failed for task in tasks)
    means = [task.mean for task in tasks if task.mean is not None]
    if len(means) < len(tasks):
        return Aggregate(None, None, 0, n_failed)
    deviations = [task.std for task in tasks if task.std is not None]
    std = None
    if len(deviations) == len(tasks):
        std = math.sqrt(math.fsum(deviation**2 for deviation in deviations) / len(tasks))
    return Aggregate(math.fsum(means) / len(means), std, min(task.n for task in tasks), n_failed)


def average_per_run(runs_of_tasks: Sequence[Iterable[Measurement]]) -> Aggregate:
    """Average the tasks within each run, then take mean and deviation over the runs that succeeded on all tasks.

    Runs are matched over tasks by their two seeds and by the rank of the learning rate among those of the task, because
    one protocol may give each task a rate of its own. A run that failed on, or lacks, any task counts as failed.
    """
    scores: dict[tuple[int, int | None, int], list[float]] = {}
    for runs in map(list, runs_of_tasks):
        rates = sorted({run.learning_rate or 0.0 for run in runs})
        for run in runs:
            key = (run.run.seed, run.finetuning_seed, rates.index(run.learning_rate or 0.0))
            values = scores.setdefault(key, [])
            if not run.failed and run.value is not None:
                values.append(run.value)
    complete = [math.fsum(values) / len(values) for values in scores.values() if len(values) == len(runs_of_tasks)]
    mean, std = mean_and_deviation(complete)
    return Aggregate(mean, std, len(complete), len(scores) - len(complete))
