"""The folder of an unfinished run, owned by one process at a time, and the heartbeat of its owner.

Two experiments may contain the same run, and a cluster may start a job again while the old one is still ending, or
still trains because only its Snakemake was killed: both would write the same checkpoints. The first process of a run
holds the lock; a second one waits, and asks an older attempt of its own job to stop at the next step.

File locks end with their process, but may be visible on one machine only (Lustre and BeeGFS as often mounted, NFS
without its lock service), which cannot be detected. The owner therefore writes an increasing count next to its name. A
waiting process watches the count and reads no foreign clock; an owner that was taken for dead notices this before it
writes its next checkpoint.
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
# Longer than the minute for which NFS may show an old state of a file.
STALE_SECONDS = 90.0
POLL_SECONDS = 0.2
WANTED = "wanted"


@dataclass(frozen=True)
class Owner:
    """A process that trains: its machine, and its output."""

    token: str
    host: str
    # Differs between machines and between starts of one machine.
    machine: str
    pid: int
    job: str | None
    # The manifest of the run; two processes with one output are two attempts of one job.
    output: str

    @classmethod
    def of_this_process(cls, output: Path | None = None, environment: Mapping[str, str] = os.environ) -> Self:
        """Return the owner for this process."""
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
        """The command that ends this process."""
        return f"scancel {self.job}" if self.job else f"kill {self.pid} on {self.host}"


@dataclass(frozen=True)
class Sign:
    """The content of a lock file: its owner, and the number of the owner's heartbeats."""

    owner: Owner
    beat: int


