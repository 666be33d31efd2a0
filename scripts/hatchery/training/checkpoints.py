"""Checkpoints of a run: folders such as `step_00000123`, which survive a kill and are verified when read.

A run folder is not an output of a Snakemake rule, because Snakemake deletes outputs before a rerun. Its name is the
digest of the run's settings and inputs, so a run with changed settings uses another folder. A checkpoint also stores
the name of its run folder; a checkpoint in another run's folder is refused.

Tensors are stored as safetensors, which cannot contain code. Checkpoints do not depend on the number of processes.

Checkpoints contain no generator states, because data order, masks and dropout are functions of the seed and of
positions in the data order.
"""

import json
import math
import os
import re
import shutil
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from hatchery.artifacts.atomic import json_value
from hatchery.artifacts.checksums import sha256_file
from hatchery.errors import CheckpointError, MisplacedError
from hatchery.training.milestones import step_name

MODEL, OPTIMIZER, EXTRA, METRICS, STATE, CHECKSUMS = (
    "model.safetensors",
    "optimizer.safetensors",
    "extra.safetensors",
    "metrics.jsonl",
    "state.json",
    "checksums.json",
)
CONTENT = (MODEL, OPTIMIZER, EXTRA, METRICS, STATE)
FOLDER_NAME = re.compile(r"step_(\d{8,})")
# Key in the file `STATE` for the name of the run's folder.
RUN = "run"
# Separator between the name of the parameter and the name of its state, in the names of the optimiser's tensors.
SEPARATOR = "::"


States = Mapping[Any, Mapping[str, Tensor]]
"""The tensors of an optimiser: by parameter, then by name."""


@dataclass(frozen=True)
class Position:
    """The number of a run's finished steps, and the numbers of tokens (without padding) and of words in these steps."""

    step: int
    tokens: int
    # Number of words by the corpus's rule `word_count`; None if the token shards have no word counts.
    words: int | None = None


@dataclass(frozen=True)
class Snapshot:
    """The tensors of a run after a step, by name; `extra` contains all tensors except the tensors of model and
    optimiser."""

    model: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    extra: dict[str, Tensor]


@dataclass(frozen=True)
class Loaded:
    """The content of a checkpoint, except the tensors of model and optimiser; `extra` is on the CPU."""

    position: Position
    metrics: str
    extra: dict[str, Tensor]


