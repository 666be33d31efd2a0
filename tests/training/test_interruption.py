"""Signals and the time limit request a stop during training, and only then.

The deadline is the sooner of the settings' limit and the end of the Slurm job, less the grace time.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from hatchery.errors import ConfigError
from hatchery.training import run_parts
from hatchery.training.interruption import (
    EXIT_STATUS_INTERRUPTED,
    RECENT_STEPS,
    Deadline,
    StopRequest,
    ask_queue,
)
from hatchery.training.run_parts import RunParts
from hatchery.training.runtime_settings import RuntimeSettings
from hatchery.training.topology import Topology

FOLDER = Path("runs/1234")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGINT])
def test_the_first_signal_is_noted_and_the_old_handler_comes_back(number: signal.Signals) -> None:
    former = signal.getsignal(number)
    with StopRequest() as request:
        assert not request.is_made
        os.kill(os.getpid(), number)
        assert request.is_made and request.signal_name == number.name
    assert signal.getsignal(number) == former


def test_a_second_ctrl_c_would_end_the_process_but_slurm_may_send_sigterm_again() -> None:
    with StopRequest() as request:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        assert request.is_made
        os.kill(os.getpid(), signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) == signal.SIG_DFL


def test_another_attempt_that_asks_for_the_run_folder_is_a_request_to_stop() -> None:
    wanted = [False]
    with StopRequest(is_claimed=lambda: wanted[0]) as request:
        assert not request.is_made
        wanted[0] = True
        assert request.is_made
    assert "another attempt of the same job" in str(request.interruption(1, 2, FOLDER))


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Frozen clocks: `monotonic()` returns `clocks[0]`, which begins at 500, and `time()` 1,000,000 more."""
    now = [500.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "time", lambda: now[0] + 1_000_000.0)
    return now


@pytest.fixture
def clock(clocks: list[float]) -> list[float]:
    """The frozen clocks, beginning at 1000."""
    clocks[0] = 1000.0
    return clocks


def test_without_a_signal_or_a_deadline_nothing_stops(clock: list[float]) -> None:
    request = StopRequest()
    clock[0] += 1e9
    assert not request.is_made


def test_training_stops_while_the_longest_recent_step_still_fits_before_the_grace_time(clock: list[float]) -> None:
    request = StopRequest(Deadline(at=2000.0, grace_seconds=100.0))
    asked = []
    for seconds in (10.0, 40.0, *[10.0] * 90):
        # Ask in the middle of a step, as the loop does.
        clock[0] += seconds / 2
        asked.append((clock[0], request.is_made))
        clock[0] += seconds / 2
        request.step_finished()
        if asked[-1][1]:
            break
    # If the next step took 40 seconds, the question after 1865 would come only at 1905, inside the grace time.
    assert asked[-2:] == [(1855.0, False), (1865.0, True)]


def test_where_processes_agree_at_intervals_the_steps_until_then_are_reckoned_with(clock: list[float]) -> None:
    request = StopRequest(Deadline(at=2000.0, grace_seconds=100.0), steps_until_heeded=20)
    for _ in range(69):
        clock[0] += 10.0
        request.step_finished()
        assert not request.is_made
    # At 1690, twenty more steps would end at 1890, ten seconds before the grace time; at 1710, during the grace time.
    clock[0] += 20.0
    assert request.is_made


def test_a_slow_first_step_is_forgotten(clock: list[float]) -> None:
    request = StopRequest(Deadline(at=2000.0, grace_seconds=0.0))
    for seconds in (500.0, *[1.0] * RECENT_STEPS):
        clock[0] += seconds
        request.step_finished()
    assert clock[0] == 1600.0 and not request.is_made


def test_a_request_for_the_time_limit_stays_when_steps_become_shorter(clock: list[float]) -> None:
    request = StopRequest(Deadline(at=2000.0, grace_seconds=0.0))
    clock[0] += 600.0
    request.step_finished()
    assert request.is_made
    for _ in range(RECENT_STEPS):
        request.step_finished()
    assert request.is_made


def test_the_message_names_the_reason_the_step_and_the_way_on(clock: list[float]) -> None:
    by_signal, by_limit = StopRequest(), StopRequest(Deadline(at=1000.0, grace_seconds=1.0))
    by_signal.signal_name = "SIGTERM"
    assert by_limit.is_made
    messages = [str(request.interruption(7, 40, FOLDER)) for request in (by_signal, by_limit, StopRequest())]
    for message, reason in zip(messages, ("SIGTERM", "the time limit", "another process"), strict=True):
        assert reason in message and "\n" not in message
        assert f"step 7 of 40; a checkpoint is saved in {FOLDER}: run the same command again" in message


def test_a_signal_in_a_callback_of_an_import_ends_the_process(tmp_path: Path) -> None:
    # Python ignores exceptions in callbacks of weak references, and import locks have such callbacks.
    (tmp_path / "imported.py").write_text(
        "import os, signal, time, weakref\n"
        "class Lock: pass\n"
        "lock = Lock()\n"
        "reference = weakref.ref(lock, lambda _: os.kill(os.getpid(), signal.SIGTERM))\n"
        "del lock\n"
        "time.sleep(60)\n"
    )
    program = "from hatchery.training.interruption import leave_on_signals; leave_on_signals(); import imported"
    path = os.pathsep.join([str(tmp_path), *sys.path])
    process = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert process.returncode == EXIT_STATUS_INTERRUPTED
    assert process.stderr == "stopped by SIGTERM before or after training; run the same command again to continue\n"


