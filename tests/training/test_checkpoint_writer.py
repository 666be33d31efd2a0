"""Checkpoints are written in a thread beside training; training neither waits for the thread nor loses a checkpoint."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hatchery.errors import CheckpointError
from hatchery.training import checkpoint_writer
from hatchery.training.checkpoint_writer import CheckpointWriter
from hatchery.training.checkpoints import (
    OPTIMIZER,
    Position,
    checkpoint_folder,
    checkpoint_folders,
    checkpoint_step,
    load_checkpoint,
    load_model,
    save_checkpoint,
    verify_checkpoint,
)
from hatchery.training.run_checkpoints import RunCheckpoints
from hatchery.training.runtime_settings import RuntimeSettings
from hatchery.training.topology import SINGLE_PROCESS

SCALE = torch.tensor(512.0)
Save = Callable[..., None]


@pytest.fixture
def model() -> nn.Module:
    return nn.Linear(3, 2)


@pytest.fixture
def optimizer(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=0.1)


@pytest.fixture
def save_step(model: nn.Module, optimizer: torch.optim.Optimizer) -> Save:
    def saved(writer: CheckpointWriter, step: int) -> None:
        writer.save(Position(step, 10 * step), model, optimizer.state, {"scale": SCALE}, f"{step}\n")

    return saved


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Writing waits until this event is set."""
    opened = threading.Event()

    def gated(*arguments: Any) -> Path:
        assert opened.wait(60)
        return save_checkpoint(*arguments)

    monkeypatch.setattr(checkpoint_writer, "save_checkpoint", gated)
    return opened


def steps_in(run_folder: Path) -> list[int]:
    return [checkpoint_step(folder) for folder in checkpoint_folders(run_folder)]


def test_in_the_foreground_the_checkpoint_is_there_when_save_returns(tmp_path: Path, save_step: Save) -> None:
    with CheckpointWriter(tmp_path, keep=2) as writer:
        save_step(writer, 1)
        assert steps_in(tmp_path) == [1]


@pytest.mark.parametrize("background", [False, True])
def test_the_newest_and_the_milestones_are_kept(tmp_path: Path, save_step: Save, background: bool) -> None:
    with CheckpointWriter(tmp_path, keep=2, milestones=(1, 3), background=background) as writer:
        for step in range(1, 7):
            save_step(writer, step)
    assert steps_in(tmp_path) == [6, 5, 3, 1]
    # The older checkpoints are exported and need only weights; training resumes from the newest.
    assert [(checkpoint_folder(tmp_path, step) / OPTIMIZER).exists() for step in (6, 5, 3, 1)] == [
        True,
        True,
        False,
        False,
    ]
    assert [verify_checkpoint(checkpoint_folder(tmp_path, step)) for step in (6, 5, 3, 1)] == [True, True, False, False]
    load_model(checkpoint_folder(tmp_path, 3), nn.Linear(3, 2))


def test_training_may_change_the_model_while_its_checkpoint_is_written(
    tmp_path: Path, save_step: Save, gate: threading.Event, model: nn.Module, optimizer: torch.optim.Optimizer
) -> None:
    before = [parameter.detach().clone() for parameter in model.parameters()]
    with CheckpointWriter(tmp_path, keep=2, background=True) as writer:
        save_step(writer, 4)
        assert steps_in(tmp_path) == []
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(1.0)
        gate.set()
    loaded = load_checkpoint(checkpoint_folder(tmp_path, 4), model, optimizer)
    assert (loaded.position, loaded.metrics, loaded.extra) == (Position(4, 40), "4\n", {"scale": SCALE})
    assert all(torch.equal(*pair) for pair in zip(before, model.parameters(), strict=True))


def test_a_checkpoint_waits_for_the_one_before_it(tmp_path: Path, save_step: Save, gate: threading.Event) -> None:
    with CheckpointWriter(tmp_path, keep=2, background=True) as writer:
        save_step(writer, 1)
        second = threading.Thread(target=save_step, args=(writer, 2))
        second.start()
        time.sleep(0.1)
        assert second.is_alive()
        gate.set()
        second.join(60)
        assert 1 in steps_in(tmp_path)
    assert steps_in(tmp_path) == [2, 1]


def break_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Path:
        raise CheckpointError("the checkpoint cannot be written: the disk is full")

    monkeypatch.setattr(checkpoint_writer, "save_checkpoint", fail)


def test_a_failure_in_the_background_is_raised_once_by_the_next_save_and_costs_no_older_checkpoint(
    tmp_path: Path, save_step: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = CheckpointWriter(tmp_path, keep=1, background=True)
    save_step(writer, 1)
    writer.wait()
    with monkeypatch.context() as patch:
        break_disk(patch)
        save_step(writer, 2)
        with pytest.raises(CheckpointError, match="disk is full"):
            save_step(writer, 3)
    assert steps_in(tmp_path) == [1]
    save_step(writer, 4)
    writer.close()
    assert steps_in(tmp_path) == [4]


@pytest.mark.parametrize("background", [False, True])
def test_a_last_checkpoint_that_cannot_be_written_is_no_success(
    tmp_path: Path, save_step: Save, monkeypatch: pytest.MonkeyPatch, background: bool
) -> None:
    break_disk(monkeypatch)
    with (
        pytest.raises(CheckpointError, match="disk is full"),
        CheckpointWriter(tmp_path, 1, (), background) as writer,
    ):
        save_step(writer, 2)


def test_what_ended_training_is_not_hidden_by_a_failed_checkpoint(
    tmp_path: Path, save_step: Save, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    break_disk(monkeypatch)
    with pytest.raises(ZeroDivisionError), CheckpointWriter(tmp_path, 1, (), True) as writer:
        save_step(writer, 2)
        raise ZeroDivisionError
    assert capsys.readouterr().err == "warning: the checkpoint cannot be written: the disk is full\n"


@pytest.mark.usefixtures("single_process")
def test_a_run_that_continues_another_after_step_5_needs_its_own_milestones_alone(
    tmp_path: Path, save_step: Save, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoints = RunCheckpoints(tmp_path, SINGLE_PROCESS, RuntimeSettings(), required=[5])
    assert checkpoints.last() == "there is no checkpoint yet"
    with CheckpointWriter(tmp_path, keep=9) as writer:
        for step in (8, 10):
            save_step(writer, step)
    assert checkpoints.last() == f"the last good checkpoint is {checkpoint_folder(tmp_path, 10)}"
    assert checkpoints.newest(after=5) == checkpoint_folder(tmp_path, 10)
    assert checkpoints.newest(after=4) is None and not checkpoint_folders(tmp_path)
    assert "training goes back to the beginning to make the milestone of step 5 again" in capsys.readouterr().err
