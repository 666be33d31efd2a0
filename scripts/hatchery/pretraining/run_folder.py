"""The folder of an unfinished run, owned by one process at a time.

Two experiments may contain the same run, and a cluster may start a job again while the old one still dies: both would
write the same checkpoints. The first process of a run holds a lock; a second one waits for it.
"""

import fcntl
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hatchery.errors import CheckpointError


@contextmanager
def locked_run_folder(folder: Path) -> Iterator[Path]:
    """Make `folder` and hold its lock during the block; waits, with one line, while another process holds it.

    The lock ends with the process, also after a kill. Raises CheckpointError when the folder cannot be made.
    """
    lock = folder / "lock"
    descriptor = _acquire(folder, lock)
    _clear(folder)
    try:
        yield folder
    finally:
        os.close(descriptor)


def remove_run_folder(folder: Path) -> None:
    """Remove a finished run's folder; only after its export, so that a crash before that loses nothing.

    It first loses its name: a kill meanwhile would otherwise leave old checkpoints for a run that starts anew.
    """
    _clear(folder)
    try:
        folder.replace(_removed(folder))
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
    _clear(folder)


def _removed(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.removed")


def _clear(folder: Path) -> None:
    """Finish a removal of `folder` that was killed."""
    shutil.rmtree(_removed(folder), ignore_errors=True)


def _acquire(folder: Path, lock: Path) -> int:
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise CheckpointError(f"{folder}: the run folder cannot be made: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting: another process trains in {folder}", file=sys.stderr, flush=True)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError:
            # Some network file systems have no locks; the run goes on without one.
            return descriptor
        if _is_current(descriptor, lock):
            return descriptor
        # The former owner finished and removed the folder while we waited.
        os.close(descriptor)


def _is_current(descriptor: int, lock: Path) -> bool:
    try:
        return os.fstat(descriptor).st_ino == lock.stat().st_ino
    except OSError:
        return False
