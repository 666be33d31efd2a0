"""Free disk space against the estimate of an experiment, and whether the results lie where other machines see them."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from hatchery.workflow import findings
from hatchery.workflow.cost_estimate import RunCost
from hatchery.workflow.findings import Finding

SPARE_BYTES = 5 * 10**9
"""Room for corpora, tokens, logs and results, which the estimate does not know: unmeasured, meant as a floor."""

# Kinds of file systems that only one machine has. Others (nfs, lustre, gpfs, beegfs, ceph, ...) may be shared.
_LOCAL = ("btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "ramfs", "tmpfs", "xfs", "zfs")


def check_disk(
    costs: Sequence[RunCost], folder: Path, free_bytes: Callable[[Path], int] | None = None
) -> list[Finding]:
    """Free bytes below `folder` (or its nearest existing parent) against what all runs need at once."""
    there = nearest_existing(folder)
    free = (free_bytes or _free)(there)
    most = sum(cost.run_folder_bytes + cost.model_bytes + cost.export_bytes for cost in costs) + SPARE_BYTES
    least = max((cost.run_folder_bytes for cost in costs), default=0)
    least += sum(cost.model_bytes + cost.export_bytes for cost in costs)
    seen = f"{gigabytes(free)} free below {there}; all models at once take up to {gigabytes(most)}"
    advice = "set `storage_root` in config/config.yaml to a larger file system, or make room (quotas are not seen here)"
    if free < least:
        return [findings.error("disk", f"{seen}, one after another {gigabytes(least)}", advice)]
    if free < most:
        return [findings.warning("disk", seen, advice)]
    return [findings.ok("disk", seen)]


def check_file_system(folder: Path, mounts: str) -> list[Finding]:
    """Whether the kind of file system below `folder` can be shared; `mounts` is the text of /proc/self/mounts."""
    there = nearest_existing(folder).resolve()
    kind, point = file_system(there, mounts)
    if kind in _LOCAL:
        return [
            findings.warning(
                "shared files",
                f"{there} lies on {kind} (mounted at {point}), which other machines do not see unless it is exported",
                "keep checkout and `storage_root` on shared storage; without --no-jobs this is tried on the nodes",
            )
        ]
    return [findings.ok("shared files", f"{there} lies on {kind or 'an unknown file system'}")]


def file_system(path: Path, mounts: str) -> tuple[str, str]:
    """Kind and mount point of the file system that holds `path`: the longest mount point above it."""
    best = ("", "")
    for line in mounts.splitlines():
        fields = line.split()
        if len(fields) < 3:
            continue
        point = fields[1].replace("\\040", " ")
        if path.is_relative_to(point) and len(point) >= len(best[1]):
            best = (fields[2], point)
    return best


def nearest_existing(folder: Path) -> Path:
    """The folder itself, or the nearest one above it that exists."""
    there = folder.absolute()
    while not there.exists():
        there = there.parent
    return there


def gigabytes(count: int) -> str:
    """Bytes as decimal gigabytes."""
    return f"{count / 1e9:,.1f} GB"


def _free(folder: Path) -> int:
    return shutil.disk_usage(folder).free
