"""The runs of the ambiguous tasks of MSGS, for the two figures of the Linguistic Bias Score.

The score is the Matthews correlation with the linguistic label on the disambiguating rows (evaluation.md 8.4); no
learning rate is selected, every run of a task counts (8.6).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hatchery.analysis.finetuning_measurements import finetuning_measurements
from hatchery.analysis.measurements import Measurement, read_verified
from hatchery.analysis.msgs_features import LINGUISTIC_FEATURES, SURFACE_FEATURES, bias_features
from hatchery.analysis.settings import FigureSettings, evaluations_named, match_evaluations, runs_by_name
from hatchery.errors import ConfigError, EvaluationError

METRIC = "mcc_percent"


@dataclass(frozen=True)
class BiasTask:
    """One ambiguous task: its suite, its name, and its features as keys of the tables of `msgs_features`."""

    suite: str
    task: str
    linguistic: str
    surface: str


BiasRuns = Mapping[BiasTask, Mapping[str, Sequence[Measurement]]]
"""Runs by task and model, tasks in the order of Figure 3 of ELC-BERT, models in that of the configuration."""


def read_bias_runs(
    settings: FigureSettings, results: Mapping[str, Path]
) -> dict[BiasTask, dict[str, list[Measurement]]]:
    """The runs behind the manifests named `CELL:TASK`, by task and model.

    Raises ConfigError for a task that is not ambiguous, ManifestError or EvaluationError naming the input at fault.
    """
    seeded = runs_by_name(settings.runs)
    tasks = evaluations_named(results, "--results")
    found: dict[BiasTask, dict[str, list[Measurement]]] = {}
    for (name, task), path in match_evaluations(results, settings.runs, tasks, "--results").items():
        features = bias_features(task)
        if features is None:
            raise ConfigError(f"--results: {task} is no ambiguous task of MSGS, so it has no bias between features")
        measured = finetuning_measurements(seeded[name], task, read_verified(path))
        runs = [run for run in measured if run.main and run.metric == METRIC]
        if not runs:
            raise EvaluationError(f"{path}: there is no mcc, which is the score of {task}")
        key = BiasTask(runs[0].suite, task, *features)
        found.setdefault(key, {}).setdefault(seeded[name].model, []).extend(runs)
    order = list(found)
    return {task: found[task] for task in sorted(order, key=lambda task: _place(task, order))}


def suites_of(runs: BiasRuns) -> list[str]:
    """The suites of the tasks, each once."""
    return list(dict.fromkeys(task.suite for task in runs))


def _place(task: BiasTask, tasks: Sequence[BiasTask]) -> tuple[int, int, int, str]:
    suites = list(dict.fromkeys(other.suite for other in tasks))
    rows, columns = list(LINGUISTIC_FEATURES), list(SURFACE_FEATURES)
    return suites.index(task.suite), rows.index(task.linguistic), columns.index(task.surface), task.task
