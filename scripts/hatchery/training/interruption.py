"""A clean stop: after a signal or at a time limit, a run finishes the current step and saves a checkpoint.

The signals are SIGTERM (Slurm's time limit or preemption), SIGUSR1 (`sbatch --signal=USR1@300`) and Ctrl-C. The command
then exits with status 75 (`EX_TEMPFAIL`). Snakemake treats this status as a failure, and repeats the job (`retries`);
the same command continues from the checkpoint. A second Ctrl-C ends the process at once. A second SIGTERM does not end
the process, because Slurm may send several SIGTERM signals while the checkpoint is being written.

The time limit is the end of the Slurm job or the limit in the settings, whichever is earlier. A run that stops before
the limit loses no steps; a run that Slurm kills loses the steps since its last checkpoint. The end of the Slurm job is
read from an environment variable of newer Slurm versions, or from Slurm's queue (`squeue`). The training loop makes all
processes stop after the same step.
"""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Self

from hatchery.errors import ConfigError
from hatchery.units import seconds_of

# Status EX_TEMPFAIL of sysexits.h: the run is not finished; the same command continues it.
EXIT_STATUS_INTERRUPTED = 75
SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)
# Number of recent steps; the duration of the longest of these steps predicts the duration of the next step. 100 steps
# are enough to contain slow steps. After 100 steps, the first step, in which kernels are compiled, no longer counts.
RECENT_STEPS = 100
SLURM_END, SLURM_JOB = "SLURM_JOB_END_TIME", "SLURM_JOB_ID"
# Maximum grace time, as a share of a Slurm job's remaining time. Without this maximum, a short job would stop after one
# step.
LARGEST_GRACE = 0.25
QUEUE_TIMEOUT_SECONDS = 60


