"""Ten kills of one run, some during checkpoint writing, change no bit of the result.

The command is started again with the same arguments after every kill. To hit the writing of a checkpoint for certain,
the process is stopped when a partial folder appears, and killed only if the folder still exists. Between two kills the
newest checkpoint is truncated or changed, so that the run must resume from the previous checkpoint.
"""

import json
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hatchery.training.checkpoints import MODEL, OPTIMIZER, checkpoint_folders, checkpoint_step
from hatchery.training.interruption import EXIT_STATUS_INTERRUPTED
from hatchery.training.run_folder import locked_run_folder, remove_run_folder
from hatchery.training.telemetry import SECONDS, SPEED_FILE

Make = Callable[..., Any]

# There is one kill in every five steps, and none in the last steps.
STEPS, KILLS, STEPS_PER_KILL = 70, 10, 5
# Every step writes a checkpoint, so a tiny run spends about half of its time on writing.
RUNTIME = {
    "checkpoint_interval_steps": 1,
    "keep_checkpoints": 3,
    "background_checkpoints": True,
    "log_interval_steps": 1,
}


def kill_when_it_writes(command: Any, process: subprocess.Popen[str], number: signal.Signals) -> None:
    """Send the signal while a checkpoint is half written."""
    deadline = time.monotonic() + 60
    while True:
        assert process.poll() is None and time.monotonic() < deadline, "never met the writing of a checkpoint"
        if not partial_folders(command.run_folder):
            continue
        process.send_signal(signal.SIGSTOP)
        # SIGSTOP takes effect when the current system call returns.
        time.sleep(0.01)
        if partial_folders(command.run_folder):
            process.send_signal(number)
            process.send_signal(signal.SIGCONT)
            return
        process.send_signal(signal.SIGCONT)


def partial_folders(run_folder: Path) -> list[Path]:
    return list(run_folder.glob(".step_*.partial"))


