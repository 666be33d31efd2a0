"""Results of single fine-tuning runs, stored for reuse. The name of their folder is a digest of inputs and settings,
without seed and learning rate.

A job may be repeated after an interruption, or with further seeds or learning rates. It then reuses stored results and
trains only the missing runs. Each result is one file, which is renamed to its final name when it is complete. This name
contains the file's checksum. If a file does not match its checksum, the run is trained again.

In the tables of the stage, values are fractions or correlations, never percent. A diverged run has no values, and its
column `failed` names the failure; no run is dropped. Rows are in the order of the configuration.
"""

import hashlib
import json
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any, get_args

import numpy as np
import polars as pl
import pyarrow as pa

from hatchery.artifacts.atomic import remove_leftovers, write_bytes
from hatchery.artifacts.checksums import digest
from hatchery.evaluation.finetuning.batches import Predicted
from hatchery.evaluation.finetuning.scored_sets import ScoredSet
from hatchery.evaluation.metrics import Failure
from hatchery.evaluation.scores import Parts
from hatchery.evaluation.tasks.settings import TaskSettings
from hatchery.modeling.heads.targets import IMPOSSIBLE_SCORE

DESCRIPTION, PREDICTIONS, SCORES = "description", "predictions", "scores"
OF = "of"
"""Key under which a result file stores its folder's name, so that a file from another folder is detected."""


@dataclass(frozen=True)
class SetResult:
    """Results of one run on one scored set: metric values as fractions or correlations, and predictions for all units
    (rows, or targets in sentences), in the order of the rows.

    If the run diverged, `failed` is "nan", and there are no values and no predictions.
    """

    values: dict[str, float | None]
    failed: Failure
    answers: Predicted | None


@dataclass(frozen=True)
class RunResult:
    """Results of one run: one seed with one learning rate.

    `best_step` is a number of optimiser steps; `n_train` and `n_development` are numbers of items. `best_step` and
    `development_value` are None for a diverged run. For a probe, `layer_weights` contains the list of the layers'
    weights for each of the one or two spans of a target; otherwise, it is empty.
    """

    seed: int
    learning_rate: float
    best_step: int | None
    development_value: float | None
    n_train: int
    n_development: int
    sets: dict[str, SetResult]
    layer_weights: list[list[float]] = field(default_factory=list)

    @property
    def failed(self) -> Failure:
        """The run's failure on its first scored set."""
        return next(iter(self.sets.values())).failed


class RunStore:
    """The finished runs of a stage, one file per run in the folder `<checkpoints>/<identity>`. `identity` is the digest
    that `runs_identity` returns. A file name contains the run's seed, its learning rate and a checksum.
    """

    def __init__(self, checkpoints: Path, identity: str) -> None:
        self.folder = checkpoints / identity

    def save(self, result: RunResult) -> None:
        """Write one finished run to its file."""
        arrays: dict[str, Any] = {}
        description = {key: value for key, value in vars(result).items() if key != "sets"}
        description |= {"sets": [], OF: self.folder.name}
        for number, (name, set_result) in enumerate(result.sets.items()):
            description["sets"].append({"name": name, "values": set_result.values, "failed": set_result.failed})
            if set_result.answers is not None:
                arrays[f"{PREDICTIONS}_{number}"], arrays[f"{SCORES}_{number}"] = set_result.answers
        arrays[DESCRIPTION] = np.array(json.dumps(description))
        content = BytesIO()
        np.savez(content, **arrays)
        path = self.folder / f"{_stem(result.seed, result.learning_rate)}.{_checksum(content.getvalue())}.npz"
        write_bytes(path, content.getvalue())
        for other in self._files(result.seed, result.learning_rate):
            if other != path:
                other.unlink(missing_ok=True)

    def load(self, runs: Sequence[tuple[int, float]]) -> dict[tuple[int, float], RunResult]:
        """Return the stored results of `runs` by (seed, learning rate); runs without a stored result are omitted."""
        for run in runs:
            remove_leftovers(self.folder, f"{_stem(*run)}.")
        stored = {run: self._load(*run) for run in runs}
        return {run: result for run, result in stored.items() if result is not None}

    def _files(self, seed: int, learning_rate: float) -> list[Path]:
        return sorted(self.folder.glob(f"{_stem(seed, learning_rate)}.*.npz"))

    def _load(self, seed: int, learning_rate: float) -> RunResult | None:
        stem = _stem(seed, learning_rate)
        for path in self._files(seed, learning_rate):
            expected = path.name[len(stem) + 1 : -len(".npz")]
            try:
                content = path.read_bytes()
            except OSError as error:
                checksum: str = error.strerror or "unreadable"
            else:
                checksum = _checksum(content)
                result = _result(content, self.folder.name) if checksum == expected else None
                if result is not None and (result.seed, result.learning_rate) == (seed, learning_rate):
                    return result
                checksum += " of other runs" if checksum == expected else ""
            print(
                f"warning: {path}: damaged: expected the SHA-256 {expected}..., got {checksum}...; this fine-tuning "
                "is run again",
                file=sys.stderr,
                flush=True,
            )
        return None


def runs_identity(settings: Mapping[str, Any], inputs: Mapping[str, str]) -> str:
    """Return a digest of the settings of a run, without seed and learning rate, and of its inputs (model, raw data,
    vocabulary).

    `inputs` maps the name of each input to its SHA-256. The runtime settings are not part of the digest.
    """
    varied = ("seeds", "learning_rates")
    protocol = {key: value for key, value in settings["protocol"].items() if key not in varied}
    return digest({"stage": "finetune", "settings": {**settings, "protocol": protocol}, "inputs": dict(inputs)})


