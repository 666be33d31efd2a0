"""Detection of another Snakemake in the same folder, whose lock must not be removed."""

import os
from pathlib import Path

import psutil


def locked_by_another() -> str:
    """Return an error message if another workflow runs in this folder; empty if not, because then the folder's lock is
    stale.
    """
    if (process := other_workflow()) is None:
        return ""
    return (
        f"error: {Path.cwd()}: Directory cannot be locked: another workflow runs in it (process {process}); "
        "wait until it ends, or stop it with Ctrl-C"
    )


def other_workflow() -> int | None:
    """Return the process id of another Snakemake in this folder, on this machine; None if there is none.

    A Snakemake process of a single job, whose command line contains `--mode`, is ignored, because it may still run
    after its workflow was killed.
    """
    own = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    for process in psutil.process_iter(["cmdline", "cwd"]):
        arguments = process.info["cmdline"] or []
        is_workflow = "snakemake" in [Path(word).name for word in arguments[:3]] and "--mode" not in arguments
        if is_workflow and process.pid not in own and process.info["cwd"] == str(Path.cwd()):
            return int(process.pid)
    return None