def damage_newest(run_folder: Path, kind: str) -> Path:
    """Truncate or change a file of the newest checkpoint; return the checkpoint from which training must resume."""
    newest, older = checkpoint_folders(run_folder)[:2]
    path = newest / (MODEL if kind == "truncated" else OPTIMIZER)
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content[: len(content) // 2] if kind == "truncated" else content)
    return older


@pytest.mark.slow
def test_ten_kills_and_two_damaged_checkpoints_do_not_change_one_bit(make_command: Make) -> None:
    uninterrupted, command, rng = make_command(steps=STEPS), make_command(RUNTIME, steps=STEPS), random.Random(6)
    uninterrupted.finish()

    numbers = [signal.SIGKILL, signal.SIGTERM] * (KILLS // 2)
    during_writing = [False] * (KILLS // 2) + [True] * (KILLS // 2)
    rng.shuffle(numbers)
    rng.shuffle(during_writing)
    damages = {3: "truncated", 6: "tampered"}
    half_written, expected_step, seconds = 0, None, [0.0]
    for kill, (number, in_writing) in enumerate(zip(numbers, during_writing, strict=True)):
        wanted = STEPS_PER_KILL * kill + rng.randint(1, STEPS_PER_KILL)
        # This attempt must finish at least one step, because the metrics file still contains the steps of the previous
        # attempt.
        wanted = max(wanted, command.finished_steps() + 1)
        process = command.start()
        command.wait_for_step(process, wanted)
        if in_writing:
            kill_when_it_writes(command, process, number)
        else:
            time.sleep(rng.random() * 0.03)
            process.send_signal(number)
        _, err = process.communicate(timeout=60)
        assert "Traceback" not in err and not command.output.exists()
        assert process.returncode == (-signal.SIGKILL if number == signal.SIGKILL else EXIT_STATUS_INTERRUPTED), err
        if expected_step is not None:
            assert err.count("the previous checkpoint is used") == 1
            assert f"continues after step {expected_step:,} " in err
        if number == signal.SIGTERM:
            # The last step is saved, the pending write has finished, and the last line says how to go on.
            assert "SIGTERM" in err.splitlines()[-1] and "run the same command again" in err.splitlines()[-1]
            assert checkpoint_step(checkpoint_folders(command.run_folder)[0]) == command.finished_steps()
            assert not partial_folders(command.run_folder)
        elif in_writing:
            half_written += len(partial_folders(command.run_folder))
        told = (command.run_folder / SPEED_FILE).read_text(encoding="utf-8").splitlines()
        seconds.append(json.loads(told[-1])[SECONDS])
        expected_step = None
        if kill in damages:
            expected_step = checkpoint_step(damage_newest(command.run_folder, damages[kill]))
    log = command.finish()
    assert half_written >= 1
    assert "continues after step" in log
    assert command.digests() == uninterrupted.digests()
    # The time is that of all attempts, not only of the last attempt.
    assert all(earlier < later for earlier, later in pairwise(seconds))
    assert command.provenance()[SECONDS] > seconds[-1]


@pytest.mark.slow
@pytest.mark.parametrize("then", ["killed", "continued"])
def test_a_damaged_milestone_is_made_again_when_the_run_goes_on(make_command: Make, then: str) -> None:
    whole, command = (make_command({"checkpoint_interval_steps": 1}, milestones=[10]) for _ in range(2))
    whole.finish()
    process = command.start()
    command.wait_for_step(process, 14)
    process.send_signal(signal.SIGSTOP)
    path = command.run_folder / "step_00000010" / MODEL
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    process.send_signal(signal.SIGKILL if then == "killed" else signal.SIGCONT)
    told = f"{path}: the content differs from its checksum"
    assert (told in process.communicate(timeout=60)[1]) == (then == "continued")
    assert f"warning: {told}; training goes back to the beginning to make the milestone of step " in command.finish()
    assert command.digests() == whole.digests()


@pytest.mark.slow
def test_a_signal_to_one_process_stops_both_and_one_process_goes_on(make_command: Make) -> None:
    changing = make_command(RUNTIME)
    both = changing.start_processes(2)
    changing.wait_for_step(both[0], 15)
    # Only the second process gets the signal; the first process has to learn of it.
    both[1].terminate()
    errors = [process.communicate(timeout=60)[1] for process in both]
    assert [process.returncode for process in both] == [EXIT_STATUS_INTERRUPTED] * 2, errors
    assert "of another process" in errors[0] and "SIGTERM" in errors[1]
    assert f"continues after step {changing.finished_steps()} " in changing.finish()


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGINT])
def test_a_signal_while_libraries_are_imported_is_one_line_and_not_lost(
    number: signal.Signals, make_command: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = make_command(steps=100_000, long=None)
    # Start a new process, because a forked process has already imported everything.
    monkeypatch.setitem(command.start.__func__.__globals__, "Forked", subprocess.Popen)
    process = command.start()
    heeded = 0
    # Python itself handles SIGINT from the start; the command installs all of its handlers together.
    while not heeded >> (signal.SIGUSR1 - 1) & 1:
        assert process.poll() is None
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
        heeded = int(status.partition("SigCgt:")[2].split()[0], 16)
    time.sleep(0.05)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == EXIT_STATUS_INTERRUPTED, err
    assert err == f"stopped by {number.name} before or after training; run the same command again to continue\n"


def test_shards_that_change_while_they_are_read_end_the_training_before_a_checkpoint_has_seen_them(
    make_command: Make, tmp_path: Path
) -> None:
    command = make_command({"checkpoint_interval_steps": 10, "workers": 0}, steps=100_000, long=None)
    command.tokens = shutil.copytree(command.tokens.parent, tmp_path / "tokens") / "manifest.json"
    shard = min(command.tokens.parent.glob("train-*.arrow"))
    process = command.start()
    command.wait_for_step(process, 1)
    with shard.open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"x")
    _, err = process.communicate(timeout=120)
    saved = {checkpoint_step(folder) for folder in checkpoint_folders(command.run_folder)}
    assert process.returncode == 1 and "Traceback" not in err
    assert f"error: {shard}: was changed while it was being read" in err.splitlines()[-1]
    assert max(saved, default=0) < command.finished_steps()


def test_a_tokenizer_that_changes_during_the_training_does_not_come_with_a_finished_model(
    make_command: Make, tmp_path: Path
) -> None:
    command = make_command({"workers": 0}, steps=200, long=None)
    command.tokenizer = shutil.copytree(command.tokenizer.parent, tmp_path / "tokenizer") / "manifest.json"
    file = command.tokenizer.with_name("tokenizer.json")
    process = command.start()
    command.wait_for_step(process, 1)
    file.write_text(file.read_text("utf-8") + " ", encoding="utf-8")
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1 and f"error: {file}: has " in err.splitlines()[-1]
    # No copy of the manifest may remain either, because another attempt would use it.
    assert not command.output.exists() and not command.output.with_name("finished.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize("told_by", ["Slurm", "the settings"])
def test_before_the_time_limit_training_stops_by_itself_and_goes_on_with_the_next_attempt(
    make_command: Make, told_by: str
) -> None:
    limit = {"grace_seconds": 5.0} if told_by == "Slurm" else {"time_limit_minutes": 0.1, "grace_seconds": 1.0}
    command = make_command(limit, steps=100_000, long=None)
    # The job ends after the configured grace time, so training must shorten the grace time.
    process = command.start(**({"SLURM_JOB_END_TIME": str(int(time.time()) + 5)} if told_by == "Slurm" else {}))
    _, err = process.communicate(timeout=120)
    assert process.returncode == EXIT_STATUS_INTERRUPTED, err
    message = err.splitlines()[-1]
    assert "the time limit" in message and "run the same command again" in message
    first = command.finished_steps()
    assert checkpoint_step(checkpoint_folders(command.run_folder)[0]) == first > 0
    command.runtime["time_limit_minutes"] = None
    process = command.start()
    command.wait_for_step(process, first + 1)
    process.terminate()
    assert f"continues after step {first} " in process.communicate(timeout=60)[1]


def test_a_kill_while_a_finished_run_is_removed_leaves_no_checkpoint_for_a_run_that_starts_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    (folder / "step_00000040").mkdir(parents=True)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda *_, **__: None)
        remove_run_folder(folder)
    assert not folder.exists() and len(list(tmp_path.iterdir())) == 1
    with locked_run_folder(folder):
        assert checkpoint_folders(folder) == []
    assert list(tmp_path.iterdir()) == [folder]