def _stem(seed: int, learning_rate: float) -> str:
    return f"run_{seed}_{learning_rate!r}"


def _checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _result(content: bytes, folder: str) -> RunResult | None:
    """Parse the content of a result file. Return None if the content cannot be parsed (another version of the code
    wrote it), or if it names a folder other than `folder`.
    """
    try:
        with np.load(BytesIO(content), allow_pickle=False) as arrays:
            description = json.loads(str(arrays[DESCRIPTION]))
            if description.pop(OF, folder) != folder:
                return None
            sets = {
                entry["name"]: SetResult(entry["values"], entry["failed"], _answers(arrays, number))
                for number, entry in enumerate(description.pop("sets"))
            }
        result = RunResult(sets=sets, **description)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, EOFError, zipfile.BadZipFile):
        return None
    usable = bool(sets) and all(set_result.failed in get_args(Failure) for set_result in sets.values())
    return result if usable else None


def _answers(arrays: Any, number: int) -> Predicted | None:
    names = f"{PREDICTIONS}_{number}", f"{SCORES}_{number}"
    return Predicted(arrays[names[0]], arrays[names[1]]) if names[0] in arrays else None


RESULT_COLUMNS = {
    "rows": pl.String,
    "seed": pl.Int64,
    "learning_rate": pl.Float64,
    "metric": pl.String,
    "value": pl.Float64,
    "best_step": pl.Int64,
    "development_value": pl.Float64,
    "failed": pl.String,
}
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


def results_frame(sets: Sequence[ScoredSet], runs: Sequence[RunResult]) -> pl.DataFrame:
    """Return the table results.csv: one row per scored set, run and metric."""
    rows = [
        (
            *(scored.name, run.seed, run.learning_rate, metric, run.sets[scored.name].values[metric]),
            *(run.best_step, run.development_value, run.sets[scored.name].failed),
        )
        for scored in sets
        for run in runs
        for metric in scored.task.metrics
    ]
    return pl.DataFrame(rows, schema=RESULT_COLUMNS, orient="row")


def breakdown_frame(sets: Sequence[ScoredSet], runs: Sequence[RunResult]) -> pl.DataFrame:
    """Return the table breakdown.csv, without diverged runs.

    For each scored set, run, field in the task's `facts` (such as the heuristic in HANS) and value of this field, the
    table contains the accuracy on all examples with this value, with an empty `label`. It also contains, for each
    label, the accuracy on the examples with this value and this label.
    """
    rows = []
    for scored in sets:
        for run in runs:
            answers = run.sets[scored.name].answers
            if answers is not None:
                for cell in scored.breakdown(answers):
                    where = (scored.name, run.seed, run.learning_rate)
                    rows.append((*where, cell.fact, cell.value, cell.label, cell.n, cell.accuracy))
    return pl.DataFrame(rows, schema=list(BREAKDOWN_COLUMNS), orient="row", infer_schema_length=None)


def layer_weights_frame(runs: Sequence[RunResult]) -> pl.DataFrame:
    """Return the table layer_weights.csv of trained probes: the weight of every layer for each of the one or two spans
    of a target. Layers and spans are numbered from 1.
    """
    rows = [
        (run.seed, run.learning_rate, span, layer, weight)
        for run in runs
        for span, weights in enumerate(run.layer_weights, start=1)
        for layer, weight in enumerate(weights, start=1)
    ]
    return pl.DataFrame(rows, schema=list(LAYER_WEIGHT_COLUMNS), orient="row", infer_schema_length=None)


PREDICTIONS_FILE = "predictions.json"


def predictions_json(task: TaskSettings, answers: Predicted) -> str:
    """Return the predictions for the task's first scored set, "validation", in the format of BabyLM's evaluation server
    (docs/papers/babylm-2026.md, "Prediction files").

    In this format, the task's name is the part before the first dot in the name of the set's first file: `rte` for
    `rte.valid.jsonl`. If the validation rows are drawn from the training rows, the task's first file names the task.
    """
    first = task.files.get("validation") or next(iter(task.files.values()))
    name = PurePosixPath(first if isinstance(first, str) else first[0]).name.partition(".")[0]
    rows = [{"id": f"{name}_{row}", "pred": int(label)} for row, label in enumerate(answers.predictions)]
    return json.dumps({name: {"predictions": rows}}) + "\n"


def predictions_of(sets: Sequence[ScoredSet], runs: Sequence[RunResult]) -> Parts:
    """Return the table predictions.parquet: one row per scored set, run and unit (a row of the set, or a target in a
    sentence). Units that enter no metric are included.
    """
    return Parts(PREDICTIONS_SCHEMA, lambda: (predictions_table(scored, run) for scored in sets for run in runs))


def predictions_table(scored: ScoredSet, run: RunResult) -> pa.Table:
    """Return labels and predictions of one set as text. Predictions of a diverged run, and labels outside the label
    set, are null.

    If an example, or a target in a sentence, has several labels, the labels are joined by spaces.
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
    """Return a list of scores for each example, or target in a sentence, without the scores of missing choices."""
    exists = answers.scores > IMPOSSIBLE_SCORE
    offsets = np.concatenate(([0], np.cumsum(exists.sum(axis=1)))).astype(np.int32)
    return pa.ListArray.from_arrays(offsets, pa.array(answers.scores[exists], type=pa.float32()))