def take_snapshot(
    model: nn.Module,
    states: States,
    extra: Mapping[str, Tensor] | None = None,
    copy: bool = True,
) -> Snapshot:
    """Return copies in main memory of a run's tensors; `extra` contains, for example, a loss scaler's state.

    `states` are the optimiser's tensors. If `copy` is false, the result shares memory with the model, and must be saved
    before the next step.
    """

    def taken(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        plain = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
        return {name: tensor.to("cpu", copy=True) for name, tensor in plain.items()} if copy else plain

    tensors = {
        f"{name}{SEPARATOR}{key}": value
        for name, parameter in model.named_parameters()
        for key, value in states.get(parameter, {}).items()
    }
    return Snapshot(taken(model.state_dict()), taken(tensors), taken(extra or {}))


def save_checkpoint(run_folder: Path, position: Position, snapshot: Snapshot, metrics: str) -> Path:
    """Write the checkpoint `step_<position.step>` under a temporary name and rename it; return its folder.

    If the process is killed during the call, the folder is absent or complete, unless it replaces an existing folder.
    In this case, the folder may be damaged, and its checksums show the damage. Raises CheckpointError if the checkpoint
    cannot be written (full disk, missing rights).
    """
    target = checkpoint_folder(run_folder, position.step)
    partial = _partial(target)
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        save_file(snapshot.model, partial / MODEL)
        save_file(snapshot.optimizer, partial / OPTIMIZER)
        save_file(snapshot.extra, partial / EXTRA)
        (partial / METRICS).write_text(metrics, encoding="utf-8")
        state = {**asdict(position), RUN: run_folder.name}
        (partial / STATE).write_text(json.dumps(state, sort_keys=True), encoding="utf-8")
        checksums = {name: sha256_file(partial / name) for name in CONTENT}
        _write_checksums(partial / CHECKSUMS, checksums)
        for name in (*CONTENT, CHECKSUMS, "."):
            _sync(partial / name)
        shutil.rmtree(target, ignore_errors=True)
        partial.replace(target)
        _sync(run_folder)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{target}: the checkpoint cannot be written: {error}") from error
    return target


def prune_checkpoints(run_folder: Path, keep: int, milestones: Collection[int] = ()) -> None:
    """Remove all checkpoints except the newest `keep` checkpoints and the checkpoints of the steps in `milestones`.

    A milestone that is not among the newest `keep` checkpoints loses its optimiser state: only its model is exported,
    and training continues from the newest checkpoint.
    """
    for folder in checkpoint_folders(run_folder)[keep:]:
        if checkpoint_step(folder) in milestones:
            _forget_optimizer(folder)
        else:
            _remove(folder)


def milestone_steps(fractions: Sequence[float], steps: int) -> tuple[int, ...]:
    """Return the milestone steps of a run of `steps` steps: for each of the `fractions` of the run, the nearest step,
    which is at least 1. The result is sorted and without duplicates; it is empty if `steps` is 0.
    """
    if steps == 0:
        return ()
    return tuple(sorted({max(1, math.floor(fraction * steps + 0.5)) for fraction in fractions}))


def checkpoint_folders(run_folder: Path) -> list[Path]:
    """Return the folders of a run's checkpoints, newest first."""
    folders = [path for path in run_folder.glob("step_*") if FOLDER_NAME.fullmatch(path.name)]
    return sorted(folders, key=checkpoint_step, reverse=True)


def checkpoint_folder(run_folder: Path, step: int) -> Path:
    """Return the path of the checkpoint after `step` finished steps; the checkpoint may not exist."""
    return run_folder / step_name(step)


def checkpoint_step(folder: Path) -> int:
    """Return the number of finished steps from the name of a checkpoint's folder."""
    return int(folder.name.removeprefix("step_"))


def newest_sound_checkpoint(
    run_folder: Path, milestones: Collection[int] = (), required: Collection[int] = ()
) -> Path | None:
    """Return the newest checkpoint that is complete and matches its checksums, or None; remove damaged checkpoints.

    If the checkpoint of a step in `milestones` is damaged, or the checkpoint of a step in `required` is missing, the
    run must train this step again. Therefore all checkpoints from this step on are removed. Each removal is reported as
    a warning. Raises MisplacedError for an undamaged checkpoint of another run; this checkpoint is not removed.
    """
    for leftover in run_folder.glob(".step_*.partial"):
        shutil.rmtree(leftover, ignore_errors=True)
    newest = _newest_whole(run_folder)
    while newest is not None:
        lost = _first_lost(run_folder, checkpoint_step(newest), milestones, required)
        if lost is None:
            break
        step, reason = lost
        # Remove the latest checkpoint first. If the process is killed before the last removal, the next attempt still
        # finds the damaged checkpoint.
        for folder in checkpoint_folders(run_folder):
            if checkpoint_step(folder) >= step:
                _remove(folder)
        newest = _newest_whole(run_folder)
        back = "the beginning" if newest is None else f"step {checkpoint_step(newest):,}"
        print(
            f"warning: {reason}; training goes back to {back} to make the milestone of step {step:,} again",
            file=sys.stderr,
            flush=True,
        )
    return newest


def _newest_whole(run_folder: Path) -> Path | None:
    for folder in checkpoint_folders(run_folder):
        try:
            is_whole = verify_checkpoint(folder)
        except CheckpointError as error:
            print(f"warning: {error}; the previous checkpoint is used", file=sys.stderr, flush=True)
            _remove(folder)
            continue
        if is_whole:
            return folder
    return None


def _first_lost(
    run_folder: Path, newest: int, milestones: Collection[int], required: Collection[int]
) -> tuple[int, str] | None:
    """Return the first step before `newest` whose checkpoint is damaged or missing, and the reason; None if there is no
    such step.

    Checkpoints of `required` must exist; checkpoints of `milestones` are verified only if they exist.
    """
    for step in sorted({*milestones, *required}):
        folder = checkpoint_folder(run_folder, step)
        if step >= newest or not (step in required or folder.is_dir()):
            continue
        try:
            verify_checkpoint(folder)
        except CheckpointError as error:
            return step, str(error)
    return None


def verify_checkpoint(folder: Path) -> bool:
    """Return True for a complete checkpoint, and False for a milestone without optimiser state.

    Raises CheckpointError, naming the file, if a file is missing, if a file differs from its checksum, or if the stored
    step differs from the step in the folder's name. Raises MisplacedError for a checkpoint in the folder of another
    run.
    """
    try:
        checksums = _read_checksums(folder)
        is_whole = len(checksums) == len(CONTENT)
        expected = {name: checksums[name] for name in CONTENT if is_whole or name != OPTIMIZER}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{folder / CHECKSUMS}: the checksums cannot be read") from error
    for name, checksum in expected.items():
        path = folder / name
        if not path.is_file():
            raise CheckpointError(f"{path}: the file is missing")
        if sha256_file(path) != checksum:
            raise CheckpointError(f"{path}: the content differs from its checksum")
    state, run = _read_state(folder), folder.parent.name
    if state.get(RUN) != run:
        raise MisplacedError(
            f"{folder}: got a checkpoint of the run {state.get(RUN)}; move it back to that run, or remove it"
        )
    step = read_position(folder).step
    if step != checkpoint_step(folder):
        raise CheckpointError(f"{folder / STATE}: got step {step}, expected the step in the folder's name")
    return is_whole


def load_checkpoint(
    folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer, state_on_cpu: bool = False
) -> Loaded:
    """Load `model` and `optimizer` from a verified checkpoint; return its position, metrics and `extra` tensors.

    The optimiser's state is put on the device of its parameters. If `state_on_cpu` is true, the state stays on the CPU,
    to be sharded later. Raises CheckpointError if the tensors do not match the model; the model is then unchanged.
    """
    states, extra = _read_tensors(folder / OPTIMIZER), _read_tensors(folder / EXTRA)
    position, metrics = read_position(folder), _read_text(folder / METRICS)
    parameters = dict(model.named_parameters())
    for key, tensor in states.items():
        name = key.rpartition(SEPARATOR)[0]
        if name not in parameters:
            raise CheckpointError(f"{folder / OPTIMIZER}: there is no parameter {name!r} in the model")
        whole = parameters[name].shape
        if tensor.ndim and (tensor.ndim != len(whole) or any(map(_is_another_size, tensor.shape, whole))):
            raise CheckpointError(
                f"{folder / OPTIMIZER}: {key!r} has the shape {tuple(tensor.shape)}, expected the shape of the model's "
                f"parameter, {tuple(whole)}"
            )
    load_model(folder, model)
    for key, tensor in states.items():
        name, _, state = key.rpartition(SEPARATOR)
        # Step counts stay on the CPU, where AdamW and LAMB keep them.
        stays = state_on_cpu or (tensor.ndim == 0 and state == "step")
        device = torch.device("cpu") if stays else parameters[name].device
        optimizer.state[parameters[name]][state] = tensor.to(device)
    return Loaded(position, metrics, extra)


def _is_another_size(size: int, whole: int) -> bool:
    """Return True if `size`, a dimension of an optimiser-state tensor, is neither 1 nor `whole`, the parameter's size
    in this dimension.
    """
    return size not in (1, whole)


def load_model(folder: Path, model: nn.Module) -> None:
    """Load only `model` from a verified checkpoint, to export a milestone.

    Raises CheckpointError if the names or shapes of the checkpoint's tensors differ from those of the model's tensors;
    the model is then unchanged.
    """
    tensors = _read_tensors(folder / MODEL)
    own = {name: tensor.detach() for name, tensor in model.state_dict().items()}
    if {name: tensor.shape for name, tensor in own.items()} != {name: t.shape for name, t in tensors.items()}:
        raise CheckpointError(f"{folder / MODEL}: the names or shapes of the tensors differ from the model")
    for name, tensor in own.items():
        tensor.copy_(tensors[name])


def _read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path}: the tensors cannot be read: {error}") from error


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: the file cannot be read: {error}") from error


