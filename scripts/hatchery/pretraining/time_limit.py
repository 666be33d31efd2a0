"""When this process has to be gone: the end of its Slurm job, or a limit that the settings name.

A run that stops by itself before that saves a checkpoint and leaves with the status that asks for another attempt; a
run that is killed at the limit loses the steps since its last checkpoint. Only clocks of this process are read; that
several processes stop after the same step is the training loop's agreement. Newer Slurm tells the end of the job in a
variable; otherwise its queue is asked, since neither is left to Snakemake's jobs.
"""

import re
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

from hatchery.errors import ConfigError
from hatchery.slurm_time import seconds_of

SLURM_END, SLURM_JOB = "SLURM_JOB_END_TIME", "SLURM_JOB_ID"
# Of a Slurm job whose time is short the grace time takes at most this share: it would else train for one step.
LARGEST_GRACE = 0.25
QUEUE_TIMEOUT_SECONDS = 60


def ask_queue(job: str) -> str | None:
    """What Slurm's queue says is left of the time of a job, such as `1-02:03:04`; null where it cannot be asked."""
    command = ["squeue", "--noheader", "--jobs", job, "--format", "%L"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=QUEUE_TIMEOUT_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip()


@dataclass(frozen=True)
class Deadline:
    """The moment `at` on the clock of `time.monotonic()`, and the seconds before it that stopping may take."""

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
        """The sooner of the limit, counted from now, and the end of the Slurm job; null where there is neither.

        Slurm tells the end in SLURM_JOB_END_TIME, as seconds since 1970, or by `time_left` of the job's number; a
        limit that is changed while the job runs is not seen. Raises ConfigError when a value cannot be used.
        """
        if not 0 <= grace_seconds < float("inf"):
            raise ConfigError(f"runtime.grace_seconds: got {grace_seconds!r}, expected a number of seconds, 0 or more")
        remaining: list[tuple[float, float]] = []
        if time_limit_minutes is not None:
            # Otherwise every attempt would stop after one step.
            if not grace_seconds < 60 * time_limit_minutes < float("inf"):
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
        """Whether one more step of `step_seconds` would begin the grace time; asked once per step."""
        return self.remaining_seconds() - step_seconds < self.grace_seconds

    def remaining_seconds(self) -> float:
        """Seconds until the deadline, negative after it."""
        return self.at - time.monotonic()


def _left_of_slurm_job(environment: Mapping[str, str], time_left: Callable[[str], str | None]) -> float | None:
    if SLURM_END in environment:
        end = environment[SLURM_END]
        if not re.fullmatch(r"\d{1,12}", end):
            raise ConfigError(f"environment: {SLURM_END} is {end!r}, expected seconds since 1970")
        return int(end) - time.time()
    if SLURM_JOB not in environment:
        return None
    told = time_left(environment[SLURM_JOB])
    return None if told is None else seconds_of(told)