def ask_queue(job: str) -> str | None:
    """Return a Slurm job's remaining time, such as `1-02:03:04`, from Slurm's queue; None if the query fails."""
    command = ["squeue", "--noheader", "--jobs", job, "--format", "%L"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=QUEUE_TIMEOUT_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()


@dataclass(frozen=True)
class Deadline:
    """A time limit: the time `at` on the clock `time.monotonic()`, and the number of seconds before `at` that are
    reserved for stopping.
    """

    at: float
    grace_seconds: float

    @classmethod
    def from_environment(
        cls,
        environment: Mapping[str, str],
        time_limit_minutes: float | None,
        grace_seconds: float,
        time_left: Callable[[str], str | None] = ask_queue,
    ) -> Self | None:
        """Return the earlier of two limits, the time limit of the settings and the end of the Slurm job; None if there
        is neither limit.

        The end of the Slurm job is SLURM_JOB_END_TIME (seconds since 1970). Without this variable, the end is the
        current time plus `time_left(job id)`. Later changes of Slurm's time limit have no effect. `grace_seconds` is
        the time reserved for stopping before the limit. If the limit is the end of a Slurm job, at most `LARGEST_GRACE`
        times the job's remaining time is reserved. Raises ConfigError for an invalid value.
        """
        remaining: list[tuple[float, float]] = []
        if time_limit_minutes is not None:
            # If the grace time were not shorter than the time limit, every attempt would stop after one step.
            if grace_seconds >= 60 * time_limit_minutes:
                raise ConfigError(
                    f"runtime.time_limit_minutes: got {time_limit_minutes!r}, expected more than the grace time "
                    f"(runtime.grace_seconds: {grace_seconds!r})"
                )
            remaining.append((60 * time_limit_minutes, grace_seconds))
        left = _left_of_slurm_job(environment, time_left)
        if left is not None:
            remaining.append((left, min(grace_seconds, max(0.0, LARGEST_GRACE * left))))
        if not remaining:
            return None
        seconds, grace = min(remaining)
        return cls(time.monotonic() + seconds, grace)

    def is_near(self, step_seconds: float) -> bool:
        """Return whether another step of `step_seconds` seconds would end within the grace time before the limit."""
        return self.remaining_seconds() - step_seconds < self.grace_seconds

    def remaining_seconds(self) -> float:
        """Return the number of seconds until the limit; negative after the limit."""
        return self.at - time.monotonic()


def _left_of_slurm_job(environment: Mapping[str, str], time_left: Callable[[str], str | None]) -> float | None:
    if SLURM_END in environment:
        end = environment[SLURM_END]
        if not re.fullmatch(r"\d{1,12}", end):
            raise ConfigError(f"environment: {SLURM_END} is {end!r}, expected seconds since 1970")
        return int(end) - time.time()
    if SLURM_JOB not in environment:
        return None
    left = time_left(environment[SLURM_JOB])
    return None if left is None else seconds_of(left)


def leave_on_signals() -> None:
    """Install signal handlers that end the process with a message and the exit status of an interrupted run.

    These handlers are active before training, while libraries are imported and the model is built, and after training.
    During training, `StopRequest` handles signals. A handler raises SystemExit, which `except Exception` does not
    catch. While a library is imported, the handler ends the process without an exception.
    """

    def leave(number: int, frame: FrameType | None) -> None:
        name = signal.Signals(number).name
        print(
            f"stopped by {name} before or after training; run the same command again to continue",
            file=sys.stderr,
            flush=True,
        )
        # Raise no exception during an import: imports run callbacks of weak references, in which Python ignores
        # exceptions.
        if _is_importing(frame):
            os._exit(EXIT_STATUS_INTERRUPTED)
        sys.exit(EXIT_STATUS_INTERRUPTED)

    for number in SIGNALS:
        signal.signal(number, leave)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


class TrainingInterrupted(Exception):  # noqa: N818 - not an error: the run can continue
    """Training was stopped on request and has saved a checkpoint; the message explains how to continue."""


class StopRequest:
    """A request to stop this process, by a signal, by the time limit, or by another attempt of the same job.

    The context manager handles signals in its `with` block, and restores the former handlers at the end of the block.
    """

    def __init__(
        self,
        deadline: Deadline | None = None,
        steps_until_heeded: int = 1,
        is_claimed: Callable[[], bool] = lambda: False,
    ) -> None:
        """Without `deadline`, there is no time limit.

        `steps_until_heeded` is the maximum number of steps between a request and the stop of the training loop. It
        exceeds 1 if several processes exchange their requests only at intervals of steps. `is_claimed` returns whether
        another attempt of the same job needs the run folder.
        """
        self.signal_name: str | None = None
        self._former_handlers: dict[signal.Signals, Any] = {}
        self._is_claimed = is_claimed
        self._deadline, self._limit_is_near = deadline, False
        self._steps_until_heeded = steps_until_heeded
        self._step_seconds: deque[float] = deque([0.0], maxlen=max(RECENT_STEPS, steps_until_heeded))
        self._step_began = time.monotonic()

    def __enter__(self) -> Self:
        # Python handles signals only in the main thread. In another thread, training does not react to signals.
        if threading.current_thread() is threading.main_thread():
            self._former_handlers = {number: signal.signal(number, self._note) for number in SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._former_handlers.items():
            signal.signal(number, handler)

    @property
    def is_made(self) -> bool:
        """True if the run must stop after the current step. Read this property once per step, before `step_finished`.

        A request cannot be withdrawn.
        """
        if self._deadline is not None and self._deadline.is_near(self._expected_seconds()):
            self._limit_is_near = True
        return self.signal_name is not None or self._limit_is_near or self._is_claimed()

    def step_finished(self) -> None:
        """Record the end of a step, which includes the step's evaluation and checkpoint. The longest of the recent
        steps predicts the duration of the next step.
        """
        now = time.monotonic()
        self._step_seconds.append(now - self._step_began)
        self._step_began = now

    def interruption(self, step: int, steps: int, run_folder: Path) -> TrainingInterrupted:
        """Return the exception to raise after the checkpoint of `step` (of `steps` steps) is saved in `run_folder`."""
        if self.signal_name is not None:
            reason = self.signal_name
        elif self._limit_is_near:
            reason = "the time limit"
        elif self._is_claimed():
            reason = "another attempt of the same job"
        else:
            reason = "a signal or the time limit of another process"
        return TrainingInterrupted(
            f"stopped by {reason} after step {step} of {steps}; a checkpoint is saved in {run_folder}: "
            "run the same command again to continue"
        )

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.signal_name = signal.Signals(number).name
        if number == signal.SIGINT:
            signal.signal(number, signal.SIG_DFL)

    def _expected_seconds(self) -> float:
        """Return the estimated seconds until the training loop would act on a request made in the next step."""
        return max(*self._step_seconds, sum(list(self._step_seconds)[-self._steps_until_heeded :]))
