"""Forwards SIGINT from Snakemake's process to its jobs, so that `kill -INT` stops the jobs as Ctrl-C does.

Ctrl-C sends SIGINT to all processes of the terminal's foreground group, and a pretraining then saves a checkpoint.
`kill -INT PID` only reaches Snakemake, which then waits until its jobs end. Therefore this module forwards the signal
to the jobs, but only if the jobs have not received the signal: a second signal would end a pretraining immediately. An
idle child process shows whether the jobs have received the signal, because a signal to the group ends this child
process.
"""

import signal
import subprocess
import threading
from types import FrameType

import psutil

INTERRUPTED = threading.Event()
"""Event that is set when the user stops Snakemake. A job that ends afterwards was stopped, and has not failed."""
# Number of seconds to wait for the end of the idle child process. If a signal to the process group ends this child, the
# signal has also reached the jobs, so it is not forwarded.
PATIENCE_SECONDS = 0.5


def hand_on_interrupts() -> None:
    """Forward SIGINT to the descendants of this process from now on; this process then still raises KeyboardInterrupt.

    Call this function in the main thread before Snakemake starts jobs. Background processes of scripts start with
    SIGINT ignored. This function handles SIGINT in such a process, too, because a user who sends SIGINT to the process
    wants to stop the jobs.
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
    # The idle child process reads from a pipe of this process, so the child ends when this process ends for any reason.
    witness = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _signal_descendants(except_for: int) -> None:
    for process in psutil.Process().children(recursive=True):
        if process.pid != except_for:
            try:
                process.send_signal(signal.SIGINT)
            except psutil.Error:
                continue