def read_sign(lock: Path) -> Sign | None:
    """Return the content of `lock`; None if it has no owner, or if it is just being written."""
    try:
        value = json.loads(lock.read_text(encoding="utf-8"))
        return Sign(Owner(**value["owner"]), int(value["beat"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _is_owned_by(owner: Owner, lock: Path) -> bool:
    sign = read_sign(lock)
    return sign is not None and sign.owner.token == owner.token


class RunLease:
    """The right to write into a run folder, kept alive by a thread during the `with` block."""

    def __init__(self, lock: Path, owner: Owner, waited: bool) -> None:
        """`lock` must belong to this process; `waited` is whether another process had it first."""
        self.lock, self.owner, self.waited = lock, owner, waited
        self.claimed_by: str | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep_alive, name="lease", daemon=True)

    @property
    def is_claimed(self) -> bool:
        """True if another attempt of the same job asks this process to stop."""
        return self.claimed_by is not None

    def verify(self) -> None:
        """Raise CheckpointError if another process took this one for dead and owns the folder now."""
        sign = read_sign(self.lock)
        if sign is not None and sign.owner.token != self.owner.token:
            raise CheckpointError(
                f"{self.lock.parent}: this process ({self.owner}) had no heartbeat for more than "
                f"{STALE_SECONDS:.0f} seconds, and {sign.owner} has taken the run over: nothing more is written here"
            )

    def __enter__(self) -> Self:
        (self.lock.parent / WANTED).unlink(missing_ok=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the heartbeat and release the folder."""
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
                    print(f"{self.claimed_by} asks for this run", file=sys.stderr, flush=True)
            except OSError:
                # Errors of a shared file system may be temporary; the next heartbeat tries again.
                continue


def write_sign(lock: Path, sign: Sign) -> None:
    """Replace the content of `lock` in place: the file lock belongs to its inode."""
    # The text has the same length each time, so that one write replaces it completely.
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
    """Create `folder` and own it during the block; waits, with one line, while another process does.

    Ownership ends with the process, also after a kill: at once for others on the same machine, after a minute and a
    half without a heartbeat for those on other machines. Raises CheckpointError if the folder cannot be created, and if
    another process still owns it after `patience_seconds` (None waits without limit).
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
    """Remove a finished run's folder; only after its export, so that a crash before loses nothing.

    The folder is renamed first: otherwise a kill meanwhile would leave old checkpoints for a new run.
    """
    removed = _clear(folder)
    try:
        folder.replace(removed)
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
    _clear(folder)


def run_folder_name(settings: Mapping[str, Any], inputs: Mapping[str, str]) -> str:
    """Return the name of a run's folder: `inputs` are the digests of its input manifests, by name."""
    order = ("tokens", "tokenizer", "initial_model", "counts", "order_model", "order_words")
    # The tenth teacher follows the ninth. No run has both teachers and members.
    several = (name for name in inputs if name.startswith((TEACHER, MEMBER)))
    teachers = sorted(several, key=lambda name: (len(name), name))
    read = [inputs[name] for name in (*order, *teachers) if name in inputs]
    return digest({"settings": dict(settings), "inputs": read})


def _is_unused(folder: Path) -> bool:
    """Return whether a folder contains nothing but a lock, so that nothing was trained in it."""
    return {path.name for path in folder.iterdir()} <= {"lock", WANTED}


def clear_finished(checkpoints: Path, finished: Container[str]) -> Iterator[Path]:
    """Remove remains of killed runs from the folder of all run folders, but nothing that a run can continue from.

    `finished` are the names of runs whose models exist; returns the removed folders. Run folders that a process of this
    machine owns are not touched.
    """
    for folder in sorted(checkpoints.iterdir() if checkpoints.is_dir() else ()):
        if folder.name.endswith(".removed"):
            shutil.rmtree(folder, ignore_errors=True)
            yield folder
        elif folder.is_dir() and (
            folder.name in finished or {path.name for path in folder.iterdir()} <= {"lock", WANTED}
        ):
            with suppress(CheckpointError), locked_run_folder(folder, patience_seconds=0):
                remove_run_folder(folder)
                yield folder


def _clear(folder: Path) -> Path:
    """Finish a killed removal of `folder`; returns the name under which it is removed."""
    removed = folder.with_name(f".{folder.name}.removed")
    shutil.rmtree(removed, ignore_errors=True)
    return removed


def _acquire(folder: Path, lock: Path, owner: Owner, patience_seconds: float | None) -> tuple[int, bool]:
    """Return the descriptor that holds the lock, and whether another process had it first."""
    began = changed = time.monotonic()
    seen, waited = None, False
    while True:
        descriptor = _open(folder, lock)
        is_free = _try_lock(descriptor)
        if is_free is not False and not _is_current(descriptor, lock):
            # The former owner finished and removed the folder during the wait.
            os.close(descriptor)
            continue
        sign = read_sign(lock)
        if sign != seen:
            seen, changed = sign, time.monotonic()
        # The former owner is gone: it recorded its end, or cannot be alive while this process holds the lock, or has no
        # heartbeat.
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
            # If the folder was removed meanwhile, or cannot be written, no request can be left.
            with suppress(OSError):
                (folder / WANTED).write_text(str(owner), encoding="utf-8")
        if patience_seconds is not None and time.monotonic() - began > patience_seconds:
            owned_by = "another process" if sign is None else str(sign.owner)
            end = "" if sign is None else f" or end it ({sign.owner.how_to_end})"
            raise CheckpointError(
                f"{folder}: {owned_by} still trains in this folder after {patience_seconds:.0f} seconds of waiting; "
                f"wait for its end{end}, then run the same command again"
            )
        time.sleep(POLL_SECONDS)


def _open(folder: Path, lock: Path) -> int:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
    except FileNotFoundError:
        # The owner finished and removed the folder between these two lines.
        return _open(folder, lock)
    except OSError as error:
        raise CheckpointError(f"{folder}: the run folder cannot be made: {error.strerror}") from error


def _try_lock(descriptor: int) -> bool | None:
    """Return whether the file lock was free and is now ours; None if the file system has no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is_still_ours(lock: Path, owner: Owner) -> bool:
    """Return whether the lock is still ours: without locks across machines, the last of several new owners wins a
    moment later."""
    time.sleep(2 * POLL_SECONDS)
    return _is_owned_by(owner, lock)


def _is_current(descriptor: int, lock: Path) -> bool:
    try:
        return os.fstat(descriptor).st_ino == lock.stat().st_ino
    except OSError:
        return False
