"""Checkpoints come back bit for bit, damaged ones are passed over, and only the newest are kept."""

from pathlib import Path

import pytest
import torch
from torch import nn

from hatchery.errors import CheckpointError
from hatchery.pretraining.checkpoints import (
    CHECKSUMS,
    METRICS,
    MODEL,
    OPTIMIZER,
    STATE,
    Position,
    checkpoint_folders,
    load_checkpoint,
    newest_sound_checkpoint,
    prune_checkpoints,
    save_checkpoint,
    verify_checkpoint,
)
from hatchery.pretraining.lamb import Lamb


def make(kind: str = "lamb", seed: int = 0) -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(5, 4), nn.Linear(4, 3))
    if kind == "lamb":
        return model, Lamb(model.parameters(), lr=0.01)
    return model, torch.optim.AdamW(model.parameters(), lr=0.01)


def advance(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> None:
    for step in range(steps):
        for parameter in model.parameters():
            parameter.grad = torch.cos(torch.arange(float(parameter.numel())) + step).reshape(parameter.shape)
        optimizer.step()


@pytest.mark.parametrize("kind", ["lamb", "adamw"])
def test_training_goes_on_from_a_checkpoint_bit_for_bit(tmp_path: Path, kind: str) -> None:
    model, optimizer = make(kind)
    advance(model, optimizer, 3)
    folder = save_checkpoint(tmp_path, Position(3, 99), model, optimizer, '{"step": 3}\n')
    advance(model, optimizer, 4)

    other, other_optimizer = make(kind, seed=1)
    assert load_checkpoint(folder, other, other_optimizer) == (Position(3, 99), '{"step": 3}\n')
    advance(other, other_optimizer, 4)
    for expected, actual in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(expected, actual)


@pytest.mark.parametrize("name", [MODEL, OPTIMIZER, METRICS, STATE, CHECKSUMS])
@pytest.mark.parametrize("damage", ["flip", "truncate", "remove"])
def test_a_damaged_newest_checkpoint_falls_back_to_the_one_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, damage: str
) -> None:
    model, optimizer = make()
    advance(model, optimizer, 1)
    older = save_checkpoint(tmp_path, Position(1, 1), model, optimizer, "one\n")
    newer = save_checkpoint(tmp_path, Position(2, 2), model, optimizer, "two\n")
    path = newer / name
    content = bytearray(path.read_bytes())
    if damage == "flip":
        content[len(content) // 2] ^= 0x55
        path.write_bytes(content)
    elif damage == "truncate":
        path.write_bytes(content[: len(content) // 2])
    else:
        path.unlink()
    assert newest_sound_checkpoint(tmp_path) == older
    warning = capsys.readouterr().err
    assert warning.count("\n") == 1 and name in warning and "going back" in warning
    # A damaged later checkpoint would otherwise push sound ones out of the newest that are kept.
    assert checkpoint_folders(tmp_path) == [older]


def test_no_sound_checkpoint_means_training_from_the_start(tmp_path: Path) -> None:
    assert newest_sound_checkpoint(tmp_path) is None
    model, optimizer = make()
    folder = save_checkpoint(tmp_path, Position(1, 1), model, optimizer, "")
    (folder / MODEL).write_bytes(b"")
    assert newest_sound_checkpoint(tmp_path) is None


def test_a_checkpoint_that_was_being_written_at_a_kill_is_ignored_and_cleared(tmp_path: Path) -> None:
    partial = tmp_path / ".step_00000007.partial"
    partial.mkdir()
    (partial / MODEL).write_bytes(b"half")
    assert newest_sound_checkpoint(tmp_path) is None
    assert not partial.exists()


def test_only_the_newest_checkpoints_are_kept_also_beyond_eight_digits(tmp_path: Path) -> None:
    model, optimizer = make()
    for step in (5, 99_999_999, 100_000_000):
        save_checkpoint(tmp_path, Position(step, 0), model, optimizer, "")
    prune_checkpoints(tmp_path, 2)
    assert [folder.name for folder in checkpoint_folders(tmp_path)] == ["step_100000000", "step_99999999"]


def test_a_checkpoint_of_another_model_is_refused_by_name(tmp_path: Path) -> None:
    model, optimizer = make()
    advance(model, optimizer, 1)
    folder = save_checkpoint(tmp_path, Position(1, 1), model, optimizer, "")
    other = nn.Sequential(nn.Linear(5, 4), nn.Linear(4, 2))
    with pytest.raises(CheckpointError, match="names or shapes"):
        load_checkpoint(folder, other, Lamb(other.parameters(), lr=0.1))


def test_a_checkpoint_that_cannot_be_written_ends_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    model, optimizer = make()
    with pytest.raises(CheckpointError, match="cannot be written"):
        save_checkpoint(tmp_path / "file", Position(1, 1), model, optimizer, "")


def test_verification_names_the_changed_file(tmp_path: Path) -> None:
    model, optimizer = make()
    folder = save_checkpoint(tmp_path, Position(1, 1), model, optimizer, "text\n")
    verify_checkpoint(folder)
    (folder / METRICS).write_text("other\n")
    with pytest.raises(CheckpointError, match=METRICS):
        verify_checkpoint(folder)
