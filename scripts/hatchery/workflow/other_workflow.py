"""Another call of Snakemake in the same folder: who calls twice is told of the first call, and not to unlock."""

import os
from pathlib import Path

import psutil


def locked_by_another() -> str:
    """Why the folder is locked; empty where no other workflow runs in it, so that a lock was left behind."""
    if (process := other_workflow()) is None:
        return ""
    return (
        f"error: {Path.cwd()}: Directory cannot be locked: another workflow runs in it (process {process}); "
        "wait for its end, or stop it with Ctrl-C"
    )


def other_workflow() -> int | None:
    """The number of another process of Snakemake in this folder, of this machine; None where there is none.

    The Snakemake inside a job, which is told its mode, is none: it goes on when the workflow that sent it was killed.
    """
    own = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    for process in psutil.process_iter(["cmdline", "cwd"]):
        arguments = process.info["cmdline"] or []
        is_workflow = "snakemake" in [Path(word).name for word in arguments[:3]] and "--mode" not in arguments
        if is_workflow and process.pid not in own and process.info["cwd"] == str(Path.cwd()):
            return int(process.pid)
    return None
