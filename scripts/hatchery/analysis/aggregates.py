"""Means and standard deviations of a model's scores over its runs, and two kinds of averages over tasks.

A run here is one combination of pretraining seed, fine-tuning seed and learning rate. As in the replicated papers, the
mean includes every run that has a value, even failed runs. A run has failed if its predictions are constant or
uncorrelated with the labels. For example, the averages in ELC-BERT, Table 9, include the constant 61.4 ± 0.0 on WSC.
Failed runs are counted, and `mean_without_failed` is the mean of the other runs.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hatchery.evaluation.basis import joined

if TYPE_CHECKING:
    import polars as pl
    from polars.dataframe.group_by import GroupBy


NORMAL_95 = 1.96
"""Half the width of the central 95 % interval of a normal distribution, in units of its standard deviation."""


@dataclass(frozen=True)
class Aggregate:
    """The mean of a score over `n` runs. `n_failed` of these runs failed; `n_without_number` further runs have no
    score.

    `mean` is None if no run has a score. `mean_without_failed` is the mean over the runs that did not fail, or None if
    all runs failed. `std` is the sample standard deviation (n - 1), or None for fewer than two runs. For a single run,
    `sampling_deviation` is the standard deviation due to the choice of test items. `blind_guess` is the score of
    guesses that do not use the items. `seeds` is the number of pretraining seeds (0: unknown). `basis` names the
    predicted tokens, tokenizer, text and scoring method; only scores with equal `basis` are comparable
    (`evaluation.basis`).
    """

    mean: float | None
    std: float | None
    n: int
    n_failed: int = 0
    mean_without_failed: float | None = None
    n_without_number: int = 0
    sampling_deviation: float | None = None
    blind_guess: float | None = None
    seeds: int = field(default=0, compare=False)
    basis: str = field(default="", compare=False)

    @property
    def whisker(self) -> float | None:
        """Return half the length of the error bar. For several runs, this is the standard deviation; for a single run,
        half the width of its 95 % interval. None if unknown.
        """
        if self.std is not None or self.sampling_deviation is None:
            return self.std
        return NORMAL_95 * self.sampling_deviation


def mean_and_deviation(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Return the arithmetic mean and the sample standard deviation (n - 1) of `values`. The mean is None without
    values, and the deviation is None for fewer than two values.
    """
    if not values:
        return None, None
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return mean, None
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def mean_and_error(values: Sequence[float]) -> tuple[float, float | None]:
    """Return the mean of one or more values, and the standard error of the mean: the sample standard deviation divided
    by the square root of the number of values.

    The error is None for one value.
    """
    mean, deviation = mean_and_deviation(values)
    assert mean is not None
    return mean, None if deviation is None else deviation / math.sqrt(len(values))


SLACK = 1e-9
"""Tolerance for rounding errors: a number whose distance from the best number equals the noise does not count as worse.
"""


def least_of_best(numbers: Iterable[tuple[float, float]]) -> float:
    """Return the best value minus its deviation. A value below the result is worse than the best value by more than
    this deviation. `numbers` are pairs (value, deviation); a higher value is better.

    If several pairs have the best value, the largest of their deviations is used.
    """
    best, reach = max(numbers)
    return best - reach - SLACK


def aggregate_runs(runs: "pl.DataFrame") -> Aggregate:
    """Return the mean and standard deviation of one metric over runs. `runs` are the metric's rows of
    `measurements.parquet`.
    """
    blind = runs["blind_guess"][0] if runs.height else None
    return aggregate_values(runs.select("value", "failed", "sampling_deviation").rows(), blind)


def aggregate_values(
    runs: Sequence[tuple[float | None, str, float | None]], blind_guess: float | None = None
) -> Aggregate:
    """Return the mean and standard deviation over runs. Each run is a tuple (value, reason of failure, standard
    deviation due to the choice of test items).

    For a single run, the result also contains the deviation due to the choice of test items. Several runs have no
    common deviation of this kind, so this deviation is then None.
    """
    numbers = [(value, failed, sampling) for value, failed, sampling in runs if value is not None]
    mean, std = mean_and_deviation([value for value, _, _ in numbers])
    sound = [value for value, failed, _ in numbers if not failed]
    return Aggregate(
        mean,
        std,
        n=len(numbers),
        n_failed=len(numbers) - len(sound),
        mean_without_failed=mean_and_deviation(sound)[0],
        n_without_number=len(runs) - len(numbers),
        sampling_deviation=numbers[0][2] if len(numbers) == 1 else None,
        blind_guess=blind_guess,
    )


def average_of_tasks(tasks: Sequence[Aggregate]) -> Aggregate:
    """Return the unweighted mean of the tasks' means, with the root mean square of the tasks' standard deviations.

    LTG-BERT and ELC-BERT print this deviation next to an average. If the tasks' scores vary independently, the average
    itself has a smaller deviation. The mean is None if any task has no mean, and the deviation is None if any task has
    no deviation. `n` and `seeds` are minima over the tasks. The numbers of failed runs and of runs without a score are
    sums over the tasks.
    """
    deviations = [task.std for task in tasks if task.std is not None]
    std = None
    if len(deviations) == len(tasks):
        std = math.sqrt(math.fsum(deviation**2 for deviation in deviations) / len(tasks))
    return Aggregate(
        _mean_of_all([task.mean for task in tasks]),
        std,
        min(task.n for task in tasks),
        sum(task.n_failed for task in tasks),
        _mean_of_all([task.mean_without_failed for task in tasks]),
        sum(task.n_without_number for task in tasks),
        blind_guess=_mean_of_all([task.blind_guess for task in tasks]),
        seeds=min(task.seeds for task in tasks),
        basis=joined((place, task.basis) for place, task in enumerate(tasks)),
    )


def _mean_of_all(means: Sequence[float | None]) -> float | None:
    known = [mean for mean in means if mean is not None]
    return math.fsum(known) / len(known) if len(known) == len(means) else None


def average_per_run(runs: "pl.DataFrame", tasks: int, blind_guess: float | None) -> Aggregate:
    """Average over the tasks within each run, and return the mean and standard deviation over the runs that have a
    value for every task.

    `tasks` is the number of tasks. `runs` are rows of measurements, whose column `task` contains the index of the task.
    A run counts as failed if it failed on any task.
    """
    # Compute means with `fsum`, which rounds only once. The means then do not depend on the order in which polars adds.
    found = by_run(runs).agg("value", first_failure()).select("value", "failed").iter_rows()
    means = [(_mean_of_all(values) if len(values) == tasks else None, failed, None) for values, failed in found]
    return aggregate_values(means, blind_guess)


def by_run(runs: "pl.DataFrame") -> "GroupBy":
    """Group the measurements of several tasks, so that each group contains the rows of one run.

    Rows of one run agree in pretraining seed, fine-tuning seed and the rank of the learning rate among the task's
    learning rates. The rank replaces the learning rate, because tasks may have different learning rates.
    """
    import polars as pl

    rate = pl.col("learning_rate").fill_null(0.0).rank("dense").over("task")
    return runs.with_columns(rate=rate).group_by("seed", "finetuning_seed", "rate", maintain_order=True)


def first_failure() -> "pl.Expr":
    """Return a polars expression for the first reason of failure in a group of rows; an empty string if no row
    failed."""
    import polars as pl

    return pl.col("failed").filter(pl.col("failed") != "").first().fill_null("")
