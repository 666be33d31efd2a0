"""Facts about the run of a stage that `provenance.json` records: time, machine, duration and software versions."""

import os
import platform
import resource
import subprocess
import sys
import time
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path

PACKAGES = ("torch", "deepspeed", "tokenizers", "polars", "pyarrow", "lxml", "numpy", "snakemake", "matplotlib")


def surroundings(started: float) -> dict[str, object]:
    """Return time, duration, machine and software versions of this process.

    `started` is the time at which the work of the process began, in seconds since 1970.
    """
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "started": datetime.fromtimestamp(started, UTC).isoformat(timespec="seconds"),
        "wall_seconds": round(time.time() - started, 3),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 3),
        "peak_memory_mib": round(usage.ru_maxrss / 1024, 1),
        "host": platform.node(),
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "python": platform.python_version(),
        "packages": _package_versions(),
        "code_revision": _code_revision(),
        "command": sys.argv,
    }


@cache
def _package_versions() -> dict[str, str]:
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions


@cache
def _code_revision() -> str:
    """Return the output of `git describe` for this code: the commit, or a name that begins with the last annotated tag.

    The name ends in `-dirty` if tracked files were edited. The result is `unknown` if git is missing or finds no
    checkout.
    """
    try:
        return subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "unknown"
