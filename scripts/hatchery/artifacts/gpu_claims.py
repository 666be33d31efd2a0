"""Reservation of GPUs on a machine without a scheduler: a job claims GPUs that no other job has claimed.

A claim is a lock on a small file that represents the GPU; jobs that share a GPU hold a shared lock on this file. The
lock belongs to the job's process and its child processes. When all these processes have ended, for any reason, the
operating system releases the lock. All jobs of one user on one machine respect claims, also if the jobs belong to
different workflows. Jobs of other users do not. The lock files are in the temporary folder, in which other users may
write. Therefore the folder of the lock files must belong to this user, and other users must not be able to write in it.
"""

import fcntl
import os
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

from hatchery.errors import ConfigError

VISIBLE = "CUDA_VISIBLE_DEVICES"
# Values of CUDA_VISIBLE_DEVICES that hide all GPUs.
HIDDEN = ("", "-1", "NoDevFiles")


def visible_gpus(environment: Mapping[str, str], devices: Path = Path("/dev")) -> list[str]:
    """Return the names of the GPUs that this process may use.

    These are the names in CUDA_VISIBLE_DEVICES. If this variable is not set, the names are the indices of all GPUs.
    GPUs are counted with `nvidia-smi` or, if this program is missing, by device files. For GPUs that are not from
    NVIDIA, CUDA_VISIBLE_DEVICES must be set.
    """
    if VISIBLE in environment:
        return [name for part in environment[VISIBLE].split(",") if (name := part.strip()) not in HIDDEN]
    program = shutil.which("nvidia-smi", path=environment.get("PATH"))
    if program is None:
        return [str(index) for index, _ in enumerate(devices.glob("nvidia[0-9]*"))]
    found = subprocess.run([program, "--list-gpus"], capture_output=True, text=True, check=False)
    return [str(index) for index, _ in enumerate(line for line in found.stdout.splitlines() if line.startswith("GPU "))]


def lock_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of this user's lock files on this machine.

    Each Slurm job with assigned GPUs has a separate folder, because Slurm may number the GPUs of every job from 0.
    """
    job = environment.get("SLURM_JOB_ID") if VISIBLE in environment else None
    name = f"hatchery-gpus-{os.getuid()}" + (f"-{job}" if job else "")
    return Path(tempfile.gettempdir()) / name


def claim(
    names: Sequence[str],
    wanted: int,
    folder: Path,
    waiting: Callable[[], None] = lambda: None,
    poll_seconds: float = 1.0,
    jobs_per_gpu: int = 1,
) -> dict[str, list[int]]:
    """Claim the first `wanted` free GPUs among `names`; return the descriptors of the lock files by name of the GPU.

    If `jobs_per_gpu` is above 1, each GPU has this number of slots, and the claim on a GPU is a claim on one slot. The
    function first tries slot 0 of each GPU, then slot 1 of each GPU, and so on. If too few GPUs are free, the function
    calls `waiting` once, and then waits. While waiting, the function claims no GPUs, so that smaller jobs can use free
    GPUs. The descriptors stay open after `exec`, so the GPUs stay claimed. Raises ConfigError if `wanted` is below 1 or
    above the number of `names`, and if `folder` is a file, belongs to another user, or is writable for other users.
    """
    if not 1 <= wanted <= len(names):
        raise ConfigError(
            f"gpus: the job needs {wanted} GPUs, but this process may use {len(names)} GPUs "
            f"({', '.join(names) or 'none'}); "
            "set cluster.gpus_per_node in config/config.yaml to the number of GPUs of the machine"
        )
    own = _own_folder(folder)
    try:
        announced = False
        while True:
            held: dict[str, list[int]] = {}
            for place in range(jobs_per_gpu):
                for name in (name for name in names if name not in held):
                    if locked := _lock_gpu(own, name.replace("/", "_"), place if jobs_per_gpu > 1 else None):
                        held[name] = locked
                    if len(held) == wanted:
                        return held
            release(held)
            if not announced:
                waiting()
                announced = True
            time.sleep(poll_seconds)
    finally:
        os.close(own)


def release(held: Mapping[str, Sequence[int]]) -> None:
    """Release the claimed GPUs in `held`, the result of `claim`."""
    for descriptor in chain.from_iterable(held.values()):
        with suppress(OSError):
            os.close(descriptor)


def _own_folder(folder: Path) -> int:
    """Return a descriptor of the folder of lock files; a missing folder is created.

    Raises ConfigError if the path is a file, if the folder does not belong to this user, or if other users may write
    in the folder.
    """
    remedy = f"remove {folder}, or set TMPDIR to a folder of your own"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700, parents=True)
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except NotADirectoryError:
        raise ConfigError(f"{folder}: got a file, expected a folder for claims on GPUs; {remedy}") from None
    status = os.fstat(descriptor)
    if status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return descriptor
    os.close(descriptor)
    if status.st_uid != os.getuid():
        raise ConfigError(
            f"{folder}: the folder for claims on GPUs belongs to user {status.st_uid}, expected {os.getuid()}; {remedy}"
        )
    raise ConfigError(f"{folder}: other users may write in this folder for claims on GPUs, expected only you; {remedy}")


def _lock_gpu(own: int, name: str, place: int | None) -> list[int]:
    """Lock a GPU and return the descriptors of the lock files; empty if other jobs hold the lock.

    If `place` is None, the whole GPU is locked; otherwise, the slot with the index `place` is locked. `own` is the
    descriptor of the folder of lock files.
    """
    whole = _lock(own, f"{name}.lock", fcntl.LOCK_EX if place is None else fcntl.LOCK_SH)
    if whole is None or place is None:
        return [] if whole is None else [whole]
    taken = _lock(own, f"{name}.{place}.lock", fcntl.LOCK_EX)
    if taken is None:
        os.close(whole)
        return []
    return [whole, taken]


def _lock(own: int, name: str, kind: int) -> int | None:
    """Lock the file `name` in the folder of lock files; `own` is the descriptor of the folder. Return the descriptor of
    the file; None if another process holds a conflicting lock. `kind` is `fcntl.LOCK_EX` or `fcntl.LOCK_SH`.
    """
    descriptor = os.open(name, os.O_RDWR | os.O_CREAT, 0o600, dir_fd=own)
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    os.set_inheritable(descriptor, True)
    return descriptor
