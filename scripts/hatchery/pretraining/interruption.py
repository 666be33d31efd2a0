"""A polite end: SIGTERM (a time limit, a preemption) and Ctrl-C let the current step finish and a checkpoint be saved.

The command then leaves with status 75 (`EX_TEMPFAIL`: try again later), and running it again goes on where it
stopped. A second signal ends the process at once.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# sysexits.h: the work is not done, and the same command will go on with it.
EXIT_STATUS_INTERRUPTED = 75


class TrainingInterrupted(Exception):  # noqa: N818 - not an error: the run can go on
    """Training stopped at a signal, with a checkpoint saved; the message says how to go on."""


class StopRequest:
    """Whether a signal has asked this process to stop."""

    def __init__(self) -> None:
        self.signal_name: str | None = None

    @property
    def is_made(self) -> bool:
        """Whether a signal has arrived."""
        return self.signal_name is not None


@contextmanager
def stop_request() -> Iterator[StopRequest]:
    """Collect SIGTERM and SIGINT during the block, and give the former handlers back afterwards."""
    request = StopRequest()

    def note(number: int, frame: FrameType | None) -> None:
        request.signal_name = signal.Signals(number).name
        signal.signal(number, signal.SIG_DFL)

    former = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield request
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