SLURM = {"SLURM_JOB_END_TIME": "1000900"}


@pytest.mark.usefixtures("clocks")
@pytest.mark.parametrize(
    ("environment", "minutes", "deadline"),
    [
        ({}, None, None),
        # The limit counts from the start, and Slurm gives the end as wall-clock time; the sooner of both counts.
        ({}, 10.0, Deadline(at=1100.0, grace_seconds=60.0)),
        (SLURM, None, Deadline(900.0, 60.0)),
        (SLURM, 5.0, Deadline(800.0, 60.0)),
        (SLURM, 50.0, Deadline(900.0, 60.0)),
    ],
)
def test_the_deadline_is_the_sooner_of_the_limit_and_the_end_of_the_job(
    environment: dict[str, str], minutes: float | None, deadline: Deadline | None
) -> None:
    assert Deadline.from_environment(environment, minutes, 60.0) == deadline


def test_one_more_step_has_to_end_before_the_grace_time_begins(clocks: list[float]) -> None:
    deadline = Deadline(at=600.0, grace_seconds=30.0)
    assert deadline.remaining_seconds() == 100.0
    assert not deadline.is_near(70.0)
    assert deadline.is_near(70.5)
    clocks[0] = 590.0
    assert deadline.is_near(0.0)
    clocks[0] = 601.0
    assert deadline.is_near(0.0) and deadline.remaining_seconds() == -1.0


@pytest.mark.usefixtures("clocks")
def test_a_job_that_is_past_its_end_is_near_at_once() -> None:
    deadline = Deadline.from_environment({"SLURM_JOB_END_TIME": "1000400"}, None, 0.0)
    assert deadline is not None and deadline.is_near(0.0)


@pytest.mark.parametrize("end", ["", "soon", "-5", "12.5", "1" * 13])
def test_an_end_that_is_no_time_is_refused_by_name(end: str) -> None:
    with pytest.raises(ConfigError, match="SLURM_JOB_END_TIME"):
        Deadline.from_environment({"SLURM_JOB_END_TIME": end}, None, 60.0)


@pytest.mark.usefixtures("clocks")
def test_older_slurm_is_asked_for_what_is_left_of_the_job() -> None:
    asked = []

    def time_left(job: str) -> str:
        asked.append(job)
        return "6:40"

    assert Deadline.from_environment({"SLURM_JOB_ID": "7"}, None, 60.0, time_left) == Deadline(900.0, 60.0)
    newer = {"SLURM_JOB_ID": "7", "SLURM_JOB_END_TIME": "1000700"}
    assert Deadline.from_environment(newer, None, 10.0, time_left) == Deadline(700.0, 10.0)
    assert asked == ["7"]


@pytest.mark.parametrize("answer", [None, "UNLIMITED", "NOT_SET", "INVALID", ""])
def test_a_job_whose_end_slurm_does_not_tell_has_no_deadline(answer: str | None) -> None:
    assert Deadline.from_environment({"SLURM_JOB_ID": "7"}, None, 60.0, lambda job: answer) is None


@pytest.mark.usefixtures("clocks")
def test_of_a_short_slurm_job_the_grace_time_leaves_most_for_training() -> None:
    deadline = Deadline.from_environment({"SLURM_JOB_ID": "7"}, None, 120.0, lambda job: "1:40")
    assert deadline == Deadline(600.0, 25.0)


def test_without_slurms_commands_nothing_is_left_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert ask_queue("7") is None


@pytest.mark.parametrize("minutes", [0.5, 1.0])
def test_a_limit_that_leaves_no_time_to_train_is_refused(minutes: float) -> None:
    with pytest.raises(ConfigError, match=r"runtime\.time_limit_minutes.*grace"):
        Deadline.from_environment({}, minutes, 60.0)


@pytest.mark.parametrize(
    ("rank", "processes", "device", "limit", "heeded"),
    [(0, 1, "cuda", 5.0, 1), (0, 2, "cpu", 5.0, 1), (0, 2, "cuda", 5.0, 7), (1, 2, "cuda", None, 7)],
)
def test_the_first_process_has_the_time_limit_and_several_gpus_heed_it_at_their_readings(
    monkeypatch: pytest.MonkeyPatch, rank: int, processes: int, device: str, limit: float | None, heeded: int
) -> None:
    monkeypatch.setattr(Deadline, "from_environment", lambda environment, minutes, grace: (minutes, grace))
    monkeypatch.setattr(run_parts, "StopRequest", lambda *given: given)
    options = RuntimeSettings(log_interval_steps=7, time_limit_minutes=5.0, grace_seconds=9.0)
    parts: Any = SimpleNamespace(options=options, topology=Topology(rank, processes, 0, "a", 1))
    lease: Any = SimpleNamespace(is_claimed=True)
    found: Any = RunParts.stop_request(parts, torch.device(device), lease)
    assert found[:2] == (None if limit is None else (5.0, 9.0), heeded) and found[2]()
    assert not RunParts.stop_request(parts, torch.device(device), None)[2]()  # type: ignore[index]
