"""Signals and the time limit are collected during training, and only then."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hatchery.training.interruption import (
    EXIT_STATUS_INTERRUPTED,
    RECENT_STEPS,
    Deadline,
    StopRequest,
    stop_request,
)

FOLDER = Path("runs/1234")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGINT])
def test_the_first_signal_is_noted_and_the_old_handler_comes_back(number: signal.Signals) -> None:
    former = signal.getsignal(number)
    with stop_request() as request:
        assert not request.is_made
        os.kill(os.getpid(), number)
        assert request.is_made and request.signal_name == number.name
    assert signal.getsignal(number) == former


def test_a_second_ctrl_c_would_end_the_process_but_slurm_may_send_sigterm_again() -> None:
    with stop_request() as request:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        assert request.is_made
        os.kill(os.getpid(), signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) == signal.SIG_DFL


def test_another_attempt_that_asks_for_the_run_folder_is_a_request_to_stop() -> None:
    wanted = [False]
    with stop_request(is_wanted=lambda: wanted[0]) as request:
        assert not request.is_made
        wanted[0] = True
        assert request.is_made
    assert "another attempt of the same job" in str(request.interruption(1, 2, FOLDER))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that stands still: `clock[0]` is what `time.monotonic()` tells."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_without_a_signal_or_a_deadline_nothing_stops(clock: list[float]) -> None:
    request = StopRequest()
    clock[0] += 1e9
    assert not request.is_made


def test_training_stops_while_the_longest_recent_step_still_fits_before_the_grace_time(clock: list[float]) -> None:
    request = StopRequest(Deadline(at=2000.0, grace_seconds=100.0))
    asked = []
    for seconds in (10.0, 40.0, *[10.0] * 90):
        # Asked in the middle of a step, as the loop does.
        clock[0] += seconds / 2
        asked.append((clock[0], request.is_made))
        clock[0] += seconds / 2
        request.step_finished()
        if asked[-1][1]:
            break
    # The question of 1865 would come back only at 1905, inside the grace time, if the next step took 40 seconds.
    assert asked[-2:] == [(1855.0, False), (1865.0, True)]


def test_where_processes_agree_at_intervals_the_steps_until_then_are_reckoned_with(clock: list[float]) -> None:
    request = StopRequest(Deadline(at=2000.0, grace_seconds=100.0), steps_until_heeded=20)
    for _ in range(69):
        clock[0] += 10.0
        request.step_finished()
        assert not request.is_made
    # At 1690 twenty more steps would end at 1890, ten seconds before the grace time; at 1710 they would end in it.
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
    # What a callback of a weak reference raises is ignored, and imports have such callbacks for their locks.
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
    assert process.stderr == "stopped by SIGTERM outside of training; run the same command again to go on\n"