def read_position(folder: Path) -> Position:
    """Return the position stored in a checkpoint. Raises CheckpointError if the position cannot be read."""
    state = _read_state(folder)
    try:
        return Position(**{key: value for key, value in state.items() if key != RUN})
    except TypeError as error:
        raise CheckpointError(f"{folder / STATE}: expected a step and a number of tokens: {error}") from error


def _read_state(folder: Path) -> dict[str, Any]:
    try:
        return dict(json_value(_read_text(folder / STATE)))
    except (ValueError, TypeError) as error:
        raise CheckpointError(f"{folder / STATE}: expected a JSON object: {error}") from error


def _partial(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.partial")


def _remove(folder: Path) -> None:
    """Remove a checkpoint, after renaming its folder, so that a kill leaves no incomplete checkpoint."""
    partial = _partial(folder)
    shutil.rmtree(partial, ignore_errors=True)
    try:
        folder.replace(partial)
    except OSError:
        partial = folder
    shutil.rmtree(partial, ignore_errors=True)


def _forget_optimizer(folder: Path) -> None:
    """Remove the optimiser state of a milestone; a kill leaves the checkpoint complete or detectably damaged.

    A checkpoint with unreadable checksums stays unchanged: the export of the milestone reports the error.
    """
    try:
        checksums = _read_checksums(folder)
    except (OSError, ValueError, TypeError):
        return
    if checksums.pop(OPTIMIZER, None) is not None:
        partial = folder / f".{CHECKSUMS}.partial"
        _write_checksums(partial, checksums)
        _sync(partial)
        partial.replace(folder / CHECKSUMS)
        _sync(folder)
    (folder / OPTIMIZER).unlink(missing_ok=True)


def _read_checksums(folder: Path) -> dict[str, str]:
    return dict(json_value((folder / CHECKSUMS).read_text(encoding="utf-8")))


def _write_checksums(path: Path, checksums: Mapping[str, str]) -> None:
    path.write_text(json.dumps(checksums, sort_keys=True, indent=1), encoding="utf-8")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
