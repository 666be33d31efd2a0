"""SIGINT to Snakemake's own process stops its jobs as Ctrl-C does.

Ctrl-C reaches every process of the terminal's foreground group, and a pretraining saves its checkpoint.
`kill -INT PID` reaches Snakemake alone, which then waits for its jobs, however long they run. So the signal is handed
on, but only where the jobs have not had it: a second one ends a pretraining at once. Whether they have is seen from a
child process that does nothing and that a signal to the group ends.
"""

import signal
import subprocess
import threading
from types import FrameType

import psutil

INTERRUPTED = threading.Event()
"""Whether the user has stopped this call: what ends then was stopped, and did not fail."""
# Until a signal that was sent to the whole group has ended the child.
PATIENCE_SECONDS = 0.5


def hand_on_interrupts() -> None:
    """From now on SIGINT to this process alone reaches its descendants, too; raises KeyboardInterrupt as before.

    Called where Snakemake begins to run jobs, in the main thread. Also where SIGINT was ignored, as in the background
    of a script: whoever sends it means it.
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
    # Its input ends when this process does, however that ends.
    witness = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _signal_descendants(except_for: int) -> None:
    for process in psutil.Process().children(recursive=True):
        if process.pid != except_for:
            try:
                process.send_signal(signal.SIGINT)
            except psutil.Error:
                continue
