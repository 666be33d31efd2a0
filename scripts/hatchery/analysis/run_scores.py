"""One list of scores per model from its runs on several tasks: a score per run, or all scores pooled.

ELC-BERT, Appendix E, does not say what its order compares. Averaging the tasks within each run reproduces the pattern
of its Tables 11 and 12, pooling does not (docs/papers/elc-bert.md, "Significance"); both are offered, and neither skips
a gap.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from hatchery.errors import ConfigError, EvaluationError

ScoreUnit = Literal["run_average", "pooled"]


@dataclass(frozen=True)
class RunScore:
    """The score of one fine-tuning run on one task, higher being better.

    `seeds` names the run over tasks (such as pretraining seed and fine-tuning seed). `value` is None where the run
    gave none (its loss was not a number).
    """

    task: str
    seeds: tuple[int, ...]
    learning_rate: float
    value: float | None


def score_lists(models: Mapping[str, Iterable[RunScore]], unit: ScoreUnit = "run_average") -> dict[str, list[float]]:
    """The scores of every model, ready for `order_matrix`.

    "run_average" averages the tasks within each run; "pooled" takes all scores of all tasks as one sample, in which
    the differences between tasks swamp those between models. A run without a value on some task gives no average.
    Runs that collapsed to a constant answer do have a value and stay: the order compares whole distributions.
    Raises ConfigError for another unit, EvaluationError when models differ in their tasks, a run lacks a task or has
    it twice, or no score is left.
    """
    if unit not in get_args(ScoreUnit):
        raise ConfigError(f"unit: {unit!r} is none of {', '.join(get_args(ScoreUnit))}")
    tables = {model: _by_run(model, scores) for model, scores in models.items()}
    tasks = {model: sorted({task for run in runs.values() for task in run}) for model, runs in tables.items()}
    for model, names in tasks.items():
        first = next(iter(tasks))
        if names != tasks[first]:
            raise EvaluationError(f"{model} was run on {', '.join(names)}, but {first} on {', '.join(tasks[first])}")
    lists = {}
    for model, runs in tables.items():
        for run, values in runs.items():
            if missing := [task for task in tasks[model] if task not in values]:
                raise EvaluationError(f"{model}: the run of {_named(run)} has no score for {', '.join(missing)}")
        lists[model] = [score for run in runs.values() for score in _scores(list(run.values()), unit)]
        if not lists[model]:
            raise EvaluationError(f"{model}: no run has a score" + (" for every task" if unit == "run_average" else ""))
    return lists


_Run = tuple[tuple[int, ...], int]


def _by_run(model: str, scores: Iterable[RunScore]) -> dict[_Run, dict[str, float | None]]:
    """Scores by run and task. A run is its seeds and the place of its learning rate in the task's ascending sweep."""
    scores = list(scores)
    # Tasks may differ in their learning rates (ELC-BERT, Table 5), so the rate itself cannot match runs over tasks.
    rates: dict[str, set[float]] = {}
    for score in scores:
        rates.setdefault(score.task, set()).add(score.learning_rate)
    sweeps = {task: sorted(values) for task, values in rates.items()}
    runs: dict[_Run, dict[str, float | None]] = {}
    for score in sorted(scores, key=lambda score: (score.seeds, score.learning_rate, score.task)):
        run = (score.seeds, sweeps[score.task].index(score.learning_rate))
        values = runs.setdefault(run, {})
        if score.task in values:
            raise EvaluationError(f"{model}: the run of {_named(run)} has two scores for {score.task}")
        values[score.task] = score.value
    return runs


def _scores(values: list[float | None], unit: ScoreUnit) -> list[float]:
    present = [value for value in values if value is not None]
    if unit == "pooled":
        return present
    # fsum, because equal averages must come out equal: the order would take a rounding error for dominance.
    return [math.fsum(present) / len(present)] if len(present) == len(values) else []


def _named(run: _Run) -> str:
    seeds, rate = run
    return f"seed {', '.join(map(str, seeds))} at learning rate {rate + 1} of the sweep"
