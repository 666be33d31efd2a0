"""One list of scores per model for almost stochastic order, from the results of single fine-tuning runs.

The order compares runs, which a summary no longer has: they are read from the tidy table of measurements. The tasks
are those of the published average of a suite; a run is its seeds and the place of its learning rate.
"""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from hatchery.analysis.read_tables import read_measurements
from hatchery.analysis.run_scores import RunScore, score_lists
from hatchery.analysis.settings import labels_of
from hatchery.analysis.task_averages import PUBLISHED_AVERAGES
from hatchery.errors import ConfigError, EvaluationError
from hatchery.views.paper_tables.settings import PaperTablesSettings


def read_runs(settings: PaperTablesSettings, measurements: Path) -> pl.DataFrame:
    """Every value of the first metric of every task. Raises ManifestError for an altered table."""
    shown = set(settings.shown)
    found = read_measurements(measurements, [run for run in settings.runs if run.model in shown], kind="finetuning")
    return found.filter("primary", "main")


def tasks_of_average(suite: str, average: str) -> tuple[str, ...]:
    """The tasks of a published average. Raises ConfigError for an average that is none, or that joins metrics."""
    members = PUBLISHED_AVERAGES.get(suite, {}).get(average, ())
    tasks = tuple(task for member in members for task, metric in member if len(member) == 1 and not metric)
    if not tasks or len(tasks) < len(members):
        raise ConfigError(f"an order needs an average over first metrics of tasks, and {suite} {average} is none")
    return tasks


def lists_of_models(
    runs: pl.DataFrame, settings: PaperTablesSettings, tasks: Sequence[str]
) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Scores per run (the mean over `tasks`) of the models that have them, and why the other models have none.

    A model with no run on any of the tasks is in neither.
    """
    lists: dict[str, list[float]] = {}
    left_out: dict[str, str] = {}
    labels = labels_of(settings.runs)
    for model in settings.shown:
        label = labels.get(model, model)
        scores = [
            RunScore(settings.papers_task(task), (seed, finetuning_seed or 0), rate or 0.0, value)
            for task, seed, finetuning_seed, rate, value in runs.filter(pl.col("model") == model)
            .select("task", "seed", "finetuning_seed", "learning_rate", "value")
            .iter_rows()
            if settings.papers_task(task) in tasks
        ]
        if not scores:
            continue
        if missing := sorted(set(tasks) - {score.task for score in scores}):
            left_out[model] = f"{label} was not run on {', '.join(missing)}"
            continue
        try:
            found = score_lists({label: scores})[label]
        except EvaluationError as error:
            left_out[model] = str(error)
            continue
        if len(found) < 2:
            left_out[model] = f"{label} has a single run"
        else:
            lists[model] = found
    return lists, left_out
