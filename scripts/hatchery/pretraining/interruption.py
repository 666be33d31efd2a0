"""A polite end: a signal or a time limit lets the current step finish and a checkpoint be saved.

The signals are SIGTERM (Slurm's time limit, a preemption), SIGUSR1 (`sbatch --signal=USR1@300`) and Ctrl-C. The command
then leaves with status 75 (`EX_TEMPFAIL`: try again later), which Snakemake's `retries` counts as a failure to try
again, and running it again goes on where it stopped. A second Ctrl-C ends the process at once; a second SIGTERM does
not, because Slurm sends several to a job that is to end, while the checkpoint is being written, and SIGKILL at last.
"""

import signal
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from hatchery.pretraining.time_limit import Deadline

# sysexits.h: the work is not done, and the same command will go on with it.
EXIT_STATUS_INTERRUPTED = 75
SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)
# Steps whose longest stands for the next one: enough to contain most of the slow ones, few enough to forget the first
# one, in which kernels are compiled.
RECENT_STEPS = 100


class TrainingInterrupted(Exception):  # noqa: N818 - not an error: the run can go on
    """Training stopped on request, with a checkpoint saved; the message says how to go on."""


class StopRequest:
    """Whether a signal or the time limit asks this process to stop."""

    def __init__(
        self,
        deadline: Deadline | None = None,
        steps_until_heeded: int = 1,
        is_wanted: Callable[[], bool] = lambda: False,
    ) -> None:
        """Without a deadline only signals count.

        `steps_until_heeded` is how many steps may pass until the training loop acts on a request: more than 1 where
        several processes agree at intervals only. `is_wanted` tells whether another attempt asks for the run folder.
        """
        self.signal_name: str | None = None
        self._is_wanted = is_wanted
        self._deadline, self._limit_is_near = deadline, False
        self._steps_until_heeded = steps_until_heeded
        self._step_seconds: deque[float] = deque([0.0], maxlen=max(RECENT_STEPS, steps_until_heeded))
        self._step_began = time.monotonic()

    @property
    def is_made(self) -> bool:
        """Whether to stop after this step; once made, a request stays. To be asked once per step, before its end."""
        if self._deadline is not None and self._deadline.is_near(self._expected_seconds()):
            self._limit_is_near = True
        return self.signal_name is not None or self._limit_is_near or self._is_wanted()

    def step_finished(self) -> None:
        """Note that a step is over, with its evaluation and checkpoint: the next one is expected to take as long."""
        now = time.monotonic()
        self._step_seconds.append(now - self._step_began)
        self._step_began = now

    def interruption(self, step: int, steps: int, run_folder: Path) -> TrainingInterrupted:
        """What to raise once the checkpoint after `step` of `steps` is safe in `run_folder`."""
        if self.signal_name is not None:
            reason = self.signal_name
        elif self._limit_is_near:
            reason = "the time limit"
        elif self._is_wanted():
            reason = "another attempt of the same job"
        else:
            reason = "a signal or the time limit of another process"
        return TrainingInterrupted(
            f"stopped by {reason} after step {step} of {steps}; a checkpoint is saved in {run_folder}: "
            "run the same command again to go on"
        )

    def _expected_seconds(self) -> float:
        """Until a request of the next step would be heeded, judged by the steps before."""
        return max(*self._step_seconds, sum(list(self._step_seconds)[-self._steps_until_heeded :]))


@contextmanager
def stop_request(
    deadline: Deadline | None = None, steps_until_heeded: int = 1, is_wanted: Callable[[], bool] = lambda: False
) -> Iterator[StopRequest]:
    """Collect signals, the nearness of `deadline` and other requests; former handlers come back afterwards."""
    request = StopRequest(deadline, steps_until_heeded, is_wanted)

    def note(number: int, frame: FrameType | None) -> None:
        request.signal_name = signal.Signals(number).name
        if number == signal.SIGINT:
            signal.signal(number, signal.SIG_DFL)

    former = {number: signal.signal(number, note) for number in SIGNALS}
    try:
        yield request
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
