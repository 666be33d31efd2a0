"""When this process has to be gone: the end of its Slurm job, or a limit that the settings name.

A run that stops by itself before that saves a checkpoint and leaves with the status that asks for another attempt; a
run that is killed at the limit loses the steps since its last checkpoint. Only clocks of this process are read; that
several processes stop after the same step is the training loop's agreement.
"""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from hatchery.errors import ConfigError

SLURM_END = "SLURM_JOB_END_TIME"


@dataclass(frozen=True)
class Deadline:
    """The moment `at` on the clock of `time.monotonic()`, and the seconds before it that stopping may take."""

    at: float
    grace_seconds: float

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str], time_limit_minutes: float | None, grace_seconds: float
    ) -> Self | None:
        """The sooner of the limit, counted from now, and the end of the Slurm job; null where there is neither.

        Slurm tells the end in SLURM_JOB_END_TIME, as seconds since 1970; a limit that is changed while the job runs
        is not seen. Raises ConfigError when a value cannot be used.
        """
        if not 0 <= grace_seconds < float("inf"):
            raise ConfigError(f"runtime.grace_seconds: got {grace_seconds!r}, expected a number of seconds, 0 or more")
        remaining = []
        if time_limit_minutes is not None:
            # Otherwise every attempt would stop after one step.
            if not grace_seconds < 60 * time_limit_minutes < float("inf"):
                raise ConfigError(
                    f"runtime.time_limit_minutes: got {time_limit_minutes!r}, expected more than the grace time "
                    f"(runtime.grace_seconds: {grace_seconds!r})"
                )
            remaining.append(60 * time_limit_minutes)
        if SLURM_END in environment:
            end = environment[SLURM_END]
            if not re.fullmatch(r"\d{1,12}", end):
                raise ConfigError(f"environment: {SLURM_END} is {end!r}, expected seconds since 1970")
            remaining.append(int(end) - time.time())
        return cls(time.monotonic() + min(remaining), grace_seconds) if remaining else None

    def is_near(self, step_seconds: float) -> bool:
        """Whether one more step of `step_seconds` would begin the grace time; asked once per step."""
        return self.remaining_seconds() - step_seconds < self.grace_seconds

    def remaining_seconds(self) -> float:
        """Seconds until the deadline, negative after it."""
        return self.at - time.monotonic()
