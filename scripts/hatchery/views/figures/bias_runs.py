"""The runs of the ambiguous tasks of MSGS, for the two figures of the Linguistic Bias Score.

The score is the Matthews correlation with the linguistic label on the disambiguating rows
(docs/papers/babylm-evaluation.md, "MSGS"); no learning rate is selected, every run of a task counts
(docs/papers/elc-bert.md, "Fine-tuning").
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from hatchery.analysis.read_tables import read_measurements
from hatchery.analysis.settings import FigureSettings
from hatchery.analysis.task_averages import LINGUISTIC_FEATURES, SURFACE_FEATURES, bias_features
from hatchery.errors import EvaluationError
from hatchery.views.figures.registry import Tables

METRIC = "mcc_percent"


@dataclass(frozen=True)
class BiasTask:
    """One ambiguous task: its suite, its name, and its features as keys of the tables of `task_averages`."""

    suite: str
    task: str
    linguistic: str
    surface: str


BiasRuns = Mapping[BiasTask, Mapping[str, pl.DataFrame]]
"""Rows of runs by task and model, tasks in the order of Figure 3 of ELC-BERT, models in that of the configuration."""


def read_bias_runs(settings: FigureSettings, tables: Tables) -> dict[BiasTask, dict[str, pl.DataFrame]]:
    """The runs of the experiment by task and model.

    Raises ManifestError for an altered table, EvaluationError for a task without its Matthews correlation.
    """
    found: dict[BiasTask, dict[str, pl.DataFrame]] = {}
    measured = read_measurements(tables["measurements"], settings.runs, "finetuning").filter("main")
    for (suite, task, model), rows in measured.group_by("suite", "task", "model", maintain_order=True):
        if (features := bias_features(str(task))) is not None:
            models = found.setdefault(BiasTask(str(suite), str(task), *features), {})
            models[str(model)] = rows.filter(pl.col("metric") == METRIC)
    for task, models in found.items():
        if lacking := [model for model, runs in models.items() if runs.is_empty()]:
            raise EvaluationError(f"{tables['measurements']}: {lacking[0]}: no mcc, which is the score of {task.task}")
    order = list(found)
    return {task: found[task] for task in sorted(order, key=lambda task: _place(task, order))}


def suites_of(runs: BiasRuns) -> list[str]:
    """The suites of the tasks, each once."""
    return list(dict.fromkeys(task.suite for task in runs))


def _place(task: BiasTask, tasks: Sequence[BiasTask]) -> tuple[int, int, int, str]:
    suites = list(dict.fromkeys(other.suite for other in tasks))
    rows, columns = list(LINGUISTIC_FEATURES), list(SURFACE_FEATURES)
    return suites.index(task.suite), rows.index(task.linguistic), columns.index(task.surface), task.task
