"""Results of finished fine-tuning runs, kept until all runs of a stage are done.

A killed job finds them again under the digest of everything that determines them, and trains only the rest. Each
result is one file that appears whole or not at all; one that cannot be read counts as absent.
"""

import json
import shutil
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import numpy as np

from hatchery.evaluation.finetuning.predicting import Predicted
from hatchery.evaluation.metrics.collapse import Failure
from hatchery.storage.atomic import atomic_path

DESCRIPTION, PREDICTIONS, SCORES = "description", "predictions", "scores"


@dataclass(frozen=True)
class SetResult:
    """One run on one scored set: metric values (fractions), and the answers for all units in the order of the rows.

    A run that diverged has `failed` "nan", no values and no answers.
    """

    values: dict[str, float | None]
    failed: Failure
    answers: Predicted | None


@dataclass(frozen=True)
class RunResult:
    """One seed with one learning rate.

    `best_step` counts optimiser steps; `n_train` and `n_development` count items. `layer_weights` are a probe's shares
    of every layer, a list per span.
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
        """Why the main set, the first one, says that the run failed."""
        return next(iter(self.sets.values())).failed


class RunStore:
    """The finished runs of one stage: `<checkpoints>/<digest>/run_<seed>_<learning rate>.npz`."""

    def __init__(self, checkpoints: Path, identity: str) -> None:
        self.folder = checkpoints / identity

    def path(self, seed: int, learning_rate: float) -> Path:
        """Where the result of a run lies."""
        return self.folder / f"run_{seed}_{learning_rate!r}.npz"

    def save(self, result: RunResult) -> None:
        """Keep one finished run."""
        arrays: dict[str, Any] = {}
        description = {key: value for key, value in vars(result).items() if key != "sets"} | {"sets": []}
        for number, (name, found) in enumerate(result.sets.items()):
            description["sets"].append({"name": name, "values": found.values, "failed": found.failed})
            if found.answers is not None:
                arrays[f"{PREDICTIONS}_{number}"], arrays[f"{SCORES}_{number}"] = found.answers
        arrays[DESCRIPTION] = np.array(json.dumps(description))
        with atomic_path(self.path(result.seed, result.learning_rate)) as partial, partial.open("wb") as handle:
            np.savez(handle, **arrays)

    def load(self, runs: Sequence[tuple[int, float]]) -> dict[tuple[int, float], RunResult]:
        """The kept results among `runs`, pairs of seed and learning rate."""
        found = {run: self._load(*run) for run in runs}
        return {run: result for run, result in found.items() if result is not None}

    def _load(self, seed: int, learning_rate: float) -> RunResult | None:
        try:
            with np.load(self.path(seed, learning_rate), allow_pickle=False) as arrays:
                description = json.loads(str(arrays[DESCRIPTION]))
                sets = {
                    found["name"]: SetResult(found["values"], found["failed"], _answers(arrays, number))
                    for number, found in enumerate(description.pop("sets"))
                }
            result = RunResult(sets=sets, **description)
        except (OSError, ValueError, TypeError, KeyError, AttributeError, EOFError, zipfile.BadZipFile):
            return None
        usable = (result.seed, result.learning_rate) == (seed, learning_rate) and bool(sets)
        return result if usable and all(found.failed in get_args(Failure) for found in sets.values()) else None

    def remove(self) -> None:
        """Forget all runs; called once the stage's outputs are written."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _answers(arrays: Any, number: int) -> Predicted | None:
    names = f"{PREDICTIONS}_{number}", f"{SCORES}_{number}"
    return Predicted(arrays[names[0]], arrays[names[1]]) if names[0] in arrays else None
