"""Checkpoints are restored bit for bit, damaged checkpoints are skipped, and no kill loses a checkpoint."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from hatchery.errors import CheckpointError, MisplacedError
from hatchery.training import checkpoints
from hatchery.training.checkpoints import (
    CHECKSUMS,
    EXTRA,
    METRICS,
    MODEL,
    OPTIMIZER,
    STATE,
    Position,
    checkpoint_folder,
    checkpoint_folders,
    load_checkpoint,
    load_model,
    milestone_steps,
    newest_sound_checkpoint,
    prune_checkpoints,
    save_checkpoint,
    take_snapshot,
    verify_checkpoint,
)
from hatchery.training.data_order import epoch_permutation, sequences_from, share_of_process
from hatchery.training.lamb import Lamb
from hatchery.training.muon import Muon

SCALER = {"scale": torch.tensor(1024.0), "good_steps": torch.tensor(7)}


def make(kind: str = "lamb", seed: int = 0) -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(5, 4), nn.Linear(4, 3))
    if kind == "lamb":
        return model, Lamb(model.parameters(), lr=0.01)
    if kind == "normuon":
        matrices = {"matrices": True, "momentum": 0.9, "row_decay": 0.9, "rate_factor": 1.0}
        weights, biases = ([getattr(layer, name) for layer in model] for name in ("weight", "bias"))
        return model, Muon([{"params": weights, **matrices}, {"params": biases}], lr=0.01)
    return model, torch.optim.AdamW(model.parameters(), lr=0.01)


def advance(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> None:
    for step in range(steps):
        for parameter in model.parameters():
            parameter.grad = torch.cos(torch.arange(float(parameter.numel())) + step).reshape(parameter.shape)
        optimizer.step()


def save(run_folder: Path, step: int, metrics: str = "") -> Path:
    model, optimizer = make()
    advance(model, optimizer, 1)
    return save_checkpoint(run_folder, Position(step, step), take_snapshot(model, optimizer.state), metrics)


def damage(path: Path, kind: str) -> None:
    content = bytearray(path.read_bytes())
    if kind == "flip":
        content[len(content) // 2] ^= 0x55
        path.write_bytes(content)
    elif kind == "truncate":
        path.write_bytes(content[: len(content) // 2])
    else:
        path.unlink()


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize("kind", ["lamb", "adamw", "normuon"])
def test_training_goes_on_from_a_checkpoint_bit_for_bit(tmp_path: Path, kind: str, copy: bool) -> None:
    model, optimizer = make(kind)
    advance(model, optimizer, 3)
    snapshot = take_snapshot(model, optimizer.state, SCALER, copy=copy)
    folder = save_checkpoint(tmp_path, Position(3, 99), snapshot, '{"step": 3}\n')
    advance(model, optimizer, 4)

    other, other_optimizer = make(kind, seed=1)
    loaded = load_checkpoint(folder, other, other_optimizer)
    assert (loaded.position, loaded.metrics) == (Position(3, 99), '{"step": 3}\n')
    assert loaded.extra == SCALER
    advance(other, other_optimizer, 4)
    for expected, actual in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(expected, actual)


def test_a_snapshot_holds_the_state_of_the_moment_when_it_was_taken(tmp_path: Path) -> None:
    model, optimizer = make()
    advance(model, optimizer, 2)
    expected = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    snapshot = take_snapshot(model, optimizer.state, SCALER)
    advance(model, optimizer, 2)
    folder = save_checkpoint(tmp_path, Position(2, 2), snapshot, "")
    other, other_optimizer = make(seed=1)
    load_checkpoint(folder, other, other_optimizer)
    assert all(torch.equal(tensor, expected[name]) for name, tensor in other.state_dict().items())
    assert {int(state["step"]) for state in other_optimizer.state.values()} == {2}


@pytest.mark.parametrize("name", [MODEL, OPTIMIZER, EXTRA, METRICS, STATE, CHECKSUMS])
@pytest.mark.parametrize("kind", ["flip", "truncate", "remove"])
def test_a_damaged_newest_checkpoint_falls_back_to_the_one_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, kind: str
) -> None:
    older, newer = save(tmp_path, 1, "one\n"), save(tmp_path, 2, "two\n")
    damage(newer / name, kind)
    assert newest_sound_checkpoint(tmp_path) == older
    warning = capsys.readouterr().err
    assert warning.count("\n") == 1 and "the previous checkpoint is used" in warning
    # A changed digit in the checksum file is reported for the file to which the checksum belongs.
    assert name in warning or (name == CHECKSUMS and kind == "flip" and "differs from its checksum" in warning)
    # A damaged later checkpoint is removed; otherwise it would displace a sound one of the newest that are kept.
    assert checkpoint_folders(tmp_path) == [older]


def test_a_checkpoint_under_the_name_of_another_step_is_refused(tmp_path: Path) -> None:
    older = save(tmp_path, 1)
    shutil.copytree(older, tmp_path / "step_00000009")
    with pytest.raises(CheckpointError, match=r"state\.json: got step 1"):
        verify_checkpoint(tmp_path / "step_00000009")
    assert newest_sound_checkpoint(tmp_path) == older


def test_a_checkpoint_of_another_run_is_refused_and_left_for_its_owner(tmp_path: Path) -> None:
    first, second = save(tmp_path / "first", 3), save(tmp_path / "second", 3)
    kept = shutil.move(first, tmp_path / "kept")
    shutil.move(second, first)
    shutil.move(kept, second)
    with pytest.raises(MisplacedError, match=r"first/step_00000003: got a checkpoint of the run second"):
        newest_sound_checkpoint(tmp_path / "first")
    assert first.is_dir()


def test_no_sound_checkpoint_means_training_from_the_start(tmp_path: Path) -> None:
    assert newest_sound_checkpoint(tmp_path) is None
    damage(save(tmp_path, 1) / MODEL, "truncate")
    assert newest_sound_checkpoint(tmp_path) is None


class Killed(BaseException):
    """Simulates SIGKILL: our code does not catch this exception, so the disk stays as after a kill."""


def count_down(function: Callable[..., Any], calls: list[int]) -> Callable[..., Any]:
    """Return `function` with a simulated kill after call number `calls[0]`, so that later writes never happen."""

    def wrapped(*arguments: Any, **options: Any) -> Any:
        result = function(*arguments, **options)
        calls[0] -= 1
        if calls[0] == 0:
            raise Killed
        return result

    return wrapped


def test_a_kill_after_any_write_leaves_a_whole_checkpoint_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, outcomes = [0], []
    # Each call of these functions changes the disk or makes a change durable, so the calls cover all distinct moments.
    for module, name in ((checkpoints, "save_file"), (checkpoints, "_sync"), (checkpoints, "sha256_file")):
        monkeypatch.setattr(module, name, count_down(getattr(module, name), calls))
    for name in ("mkdir", "write_text", "replace"):
        monkeypatch.setattr(Path, name, count_down(getattr(Path, name), calls))
    for moment in range(1, 100):
        run_folder = tmp_path / str(moment)
        run_folder.mkdir()
        older = save(run_folder, 1)
        calls[0] = moment
        try:
            save(run_folder, 2)
        except Killed:
            pass
        else:
            break
        assert all(folder.name in ("step_00000001", "step_00000002") for folder in checkpoint_folders(run_folder))
        for folder in checkpoint_folders(run_folder):
            verify_checkpoint(folder)
        found = newest_sound_checkpoint(run_folder)
        outcomes.append(found is not None and found != older)
        assert not list(run_folder.glob(".*"))
    # Calls: 1 folder, 3 tensor files, 2 texts and the checksums, 5 checksums, 7 syncs, the renaming and the last sync.
    assert len(outcomes) == 21
    assert outcomes == sorted(outcomes) and not outcomes[0] and outcomes[-1]


def test_a_kill_during_pruning_leaves_nothing_under_a_checkpoints_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = save(tmp_path, 2)
    save(tmp_path, 1)

    def die_half_way(folder: Path, ignore_errors: bool = False) -> None:
        if folder.exists():
            (folder / MODEL).unlink()
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", die_half_way)
        with pytest.raises(Killed):
            prune_checkpoints(tmp_path, 1)
    assert checkpoint_folders(tmp_path) == [newer]
    assert newest_sound_checkpoint(tmp_path) == newer
    assert list(tmp_path.iterdir()) == [newer]


def test_only_the_newest_checkpoints_are_kept_also_beyond_eight_digits(tmp_path: Path) -> None:
    for step in (5, 99_999_999, 100_000_000):
        save(tmp_path, step)
    prune_checkpoints(tmp_path, 2)
    assert [folder.name for folder in checkpoint_folders(tmp_path)] == ["step_100000000", "step_99999999"]


def test_milestones_are_the_nearest_steps_in_order_and_each_once() -> None:
    assert milestone_steps([1.0, 0.1, 0.29, 0.29], 100) == (10, 29, 100)
    assert milestone_steps([0.001, 0.01, 0.5], 10) == (1, 5)
    assert milestone_steps([0.5], 0) == ()
    assert milestone_steps([], 10) == ()


def test_any_number_of_processes_goes_on_from_a_checkpoint_with_the_same_global_batches(tmp_path: Path) -> None:
    folder = save(tmp_path, 23)
    model, optimizer = make()
    step = load_checkpoint(folder, model, optimizer).position.step
    # Only the step gives the position in the data, and the shares of the processes make up the global batch.
    assert json.loads((folder / STATE).read_text()) == {"run": tmp_path.name, "step": 23, "tokens": 23, "words": None}
    batch = sequences_from(step * 32, 32, 100, lambda epoch: epoch_permutation(7, epoch, 100))
    expected = np.concatenate([part.indices for part in batch])
    for world_size in (1, 2, 4):
        shares = [share_of_process(batch, rank, world_size) for rank in range(world_size)]
        assert np.array_equal(np.concatenate([part.indices for share in shares for part in share]), expected)


@pytest.mark.parametrize("other", [nn.Sequential(nn.Linear(5, 4), nn.Linear(4, 2)), nn.Linear(5, 4)])
def test_a_checkpoint_of_another_model_is_refused_and_leaves_the_model_alone(tmp_path: Path, other: nn.Module) -> None:
    before = {name: tensor.clone() for name, tensor in other.state_dict().items()}
    folder = save(tmp_path, 1)
    with pytest.raises(CheckpointError, match=r"the shape of|there is no parameter"):
        load_checkpoint(folder, other, Lamb(other.parameters(), lr=0.1))
    with pytest.raises(CheckpointError, match="names or shapes"):
        load_model(folder, other)
    assert all(torch.equal(tensor, before[name]) for name, tensor in other.state_dict().items())


def test_a_checkpoint_that_cannot_be_written_ends_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CheckpointError, match="cannot be written"):
        save(tmp_path / "file", 1)


def test_training_never_goes_on_from_weights_alone(tmp_path: Path) -> None:
    for step in (1, 2):
        save(tmp_path, step)
        prune_checkpoints(tmp_path, 1, (1,))
    damage(checkpoint_folder(tmp_path, 2) / MODEL, "truncate")
    assert newest_sound_checkpoint(tmp_path) is None
    assert checkpoint_folders(tmp_path) == [checkpoint_folder(tmp_path, 1)]
    damage(checkpoint_folder(tmp_path, 1) / MODEL, "flip")
    with pytest.raises(CheckpointError, match="differs from its checksum"):
        verify_checkpoint(checkpoint_folder(tmp_path, 1))


@pytest.mark.parametrize("loss", ["flip", "truncate", "remove", "folder removed"])
def test_from_a_lost_milestone_training_goes_back_to_make_it_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], loss: str
) -> None:
    for step in (1, 2, 4, 6, 7):
        save(tmp_path, step)
    prune_checkpoints(tmp_path, 2, (2, 4))
    kept = save(tmp_path, 1)
    assert newest_sound_checkpoint(tmp_path, (2, 4), (2, 4)) == checkpoint_folder(tmp_path, 7)
    lost = checkpoint_folder(tmp_path, 4)
    damage(lost / MODEL, loss) if loss != "folder removed" else shutil.rmtree(lost)
    # A milestone that was requested only after its step is not missing.
    assert newest_sound_checkpoint(tmp_path, (2, 5), (2,)) == checkpoint_folder(tmp_path, 7)
    capsys.readouterr()
    assert newest_sound_checkpoint(tmp_path, (2, 4), (2, 4)) == kept
    assert [folder.name[-1] for folder in checkpoint_folders(tmp_path)] == ["2", "1"]
    warning = capsys.readouterr().err
    assert warning.count("\n") == 1 and f"{lost}" in warning
    assert "training goes back to step 1 to make the milestone of step " in warning


@pytest.mark.parametrize("moment", [1, 2, 3, 4])
def test_a_kill_while_a_milestone_loses_its_optimiser_leaves_it_to_be_exported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    milestone, newest = save(tmp_path, 1), save(tmp_path, 2)
    calls = [moment]
    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "_sync", count_down(checkpoints._sync, calls))
        for name in ("write_text", "replace", "unlink"):
            patch.setattr(Path, name, count_down(getattr(Path, name), calls))
        with pytest.raises(Killed):
            prune_checkpoints(tmp_path, 1, (1,))
    is_whole = verify_checkpoint(milestone)
    assert is_whole == (moment < 3) and newest_sound_checkpoint(tmp_path) == newest
    prune_checkpoints(tmp_path, 1, (1,))
    assert not verify_checkpoint(milestone) and not (milestone / OPTIMIZER).exists()
