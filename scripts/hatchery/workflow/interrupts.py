"""SIGINT to Snakemake's own process stops its jobs as Ctrl-C does.

Ctrl-C sends SIGINT to every process of the terminal's foreground group, and a pretraining then saves its checkpoint.
`kill -INT PID` reaches Snakemake alone, which then waits for its jobs, however long they run. So the signal is
forwarded, but only if the jobs have not received it, because a second signal ends a pretraining at once. An idle child
process shows whether the jobs received it: a signal to the group ends the child.
"""

import signal
import subprocess
import threading
from types import FrameType

import psutil

INTERRUPTED = threading.Event()
"""Set when the user has stopped this call: jobs that end afterwards were stopped and did not fail."""
# Time until a signal to the whole group has ended the child.
PATIENCE_SECONDS = 0.5


def hand_on_interrupts() -> None:
    """Forward SIGINT to the descendants of this process from now on; KeyboardInterrupt is raised as before.

    Called in the main thread, before Snakemake starts jobs. SIGINT is also handled where it was ignored, as in the
    background of a script, because its sender intends it.
    """
    if threading.current_thread() is not threading.main_thread():
        return

    def handle(number: int, frame: FrameType | None) -> None:
        INTERRUPTED.set()
        try:
            witness.wait(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            _signal_descendants(except_for=witness.pid)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, handle)
    # The child reads from this process, so it ends when this process ends for any reason.
    witness = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _signal_descendants(except_for: int) -> None:
    for process in psutil.Process().children(recursive=True):
        if process.pid != except_for:
            try:
                process.send_signal(signal.SIGINT)
            except psutil.Error:
                continue
