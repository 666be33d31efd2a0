"""Checkpoints of a run: folders `step_00000123` that appear whole, are verified when read, and survive a kill.

A run folder lies outside the outputs that Snakemake declares, because Snakemake deletes those before a rerun. Its
name is the digest of everything that determines the run, so a changed setting never meets an old checkpoint. Tensors
are stored as safetensors, which cannot carry code. Generator states are not stored: data order, masks and dropout
are functions of (seed, step, rank).
"""

import json
import os
import re
import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from hatchery.errors import CheckpointError
from hatchery.storage.checksums import sha256_file

MODEL, OPTIMIZER, METRICS, STATE, CHECKSUMS = (
    "model.safetensors",
    "optimizer.safetensors",
    "metrics.jsonl",
    "state.json",
    "checksums.json",
)
FOLDER_NAME = re.compile(r"step_(\d{8,})")
# Joins a parameter's name and the name of its optimiser state.
SEPARATOR = "::"


@dataclass(frozen=True)
class Position:
    """How far a run has come: finished steps and the tokens seen in them (padding not counted)."""

    step: int
    tokens: int


def save_checkpoint(
    run_folder: Path, position: Position, model: nn.Module, optimizer: torch.optim.Optimizer, metrics: str
) -> Path:
    """Write `step_<position.step>` under a temporary name, then rename it.

    Raises CheckpointError when it cannot be written (a full disk, missing rights).
    """
    target = run_folder / f"step_{position.step:08d}"
    partial = run_folder / f".{target.name}.partial"
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        save_file(_model_tensors(model), partial / MODEL)
        save_file(_optimizer_tensors(model, optimizer), partial / OPTIMIZER)
        (partial / METRICS).write_text(metrics, encoding="utf-8")
        (partial / STATE).write_text(json.dumps(asdict(position), sort_keys=True), encoding="utf-8")
        checksums = {name: sha256_file(partial / name) for name in (MODEL, OPTIMIZER, METRICS, STATE)}
        (partial / CHECKSUMS).write_text(json.dumps(checksums, sort_keys=True, indent=1), encoding="utf-8")
        for name in (*checksums, CHECKSUMS):
            _sync(partial / name)
        shutil.rmtree(target, ignore_errors=True)
        partial.replace(target)
        _sync(run_folder)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{target}: the checkpoint cannot be written: {error}") from error
    return target


def prune_checkpoints(run_folder: Path, keep: int) -> None:
    """Remove all but the newest `keep` checkpoints."""
    for folder in checkpoint_folders(run_folder)[keep:]:
        shutil.rmtree(folder, ignore_errors=True)


def checkpoint_folders(run_folder: Path) -> list[Path]:
    """The checkpoints of a run, newest first."""
    found = [(int(match[1]), path) for path in run_folder.glob("step_*") if (match := FOLDER_NAME.fullmatch(path.name))]
    return [path for _, path in sorted(found, reverse=True)]


def newest_sound_checkpoint(run_folder: Path) -> Path | None:
    """The newest checkpoint whose files match their checksums, or null; damaged ones are removed with a warning.

    They have to go: a damaged checkpoint of a later step would otherwise count among the newest that are kept.
    """
    for leftover in run_folder.glob(".step_*.partial"):
        shutil.rmtree(leftover, ignore_errors=True)
    for folder in checkpoint_folders(run_folder):
        try:
            verify_checkpoint(folder)
        except CheckpointError as error:
            print(f"warning: {error}; going back to the checkpoint before it", file=sys.stderr, flush=True)
            shutil.rmtree(folder, ignore_errors=True)
            continue
        return folder
    return None


def verify_checkpoint(folder: Path) -> None:
    """Raises CheckpointError naming the first file that is missing or differs from its checksum."""
    try:
        checksums = json.loads((folder / CHECKSUMS).read_text(encoding="utf-8"))
        expected = {name: checksums[name] for name in (MODEL, OPTIMIZER, METRICS, STATE)}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{folder / CHECKSUMS}: the checksums cannot be read") from error
    for name, checksum in expected.items():
        path = folder / name
        if not path.is_file():
            raise CheckpointError(f"{path}: the file is missing")
        if sha256_file(path) != checksum:
            raise CheckpointError(f"{path}: the content differs from its checksum")


def load_checkpoint(folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> tuple[Position, str]:
    """Fill `model` and `optimizer` from a verified checkpoint; returns the position and the metrics up to it.

    Raises CheckpointError when the tensors do not fit the model.
    """
    try:
        tensors, states = load_file(folder / MODEL), load_file(folder / OPTIMIZER)
        metrics = (folder / METRICS).read_text(encoding="utf-8")
        position = Position(**json.loads((folder / STATE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, SafetensorError) as error:
        raise CheckpointError(f"{folder}: the checkpoint cannot be read: {error}") from error
    own = _model_tensors(model)
    if {name: tensor.shape for name, tensor in own.items()} != {name: t.shape for name, t in tensors.items()}:
        raise CheckpointError(f"{folder / MODEL}: names or shapes of tensors differ from those of the model")
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(tensors[name])
    parameters = dict(model.named_parameters())
    for key, tensor in states.items():
        name, _, state = key.rpartition(SEPARATOR)
        if name not in parameters:
            raise CheckpointError(f"{folder / OPTIMIZER}: there is no parameter {name!r} in the model")
        parameter = parameters[name]
        # Step counts stay on the CPU, as both optimisers keep them there.
        device = torch.device("cpu") if tensor.ndim == 0 and state == "step" else parameter.device
        optimizer.state[parameter][state] = tensor.to(device)
    return position, metrics


def _model_tensors(model: nn.Module) -> dict[str, Tensor]:
    """The persistent tensors of the model by name; they share memory with it."""
    return {name: tensor.detach() for name, tensor in model.state_dict().items()}


def _optimizer_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    return {
        f"{name}{SEPARATOR}{key}": value
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
