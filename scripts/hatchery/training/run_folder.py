"""The folder of an unfinished run, which one process owns, and the owner's heartbeat.

Two processes may want to write the same checkpoints: two experiments may contain the same run, or a cluster may restart
a job while an earlier attempt still runs. The process that opens the folder first holds the folder's lock. Another
process waits. If the waiting process is another attempt of the same job, it requests that the owner stops after its
current step.

A file lock ends with its process, but other machines may not see the lock (on usual mounts of Lustre and BeeGFS, and on
NFS without its lock service). The owner therefore also writes a heartbeat, an increasing count. A waiting process
watches this count, so clocks of different machines are not compared. An owner whose heartbeat stopped for too long
loses the folder, and notices the new owner before its next checkpoint.
"""

import fcntl
import json
import os
import shutil
import socket
import sys
import threading
import time
import uuid
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hatchery.artifacts.checksums import digest
from hatchery.errors import CheckpointError
from hatchery.training.inputs import MEMBER, TEACHER

BEAT_SECONDS = 5.0
# Seconds without a heartbeat after which an owner counts as dead. The number is above 60, because NFS may show an old
# state of a file for a minute.
STALE_SECONDS = 90.0
POLL_SECONDS = 0.2
WANTED = "wanted"


@dataclass(frozen=True)
class Owner:
    """A training process that owns a run folder or wants to own it: process id, machine and Slurm job."""

    token: str
    host: str
    # An identifier that differs between machines and between reboots of a machine.
    machine: str
    pid: int
    job: str | None
    # Path of the manifest that the run will write. Two processes that write the same manifest are attempts of the same
    # job.
    output: str

    @classmethod
    def of_this_process(cls, output: Path | None = None, environment: Mapping[str, str] = os.environ) -> Self:
        """Return the owner that represents this process. `output` is the manifest that the run will write; two
        processes with the same `output` are attempts of the same job.
        """
        return cls(
            token=uuid.uuid4().hex,
            host=environment.get("SLURMD_NODENAME") or socket.gethostname(),
            machine=_machine(),
            pid=os.getpid(),
            job=environment.get("SLURM_JOB_ID"),
            output="" if output is None else str(output.absolute()),
        )

    def __str__(self) -> str:
        job = "" if self.job is None else f"Slurm job {self.job}, "
        return f"{job}process {self.pid} on {self.host}"

    @property
    def how_to_end(self) -> str:
        """Command that ends the owner's process."""
        return f"scancel {self.job}" if self.job else f"kill {self.pid} on {self.host}"


@dataclass(frozen=True)
class Sign:
    """The content of a lock file: the folder's owner, and the number of the owner's heartbeats."""

    owner: Owner
    beat: int


