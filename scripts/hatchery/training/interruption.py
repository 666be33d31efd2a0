"""A clean stop: after a signal or at a time limit the current step is finished and a checkpoint is saved.

The signals are SIGTERM (Slurm's time limit, a preemption), SIGUSR1 (`sbatch --signal=USR1@300`) and Ctrl-C. The command
then exits with status 75 (`EX_TEMPFAIL`: try again later), a failure that Snakemake's `retries` repeats; running the
command again continues from the checkpoint. A second Ctrl-C ends the process at once; a second SIGTERM does not,
because Slurm sends several SIGTERM signals to a job that has to end, while the checkpoint is being written, and finally
SIGKILL.

The time limit is the end of the Slurm job or the limit in the settings. A run that stops before it loses no steps; a
run that Slurm kills loses the steps since its last checkpoint. Only clocks of this process are read; the training loop
makes several processes stop after the same step. Newer Slurm versions set the end of the job in an environment
variable; otherwise Slurm's queue (`squeue`) is queried.
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

# sysexits.h: the work is not done; the same command continues it.
EXIT_STATUS_INTERRUPTED = 75
SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)
# The duration of the next step is estimated by the longest of this number of recent steps: enough steps to contain most
# slow ones, few enough to forget the first step, in which kernels are compiled.
RECENT_STEPS = 100
SLURM_END, SLURM_JOB = "SLURM_JOB_END_TIME", "SLURM_JOB_ID"
# In a short Slurm job the grace time is at most this share of the remaining time, because otherwise the job would stop
# after one step.
LARGEST_GRACE = 0.25
QUEUE_TIMEOUT_SECONDS = 60


def ask_queue(job: str) -> str | None:
    """Return the remaining time of a job from Slurm's queue, such as `1-02:03:04`; None if the query fails."""
    command = ["squeue", "--noheader", "--jobs", job, "--format", "%L"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=QUEUE_TIMEOUT_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()


@dataclass(frozen=True)
class Deadline:
    """The moment `at` on the clock of `time.monotonic()`, and the number of seconds that stopping may take before
    it."""

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
        """Return the earlier of the time limit, counted from now, and the end of the Slurm job; None if there is
        neither.

        The end of the Slurm job is read from SLURM_JOB_END_TIME (seconds since 1970), or computed from `time_left(job
        id)`. Later changes of Slurm's time limit are not noticed. Raises ConfigError for a value that cannot be used.
        """
        remaining: list[tuple[float, float]] = []
        if time_limit_minutes is not None:
            # Otherwise every attempt would stop after one step.
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
        """Return whether another step of `step_seconds` would end within the grace time; called once per step."""
        return self.remaining_seconds() - step_seconds < self.grace_seconds

    def remaining_seconds(self) -> float:
        """Return the seconds until the deadline, negative after it."""
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
    """Install signal handlers that end the process with one line of text and the exit status of an interrupted run.

    They serve at the command's beginning, while libraries are imported and the model is built, and at its end; during
    training, `StopRequest` handles signals. The process exits instead of raising an exception, which a library might
    catch.
    """

    def leave(number: int, frame: FrameType | None) -> None:
        name = signal.Signals(number).name
        print(
            f"stopped by {name} outside of training; run the same command again to continue",
            file=sys.stderr,
            flush=True,
        )
        # An import releases its locks in callbacks of weak references, and an exception in such a callback is ignored.
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
    """Training stopped on request, with a checkpoint saved; the message explains how to continue."""


class StopRequest:
    """A request to stop this process: by a signal, the time limit or another attempt.

    As a context manager it collects signals; the former handlers are restored at its exit.
    """

    def __init__(
        self,
        deadline: Deadline | None = None,
        steps_until_heeded: int = 1,
        is_claimed: Callable[[], bool] = lambda: False,
    ) -> None:
        """Without a deadline only signals count.

        `steps_until_heeded` is the number of steps until the training loop acts on a request: more than 1 if several
        processes agree at intervals only. `is_claimed` returns whether another attempt requests the run folder.
        """
        self.signal_name: str | None = None
        self._former_handlers: dict[signal.Signals, Any] = {}
        self._is_claimed = is_claimed
        self._deadline, self._limit_is_near = deadline, False
        self._steps_until_heeded = steps_until_heeded
        self._step_seconds: deque[float] = deque([0.0], maxlen=max(RECENT_STEPS, steps_until_heeded))
        self._step_began = time.monotonic()

    def __enter__(self) -> Self:
        # Python handles signals only in the main thread, so signals do not stop a training in another thread.
        if threading.current_thread() is threading.main_thread():
            self._former_handlers = {number: signal.signal(number, self._note) for number in SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._former_handlers.items():
            signal.signal(number, handler)

    @property
    def is_made(self) -> bool:
        """Return whether to stop after this step; a request stays in force once made. Call once per step, before
        `step_finished`."""
        if self._deadline is not None and self._deadline.is_near(self._expected_seconds()):
            self._limit_is_near = True
        return self.signal_name is not None or self._limit_is_near or self._is_claimed()

    def step_finished(self) -> None:
        """Record the end of a step, including its evaluation and checkpoint; its duration predicts that of later
        steps."""
        now = time.monotonic()
        self._step_seconds.append(now - self._step_began)
        self._step_began = now

    def interruption(self, step: int, steps: int, run_folder: Path) -> TrainingInterrupted:
        """Return the exception to raise once the checkpoint after `step` of `steps` is saved in `run_folder`."""
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
        """Return the estimated seconds until the loop would act on a request that is made in the next step."""
        return max(*self._step_seconds, sum(list(self._step_seconds)[-self._steps_until_heeded :]))
