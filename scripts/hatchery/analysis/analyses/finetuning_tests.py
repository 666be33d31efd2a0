"""Exact significance tests of the difference between two models fine-tuned on the same task, over the task's rows.

Every experiment with several fine-tuned models has this analysis. `paired_tests` computes the tests. As in the summary,
a run is one combination of pretraining seed, fine-tuning seed and learning rate.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchery.analysis.analyses.analysis import Analysis, Findings, Study
from hatchery.analysis.analyses.needs import FINETUNING, evaluated
from hatchery.analysis.analyses.own_tests import own_tests
from hatchery.analysis.analyses.paired_test_sentences import Nouns
from hatchery.analysis.analyses.paired_tests import (
    PairedTestsSettings,
    check,
    findings,
    manifests_of,
    read_answers,
)

if TYPE_CHECKING:
    import numpy as np

BY_ROW = ("accuracy", "mcc", "f1", "macro_f1", "mean_of_accuracy_and_f1")
"""Metrics of tasks in which each row is answered correctly or incorrectly.

Regression, questions with several answers, and spans with several labels have other metrics and are not tested.
"""


@dataclass(frozen=True, kw_only=True)
class FinetuningTestsSettings(PairedTestsSettings):
    """Settings of the analysis: the models to compare, on the rows of the tasks on which all of these models were
    fine-tuned."""


NOUNS = Nouns(
    title="Differences on the same fine-tuning tasks",
    group="task",
    items="rows",
    runs="runs",
    runs_of="runs",
    what="Percentage of the scored rows with a correct answer, regardless of the task's main metric. All runs "
    "with answers are included: all pretraining seeds, fine-tuning seeds and learning rates.",
    nothing="No two models were fine-tuned on the same task with a metric that judges each answer as correct or wrong.",
)


def compare(settings: FinetuningTestsSettings, study: Study) -> Findings:
    """Return a row for each pair of models and each task whose main metric judges each answer as correct or wrong.
    Raises EvaluationError if models answered different rows of a task."""
    found = manifests_of(study, FINETUNING)
    judged = {task: models for task, models in found.items() if _metric(next(iter(models.values()))[0]) in BY_ROW}
    answered = {task: read_answers(models, _read, NOUNS.items) for task, models in judged.items()}
    others = ", ".join(task for task in found if task not in judged)
    reason = "Tasks that were not tested, because their metric does not judge each answer as correct or wrong"
    left_out = [f"{reason}: {others}."] if others else []
    return findings(settings, study, answered, NOUNS, left_out)


def _metric(path: Path) -> str:
    """Return the main metric of the task."""
    from hatchery.artifacts.manifests import read_manifest

    return str(read_manifest(path).settings["task"]["metrics"][0])


def _read(path: Path) -> "tuple[Any, np.ndarray, np.ndarray]":
    import polars as pl

    from hatchery.artifacts.manifests import read_manifest
    from hatchery.evaluation.finetuning.measurements import MAIN_SET

    made = read_manifest(path)
    columns = ["seed", "learning_rate", "row", "label", "prediction"]
    predicted = (
        pl.scan_parquet(made.file("predictions.parquet"))
        .filter(pl.col("rows") == MAIN_SET, "scored")
        .select(columns)
        # A run without any prediction has diverged, so leave it out.
        .filter(pl.col("prediction").is_not_null().any().over("seed", "learning_rate"))
        .collect()
    )
    results = pl.read_csv(made.file("results.csv"), schema_overrides={"failed": pl.String})
    run = ["seed", "learning_rate"]
    failed = dict.fromkeys(
        results.filter(pl.col("rows") == MAIN_SET, pl.col("failed").fill_null("") != "").select(run).iter_rows()
    )
    runs = predicted.partition_by(run, as_dict=True, maintain_order=True)
    return _together(runs, failed)


def _together(runs: Any, failed: Any) -> "tuple[Any, np.ndarray, np.ndarray]":
    import numpy as np
    import polars as pl

    asked = next(iter(runs.values())).select("row", "label") if runs else pl.DataFrame()
    is_right = (pl.col("label") == pl.col("prediction")).fill_null(False)
    right = [rows.select(is_right).to_series().to_numpy() for rows in runs.values()]
    answers = np.stack(right) if right else np.zeros((0, 0), dtype=bool)
    return asked, answers, np.array([run in failed for run in runs], dtype=bool)


ANALYSIS = Analysis(
    title="Are differences on fine-tuning tasks beyond chance?",
    version=1,
    settings=FinetuningTestsSettings,
    run=compare,
    needs=(evaluated(FINETUNING),),
    check=check,
    own=lambda experiment: own_tests(experiment, experiment.finetuning.tasks),
    place=20,
)
