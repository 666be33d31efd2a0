"""Two processes as Slurm would start them, attempts that share a run folder, and their results.

The variables of a job step are made up; the processes, gloo between them and the kills are real.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hatchery.training.interruption import EXIT_STATUS_INTERRUPTED
from hatchery.training.run_folder import Owner, locked_run_folder
from hatchery.training.topology import FIRST_PORT

Make = Callable[..., Any]

pytestmark = pytest.mark.slow

STEPS = 60
RUNTIME = {"checkpoint_interval_steps": 10}
SECONDS = 300


def free_job() -> int:
    """Return a job number whose first step has a free rendezvous port."""
    for job in range(1000 + os.getpid() % 1000, 2500):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", FIRST_PORT + 4 * job % 10_000))
            except OSError:
                continue
            return job
    raise AssertionError("no port is free")


def start_step(command: Any) -> list[subprocess.Popen[str]]:
    """Start the two tasks of a job step on two nodes whose names cannot be resolved."""
    step = {
        "SLURM_JOB_ID": str(free_job()),
        "SLURM_STEP_ID": "0",
        "SLURM_STEP_NUM_TASKS": "2",
        "SLURM_LOCALID": "0",
        "SLURM_STEP_NODELIST": "nobody[7-8].invalid",
        "SLURM_LAUNCH_NODE_IPADDR": "127.0.0.1",
        # Otherwise the command asks this machine's Slurm, which takes a minute if Slurm is installed but does not run.
        "SLURM_JOB_END_TIME": str(int(time.time()) + 86_400),
    }
    return [command.start(**step, SLURM_PROCID=str(rank)) for rank in range(2)]


def finish(processes: list[subprocess.Popen[str]]) -> list[str]:
    errors = [process.communicate(timeout=SECONDS)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), errors
    return errors


@pytest.fixture(scope="module")
def undisturbed(make_command: Make) -> dict[str, str]:
    """Digests of the output of two undisturbed processes."""
    command = make_command(RUNTIME, steps=STEPS)
    finish(start_step(command))
    return dict(command.digests())


def test_a_killed_process_ends_the_other_with_its_rank_and_the_next_attempt_gives_the_same_bits(
    make_command: Make, undisturbed: dict[str, str]
) -> None:
    command = make_command(RUNTIME, steps=STEPS)
    processes = start_step(command)
    command.wait_for_step(processes[0], 15)
    processes[1].kill()
    # This timeout is far below the time for which a process waits for the other process.
    _, err = processes[0].communicate(timeout=120)
    processes[1].communicate()
    assert processes[0].returncode == 1
    assert re.search(r"^error: process 0 of 2: the other processes are lost: .*see the message", err, re.MULTILINE)
    assert "Traceback" not in err
    log = finish(start_step(command))[0]
    assert "continues after step 10 " in log
    assert command.digests() == undisturbed


def test_signals_that_come_twice_and_to_both_let_them_save(make_command: Make, undisturbed: dict[str, str]) -> None:
    command = make_command(RUNTIME, steps=STEPS)
    processes = start_step(command)
    command.wait_for_step(processes[0], 15)
    for number in (signal.SIGTERM, signal.SIGCONT, signal.SIGTERM):
        for process in processes:
            process.send_signal(number)
    errors = [process.communicate(timeout=SECONDS)[1] for process in processes]
    assert [process.returncode for process in processes] == [EXIT_STATUS_INTERRUPTED] * 2, errors
    stopped = re.search(r"stopped by SIGTERM after step (\d+) of", errors[0])
    assert stopped, errors
    assert f"continues after step {stopped[1]} " in finish(start_step(command))[0]
    assert command.digests() == undisturbed


def test_a_job_that_is_started_again_takes_the_run_over_from_the_one_that_still_trains(
    make_command: Make, undisturbed: dict[str, str]
) -> None:
    command = make_command(RUNTIME, steps=STEPS)
    # On any machine, these steps take longer than the start of the second attempt.
    command.settings["steps"] = 4000
    first = start_step(command)
    command.wait_for_step(first[0], 15)
    second = start_step(command)
    errors = [process.communicate(timeout=SECONDS)[1] for process in first]
    assert [process.returncode for process in first] == [EXIT_STATUS_INTERRUPTED] * 2, errors
    stopped = re.search(r"stopped by another attempt of the same job after step (\d+) of", errors[0])
    assert stopped, errors
    command.wait_for_step(second[0], int(stopped[1]) + 1)
    for process in second:
        process.terminate()
    log, _ = (process.communicate(timeout=SECONDS)[1] for process in second)
    assert f"waiting: another process trains in {command.run_folder}" in log
    assert f"continues after step {stopped[1]} " in log


def test_what_another_attempt_finished_meanwhile_is_taken_as_it_is(
    make_command: Make, undisturbed: dict[str, str]
) -> None:
    finished, waiting = make_command(RUNTIME, steps=STEPS), make_command(RUNTIME, steps=STEPS)
    processes = start_step(finished)
    # The name of the run folder depends on the run alone, but the folder exists only while the run trains.
    finished.wait_for_step(processes[0], 1)
    folder = waiting.checkpoints / Path(finished.run_folder).name
    for process in processes:
        process.kill()
        process.communicate()
    with locked_run_folder(folder, Owner.of_this_process()):
        again = start_step(waiting)
        assert again[0].stderr is not None
        assert "waiting: another process trains" in again[0].stderr.readline()
        finish_elsewhere = make_command(RUNTIME, steps=STEPS)
        finish(start_step(finish_elsewhere))
        shutil.copytree(finish_elsewhere.output.parent, waiting.output.parent)
        before = waiting.output.stat().st_mtime_ns
    errors = finish(again)
    assert "another process, which owned the run folder, has finished this training" in errors[0]
    assert waiting.output.stat().st_mtime_ns == before
    assert waiting.digests() == undisturbed
