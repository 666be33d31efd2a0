"""Forwards SIGINT from Snakemake's process to its jobs, so that `kill -INT` stops the jobs as Ctrl-C does.

Ctrl-C sends SIGINT to all processes of the terminal's foreground group, and a pretraining then saves a checkpoint.
`kill -INT PID` only reaches Snakemake, which then waits until its jobs end. Therefore the signal is forwarded, but only
if the jobs have not received it, because a second signal ends a pretraining immediately. An idle child process shows
whether the jobs have received the signal: a signal to the group ends this process.
"""

import signal
import subprocess
import threading
from types import FrameType

import psutil

INTERRUPTED = threading.Event()
"""Set if the user has stopped Snakemake; jobs that end afterwards were stopped and did not fail."""
# Maximum number of seconds until a signal to the process group has ended the idle child process.
PATIENCE_SECONDS = 0.5


def hand_on_interrupts() -> None:
    """Forward SIGINT to the descendants of this process from now on; KeyboardInterrupt is still raised.

    Call this function in the main thread before Snakemake starts jobs. SIGINT is handled even if this process was
    started with SIGINT ignored, as in background processes of scripts, because the signal is sent to stop the jobs.
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
    # The idle child reads from this process, so it ends when this process ends for any reason.
    witness = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _signal_descendants(except_for: int) -> None:
    for process in psutil.Process().children(recursive=True):
        if process.pid != except_for:
            try:
                process.send_signal(signal.SIGINT)
            except psutil.Error:
                continue
