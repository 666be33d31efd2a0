"""Detection of another Snakemake process in the same folder. The lock of this other process must not be removed."""

import os
from pathlib import Path

import psutil


def locked_by_another() -> str:
    """Return an error message if another workflow runs in this folder.

    The message is empty if no other workflow runs in this folder. An existing lock of the folder is then a remainder of
    an earlier workflow.
    """
    if (process := other_workflow()) is None:
        return ""
    return (
        f"error: {Path.cwd()}: Directory cannot be locked: another workflow runs in this folder (process "
        f"{process}); wait until that workflow ends, or stop it with Ctrl-C"
    )


def other_workflow() -> int | None:
    """Return the process id of another Snakemake that runs on this machine, in this folder; None if no other Snakemake
    runs.

    Snakemake processes of single jobs are ignored, because such a process may still run after its workflow was killed.
    Their command lines contain `--mode`.
    """
    own = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    for process in psutil.process_iter(["cmdline", "cwd"]):
        arguments = process.info["cmdline"] or []
        is_workflow = "snakemake" in [Path(word).name for word in arguments[:3]] and "--mode" not in arguments
        if is_workflow and process.pid not in own and process.info["cwd"] == str(Path.cwd()):
            return int(process.pid)
    return None
