"""One list of scores per model for almost stochastic order, from the results of single fine-tuning runs.

The order compares runs, which a summary no longer has: they are read from the tidy table of measurements. The tasks
are those of the published average of a suite; a run is its seeds and the place of its learning rate.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from hatchery.analysis.aggregates import by_run, mean_and_deviation
from hatchery.analysis.read_tables import read_measurements
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
    named = runs.with_columns(pl.col("task").map_elements(settings.papers_task, pl.String))
    for model in settings.shown:
        label = labels.get(model, model)
        own = named.filter(pl.col("model") == model, pl.col("task").is_in(tasks))
        if own.is_empty():
            continue
        if missing := sorted(set(tasks).difference(own["task"])):
            left_out[model] = f"{label} was not run on {', '.join(missing)}"
            continue
        try:
            found = run_scores(own, tasks)
        except EvaluationError as error:
            left_out[model] = f"{label}: {error}"
            continue
        if len(found) < 2:
            left_out[model] = f"{label} has a single run"
        else:
            lists[model] = found
    return lists, left_out


def run_scores(runs: pl.DataFrame, tasks: Sequence[str]) -> list[float]:
    """The mean over `tasks` of every run that has a value for all of them, of the rows of one model.

    ELC-BERT, Appendix E, does not say what its order compares: averaging the tasks within each run reproduces the
    pattern of its Tables 11 and 12, pooling all scores does not (docs/papers/elc-bert.md, "Significance"). Runs that
    collapsed to a constant answer do have a value and stay: the order compares whole distributions.
    Raises EvaluationError when a run lacks a task or has it twice, or no score is left.
    """
    scores = []
    for (seed, tuned, rate), rows in by_run(runs.sort("seed", "finetuning_seed", "learning_rate", "task")):
        run, counts = f"seed {seed}, {tuned or 0} at learning rate {rate} of the sweep", Counter(rows["task"])
        if missing := sorted(set(tasks) - counts.keys()):
            raise EvaluationError(f"the run of {run} has no score for {', '.join(missing)}")
        if twice := sorted(task for task, count in counts.items() if count > 1):
            raise EvaluationError(f"the run of {run} has two scores for {', '.join(twice)}")
        # Exactly: equal averages must come out equal, or the order would take a rounding error for dominance.
        mean, _ = mean_and_deviation(rows["value"].drop_nulls().to_list())
        scores += [] if rows["value"].has_nulls() or mean is None else [mean]
    if not scores:
        raise EvaluationError("no run has a score for every task")
    return scores
