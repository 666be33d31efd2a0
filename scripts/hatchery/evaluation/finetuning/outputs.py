"""The tables that a fine-tuning stage leaves: results, predictions, accuracy by facts, layer weights of probes.

Values are fractions or correlations, never percent. What a diverged run lacks is left empty, and every row of it says
so; no run is ever dropped. The order is that of the configuration.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from hatchery.artifacts.atomic import atomic_path
from hatchery.artifacts.parquet import TableWriter
from hatchery.evaluation.finetuning.predicting import Predicted
from hatchery.evaluation.finetuning.run_results import RunResult
from hatchery.evaluation.finetuning.scored_sets import ScoredSet
from hatchery.modeling.heads.targets import IMPOSSIBLE_SCORE
from hatchery.sanitize import csv_text

RESULT_COLUMNS = ("rows", "seed", "learning_rate", "metric", "value", "best_step", "development_value", "failed")
BREAKDOWN_COLUMNS = ("rows", "seed", "learning_rate", "fact", "value", "label", "n", "accuracy")
LAYER_WEIGHT_COLUMNS = ("seed", "learning_rate", "span", "layer", "weight")
PREDICTIONS_SCHEMA = pa.schema(
    [
        ("rows", pa.string()),
        ("seed", pa.int64()),
        ("learning_rate", pa.float64()),
        ("row", pa.int64()),
        ("group", pa.string()),
        ("scored", pa.bool_()),
        ("label", pa.string()),
        ("prediction", pa.string()),
        ("scores", pa.list_(pa.float32())),
    ]
)


def results_csv(sets: Sequence[ScoredSet], runs: Sequence[RunResult]) -> str:
    """One row per set, run and metric."""
    return csv_text(
        RESULT_COLUMNS,
        (
            (
                *(scored.name, run.seed, run.learning_rate, metric, run.sets[scored.name].values[metric]),
                *(run.best_step, run.development_value, run.sets[scored.name].failed),
            )
            for scored in sets
            for run in runs
            for metric in scored.task.metrics
        ),
    )


def breakdown_csv(sets: Sequence[ScoredSet], runs: Sequence[RunResult]) -> str:
    """Accuracy by fact, value and label (empty: any) of the sets whose task names facts, without diverged runs."""
    rows = []
    for scored in sets:
        for run in runs:
            answers = run.sets[scored.name].answers
            if answers is not None:
                for found in scored.breakdown(answers):
                    where = (scored.name, run.seed, run.learning_rate)
                    rows.append((*where, found.fact, found.value, found.label, found.n, found.accuracy))
    return csv_text(BREAKDOWN_COLUMNS, rows)


def layer_weights_csv(runs: Sequence[RunResult]) -> str:
    """The share of every layer, from 1, for every span, from 1, of the probes that have been trained."""
    return csv_text(
        LAYER_WEIGHT_COLUMNS,
        (
            (run.seed, run.learning_rate, span, layer, weight)
            for run in runs
            for span, weights in enumerate(run.layer_weights, start=1)
            for layer, weight in enumerate(weights, start=1)
        ),
    )


def write_predictions(path: Path, sets: Sequence[ScoredSet], runs: Sequence[RunResult]) -> None:
    """One row per set, run and unit, those that are not scored included; one run in memory at a time."""
    with atomic_path(path) as partial, TableWriter(partial, PREDICTIONS_SCHEMA) as writer:
        for scored in sets:
            for run in runs:
                writer.write_table(predictions_table(scored, run))


def predictions_table(scored: ScoredSet, run: RunResult) -> pa.Table:
    """Labels and predictions of one set as text; null where the run diverged, and for labels that no class stands for.

    Several labels of a unit are joined by a blank.
    """
    n_units, answers = len(scored.labels), run.sets[scored.name].answers
    columns = {
        "rows": [scored.name] * n_units,
        "seed": np.full(n_units, run.seed),
        "learning_rate": np.full(n_units, run.learning_rate),
        "row": np.arange(n_units),
        "group": list(scored.groups) or [""] * n_units,
        "scored": scored.is_scored,
        "label": _texts(scored.labels, scored.label_names),
        "prediction": _texts(answers.predictions, scored.label_names) if answers else [None] * n_units,
        "scores": _score_lists(answers) if answers else pa.nulls(n_units, pa.list_(pa.float32())),
    }
    return pa.table(columns, schema=PREDICTIONS_SCHEMA)


def _texts(values: np.ndarray, names: Sequence[str]) -> list[str | None]:
    if values.ndim == 2:
        return [" ".join(names[index] for index in np.flatnonzero(row).tolist()) for row in values]
    if values.dtype.kind == "f" or not names:
        return [str(value) for value in values.tolist()]
    return [names[index] if index >= 0 else None for index in values.tolist()]


def _score_lists(answers: Predicted) -> pa.ListArray:
    """The scores of each unit, without those of choices that it does not have."""
    exists = answers.scores > IMPOSSIBLE_SCORE
    offsets = np.concatenate(([0], np.cumsum(exists.sum(axis=1)))).astype(np.int32)
    return pa.ListArray.from_arrays(offsets, pa.array(answers.scores[exists], type=pa.float32()))
