"""The folder of an unfinished run, owned by one process at a time.

Two experiments may contain the same run, and a cluster may start a job again while the old one still dies, or still
trains because only the Snakemake that sent it was killed: both would write the same checkpoints. The first process of
a run holds the lock; a second one waits, and asks an older attempt of its own job to stop at the next step.
"""

import fcntl
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hatchery.errors import CheckpointError
from hatchery.training.lease import Owner, RunLease, Sign, Watch, ask_for, read_sign, write_sign

POLL_SECONDS = 0.2


@contextmanager
def locked_run_folder(
    folder: Path, owner: Owner | None = None, patience_seconds: float | None = None
) -> Iterator[RunLease]:
    """Make `folder` and own it during the block; waits, with one line, while another process does.

    Ownership ends with the process, also after a kill: at once for others on the same machine, after a minute and a
    half without signs of life for those on other machines. Raises CheckpointError when the folder cannot be made, and
    when another process still owns it after `patience_seconds` (null waits without limit).
    """
    lock, owner = folder / "lock", owner or Owner.here()
    descriptor, waited = _acquire(folder, lock, owner, patience_seconds)
    try:
        _clear(folder)
        with RunLease(lock, owner, waited) as lease:
            yield lease
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


def _acquire(folder: Path, lock: Path, owner: Owner, patience_seconds: float | None) -> tuple[int, bool]:
    """The descriptor that holds the lock, and whether another process had it first."""
    began, watch, waited = time.monotonic(), Watch(), False
    while True:
        descriptor = _open(folder, lock)
        is_free = _try_lock(descriptor)
        if is_free is not False and not _is_current(descriptor, lock):
            # The former owner finished and removed the folder while we waited.
            os.close(descriptor)
            continue
        sign = read_sign(lock)
        if is_free is not False and _may_take(sign, owner, is_locked=bool(is_free), watch=watch):
            write_sign(lock, Sign(owner, 0))
            if sign is None or sign.owner.machine == owner.machine or _is_still_ours(lock, owner):
                return descriptor, waited
        os.close(descriptor)
        if not waited:
            waited = True
            who = "" if sign is None else f" ({sign.owner})"
            print(f"waiting: another process trains in {folder}{who}", file=sys.stderr, flush=True)
        if sign is not None and sign.owner.output == owner.output != "":
            ask_for(folder, owner)
        if patience_seconds is not None and time.monotonic() - began > patience_seconds:
            raise _refusal(folder, sign, patience_seconds)
        time.sleep(POLL_SECONDS)


def _open(folder: Path, lock: Path) -> int:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
    except FileNotFoundError:
        # Removed between the two lines by the owner that finished.
        return _open(folder, lock)
    except OSError as error:
        raise CheckpointError(f"{folder}: the run folder cannot be made: {error.strerror}") from error


def _try_lock(descriptor: int) -> bool | None:
    """Whether the file lock was free and is ours now; null where the file system has none."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _may_take(sign: Sign | None, owner: Owner, is_locked: bool, watch: Watch) -> bool:
    """Whether the former owner is gone: it said so, or it cannot be alive beside our lock, or it shows no life."""
    if sign is None or (is_locked and sign.owner.machine == owner.machine):
        return True
    return watch.is_stale(sign)


def _is_still_ours(lock: Path, owner: Owner) -> bool:
    """Without locks across machines the last of several that take over at once wins, which shows a moment later."""
    time.sleep(2 * POLL_SECONDS)
    sign = read_sign(lock)
    return sign is not None and sign.owner.token == owner.token


def _refusal(folder: Path, sign: Sign | None, patience_seconds: float) -> CheckpointError:
    who = "another process" if sign is None else str(sign.owner)
    end = "" if sign is None else f" or end it ({sign.owner.how_to_end})"
    return CheckpointError(
        f"{folder}: {who} still trains in this folder after {patience_seconds:.0f} seconds of waiting; "
        f"wait for its end{end}, then run the same command again"
    )


def _is_current(descriptor: int, lock: Path) -> bool:
    try:
        return os.fstat(descriptor).st_ino == lock.stat().st_ino
    except OSError:
        return False