def read_sign(lock: Path) -> Sign | None:
    """Return the content of `lock`; None if the folder has no owner, or while the file is being written."""
    try:
        value = json.loads(lock.read_text(encoding="utf-8"))
        return Sign(Owner(**value["owner"]), int(value["beat"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _is_owned_by(owner: Owner, lock: Path) -> bool:
    sign = read_sign(lock)
    return sign is not None and sign.owner.token == owner.token


class RunLease:
    """The right to write into a run folder; a thread writes heartbeats during the `with` block."""

    def __init__(self, lock: Path, owner: Owner, waited: bool) -> None:
        """This process must hold `lock`; `waited` is True if another process held the lock before."""
        self.lock, self.owner, self.waited = lock, owner, waited
        self.claimed_by: str | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep_alive, name="lease", daemon=True)

    @property
    def is_claimed(self) -> bool:
        """True if another attempt of the same job has requested that this process stops."""
        return self.claimed_by is not None

    def verify(self) -> None:
        """Raise CheckpointError if another process has taken over the folder, because this process wrote no heartbeat
        for too long.
        """
        sign = read_sign(self.lock)
        if sign is not None and sign.owner.token != self.owner.token:
            raise CheckpointError(
                f"{self.lock.parent}: this process ({self.owner}) had no heartbeat for more than {STALE_SECONDS:.0f} "
                f"seconds, so {sign.owner} has taken over the run; this process writes no more files"
            )

    def __enter__(self) -> Self:
        (self.lock.parent / WANTED).unlink(missing_ok=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the heartbeats and release the folder."""
        self._ended.set()
        self._thread.join()
        if _is_owned_by(self.owner, self.lock):
            os.truncate(self.lock, 0)

    def _keep_alive(self) -> None:
        beat = 0
        while not self._ended.wait(BEAT_SECONDS):
            beat += 1
            try:
                if _is_owned_by(self.owner, self.lock):
                    write_sign(self.lock, Sign(self.owner, beat))
                if self.claimed_by is None and (self.lock.parent / WANTED).exists():
                    self.claimed_by = (self.lock.parent / WANTED).read_text(encoding="utf-8")
                    print(f"{self.claimed_by} wants to take over this run", file=sys.stderr, flush=True)
            except OSError:
                # Ignore the error, because errors of a shared file system may be temporary; the next heartbeat tries
                # again.
                continue


def write_sign(lock: Path, sign: Sign) -> None:
    """Replace the content of the file `lock` in place, because the file lock belongs to the existing file."""
    # Pad the text to a constant length, so that one write replaces the former text completely.
    text = json.dumps(asdict(sign), sort_keys=True).ljust(1024) + "\n"
    descriptor = os.open(lock, os.O_RDWR)
    try:
        os.pwrite(descriptor, text.encode(), 0)
        os.ftruncate(descriptor, len(text.encode()))
    finally:
        os.close(descriptor)


def _machine() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return socket.gethostname()


@contextmanager
def locked_run_folder(
    folder: Path, owner: Owner | None = None, patience_seconds: float | None = None
) -> Iterator[RunLease]:
    """Create `folder` and own it during the `with` block; wait, with a message, while another process owns the folder.

    Ownership also ends if the process is killed: at once for processes on the same machine, and after 90 seconds
    without a heartbeat for processes on other machines. Raises CheckpointError if the folder cannot be created, and if
    another process still owns the folder after `patience_seconds` (None waits without limit).
    """
    lock, owner = folder / "lock", owner or Owner.of_this_process()
    descriptor, waited = _acquire(folder, lock, owner, patience_seconds)
    try:
        _clear(folder)
        with RunLease(lock, owner, waited) as lease:
            yield lease
    finally:
        os.close(descriptor)


def remove_run_folder(folder: Path) -> None:
    """Remove a finished run's folder, after its model is exported.

    The folder is renamed before its files are deleted. So even if the process is killed in between, no later run can
    resume from the remaining checkpoints.
    """
    removed = _clear(folder)
    try:
        folder.replace(removed)
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
    _clear(folder)


def run_folder_name(settings: Mapping[str, Any], inputs: Mapping[str, str]) -> str:
    """Return the name of a run's folder, a digest of its settings and of the digests of its input manifests.

    `inputs` maps input names to digests of manifests.
    """
    order = ("tokens", "tokenizer", "initial_model", "counts", "order_model", "order_words", "order_corpus")
    # Sort names by length first, so that `teacher_10` follows `teacher_9`. No run has both teachers and ensemble
    # members.
    several = (name for name in inputs if name.startswith((TEACHER, MEMBER)))
    teachers = sorted(several, key=lambda name: (len(name), name))
    read = [inputs[name] for name in (*order, *teachers) if name in inputs]
    return digest({"settings": dict(settings), "inputs": read})


def _is_unused(folder: Path) -> bool:
    """Return whether a run folder contains at most a lock and a stop request, so that no training has begun in it."""
    return {path.name for path in folder.iterdir()} <= {"lock", WANTED}


def clear_finished(checkpoints: Path, finished: Container[str]) -> Iterator[Path]:
    """Remove folders of unneeded runs from `checkpoints`, the folder of all run folders; yield the removed folders.

    A run is unneeded if its model exists, or if its training has not begun. Folders that a killed removal has left are
    also removed.

    `finished` contains the folder names of runs whose models exist. Folders from which a run can continue, and folders
    that another process owns, are kept.
    """
    for folder in sorted(checkpoints.iterdir() if checkpoints.is_dir() else ()):
        if folder.name.endswith(".removed"):
            shutil.rmtree(folder, ignore_errors=True)
            yield folder
        elif folder.is_dir() and (folder.name in finished or _is_unused(folder)):
            with suppress(CheckpointError), locked_run_folder(folder, patience_seconds=0):
                remove_run_folder(folder)
                yield folder


def _clear(folder: Path) -> Path:
    """Delete the folder that an interrupted removal of `folder` has left; return its path. A removal first renames
    `folder` to this path and then deletes the files.
    """
    removed = folder.with_name(f".{folder.name}.removed")
    shutil.rmtree(removed, ignore_errors=True)
    return removed


def _acquire(folder: Path, lock: Path, owner: Owner, patience_seconds: float | None) -> tuple[int, bool]:
    """Return the file descriptor that holds the lock, and whether this process had to wait for another owner."""
    began = changed = time.monotonic()
    seen, waited = None, False
    while True:
        descriptor = _open(folder, lock)
        is_free = _try_lock(descriptor)
        if is_free is not False and not _is_current(descriptor, lock):
            # The former owner has finished and removed the folder since it was opened, so open the folder again.
            os.close(descriptor)
            continue
        sign = read_sign(lock)
        if sign != seen:
            seen, changed = sign, time.monotonic()
        # The folder is free if its owner has recorded its end, or has no heartbeat. The folder is also free if its
        # owner ran on this machine: this process now holds the file lock, so the owner has ended.
        if is_free is not False and (
            sign is None
            or (is_free and sign.owner.machine == owner.machine)
            or time.monotonic() - changed >= STALE_SECONDS
        ):
            write_sign(lock, Sign(owner, 0))
            if sign is None or sign.owner.machine == owner.machine or _is_still_ours(lock, owner):
                return descriptor, waited
        os.close(descriptor)
        if not waited:
            waited = True
            who = "" if sign is None else f" ({sign.owner})"
            print(f"waiting: another process trains in {folder}{who}", file=sys.stderr, flush=True)
        if sign is not None and sign.owner.output == owner.output != "":
            # Ignore errors: without the folder or write access, a stop request is impossible.
            with suppress(OSError):
                (folder / WANTED).write_text(str(owner), encoding="utf-8")
        if patience_seconds is not None and time.monotonic() - began > patience_seconds:
            owned_by = "another process" if sign is None else str(sign.owner)
            end = "" if sign is None else f" or end it ({sign.owner.how_to_end})"
            raise CheckpointError(
                f"{folder}: {owned_by} still trains in this folder after {patience_seconds:.0f} seconds of waiting; "
                f"wait until the training ends{end}, then run the same command again"
            )
        time.sleep(POLL_SECONDS)


def _open(folder: Path, lock: Path) -> int:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
    except FileNotFoundError:
        # The owner finished and removed the folder between the two calls above, so try again.
        return _open(folder, lock)
    except OSError as error:
        raise CheckpointError(f"{folder}: the run folder cannot be made: {error.strerror}") from error


def _try_lock(descriptor: int) -> bool | None:
    """Return True if this process now has the file lock, False if another process has it, and None if file locks are
    not supported.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is_still_ours(lock: Path, owner: Owner) -> bool:
    """Return whether the lock file still names this process after a short wait.

    On file systems without locks across machines, several processes may write the lock file at the same time. The
    process that writes last is the owner.
    """
    time.sleep(2 * POLL_SECONDS)
    return _is_owned_by(owner, lock)


def _is_current(descriptor: int, lock: Path) -> bool:
    try:
        return os.fstat(descriptor).st_ino == lock.stat().st_ino
    except OSError:
        return False
