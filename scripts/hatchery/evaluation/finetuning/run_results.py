"""Results of single fine-tuning runs, kept under the digest of everything that determines them but seed and rate.

A killed job finds them again and trains only the rest, and so does one that is asked for one more seed or learning
rate. Each result is one file that appears whole or not at all and has its checksum in its name; one that does not match
it is trained again.
"""

import hashlib
import json
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, get_args

import numpy as np

from hatchery.artifacts.atomic import write_bytes
from hatchery.artifacts.checksums import digest
from hatchery.evaluation.finetuning.predicting import Predicted
from hatchery.evaluation.metrics.scored import Failure

DESCRIPTION, PREDICTIONS, SCORES = "description", "predictions", "scores"
OF = "of"
"""The key of the description for the name of the folder, so that folders that were exchanged are noticed."""


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
    """The finished runs of a stage: `<checkpoints>/<identity>/run_<seed>_<learning rate>.<checksum>.npz`."""

    def __init__(self, checkpoints: Path, identity: str) -> None:
        self.folder = checkpoints / identity

    def save(self, result: RunResult) -> None:
        """Keep one finished run."""
        arrays: dict[str, Any] = {}
        description = {key: value for key, value in vars(result).items() if key != "sets"}
        description |= {"sets": [], OF: self.folder.name}
        for number, (name, found) in enumerate(result.sets.items()):
            description["sets"].append({"name": name, "values": found.values, "failed": found.failed})
            if found.answers is not None:
                arrays[f"{PREDICTIONS}_{number}"], arrays[f"{SCORES}_{number}"] = found.answers
        arrays[DESCRIPTION] = np.array(json.dumps(description))
        content = BytesIO()
        np.savez(content, **arrays)
        path = self.folder / f"{_stem(result.seed, result.learning_rate)}.{_checksum(content.getvalue())}.npz"
        write_bytes(path, content.getvalue())
        for other in self._files(result.seed, result.learning_rate):
            if other != path:
                other.unlink(missing_ok=True)

    def load(self, runs: Sequence[tuple[int, float]]) -> dict[tuple[int, float], RunResult]:
        """The kept results among `runs`, pairs of seed and learning rate."""
        found = {run: self._load(*run) for run in runs}
        return {run: result for run, result in found.items() if result is not None}

    def _files(self, seed: int, learning_rate: float) -> list[Path]:
        return sorted(self.folder.glob(f"{_stem(seed, learning_rate)}.*.npz"))

    def _load(self, seed: int, learning_rate: float) -> RunResult | None:
        stem = _stem(seed, learning_rate)
        for path in self._files(seed, learning_rate):
            expected = path.name[len(stem) + 1 : -len(".npz")]
            try:
                content = path.read_bytes()
            except OSError as error:
                found: str = error.strerror or "unreadable"
            else:
                found = _checksum(content)
                result = _result(content, self.folder.name) if found == expected else None
                if result is not None and (result.seed, result.learning_rate) == (seed, learning_rate):
                    return result
                found += " of other runs" if found == expected else ""
            print(
                f"warning: {path}: damaged: expected the SHA-256 {expected}..., found {found}...; run again",
                file=sys.stderr,
                flush=True,
            )
        return None


def runs_identity(settings: Mapping[str, Any], inputs: Mapping[str, str]) -> str:
    """The digest of what determines single runs beside their seed and learning rate: settings, model, raw data.

    `inputs` are SHA-256 by name. Which other seeds and rates there are is left out, as is the runtime.
    """
    varied = ("seeds", "learning_rates")
    protocol = {key: value for key, value in settings["protocol"].items() if key not in varied}
    return digest({"stage": "finetune", "settings": {**settings, "protocol": protocol}, "inputs": dict(inputs)})


def _stem(seed: int, learning_rate: float) -> str:
    return f"run_{seed}_{learning_rate!r}"


def _checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _result(content: bytes, folder: str) -> RunResult | None:
    """The result in a file; None for one that other code wrote, or that belongs into another folder."""
    try:
        with np.load(BytesIO(content), allow_pickle=False) as arrays:
            description = json.loads(str(arrays[DESCRIPTION]))
            if description.pop(OF, folder) != folder:
                return None
            sets = {
                found["name"]: SetResult(found["values"], found["failed"], _answers(arrays, number))
                for number, found in enumerate(description.pop("sets"))
            }
        result = RunResult(sets=sets, **description)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, EOFError, zipfile.BadZipFile):
        return None
    usable = bool(sets) and all(found.failed in get_args(Failure) for found in sets.values())
    return result if usable else None


def _answers(arrays: Any, number: int) -> Predicted | None:
    names = f"{PREDICTIONS}_{number}", f"{SCORES}_{number}"
    return Predicted(arrays[names[0]], arrays[names[1]]) if names[0] in arrays else None
