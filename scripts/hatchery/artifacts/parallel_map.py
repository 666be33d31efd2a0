"""Runs independent tasks in several processes, and keeps the results of finished tasks if the job is killed.

Each task writes one file and returns a small JSON object (facts). File and facts together are one part of the job's
result. A part is stored under a digest of the task's inputs, settings and code. So a job that was killed continues with
the missing parts, and never uses parts that were made with other settings or other code. A part that does not match its
checksum is made again. The order of the parts, their bytes, and errors do not depend on the number of processes.
"""

import hashlib
import multiprocessing
import os
import shutil
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache, partial
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, TypeVar

from hatchery.artifacts.atomic import atomic_path, json_value, write_json
from hatchery.artifacts.checksums import digest, sha256_file
from hatchery.errors import HatcheryError

Task = TypeVar("Task")
Facts = dict[str, Any]
"""JSON object that a task returns, for example numbers of documents and tokens."""
Work = Callable[[Task, Path], Facts]
# Number of submitted tasks per process. The number is large enough to keep all processes busy while one part takes
# long, and small enough to stop soon after an error.
_PENDING_PER_WORKER = 4


@dataclass(frozen=True)
class Part:
    """The result of one task: the file that the task wrote, and the facts that the task returned."""

    path: Path
    facts: Facts


def make_parts(
    tasks: Sequence[Task], work: Work[Task], keys: Sequence[Any], folder: Path, workers: int = 1
) -> Iterator[Part]:
    """Run `work(task, path)` for each task, and yield the results (parts) in the order of the tasks.

    `work` writes a file at `path`, a temporary name, and returns facts. If there are several workers, `work` must be
    importable (a function of a module, or a `partial` of such a function), and tasks must be picklable. `keys` are JSON
    values, one per task, all different. A key contains everything that determines the task's result, except for the
    code. If several tasks fail, the error of the first failed task is raised. Finished parts remain in `folder` for the
    next attempt. The caller removes the folder after using the parts.
    """
    names = [digest([_code(), key])[:32] for key in keys]
    if len(set(names)) != len(tasks):
        raise ValueError(f"expected one key per task, all different; got {len(keys)} keys for {len(tasks)} tasks")
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.glob(".*.partial"):
        stale.unlink()
    if workers <= 1 or len(tasks) <= 1:
        for task, name in zip(tasks, names, strict=True):
            yield _make(work, task, folder / name)
        return
    yield from _in_processes(tasks, work, names, folder, min(workers, len(tasks)))


@cache
def _code() -> str:
    """Return a digest of the library's source code. The result of a finished task is reused only if this digest is
    unchanged.
    """
    root = Path(__file__).resolve().parents[1]
    sources = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        sources.update(path.read_bytes())
    return sources.hexdigest()


def _in_processes(
    tasks: Sequence[Task], work: Work[Task], names: Sequence[str], folder: Path, workers: int
) -> Iterator[Part]:
    # Child processes are spawned, not forked, because a forked child of a process with threads (Arrow's pool) may
    # deadlock.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_end_with_the_parent) as pool:
        pending: deque[Future[Part]] = deque()
        waiting = iter(zip(tasks, names, strict=True))

        def submit() -> None:
            for task, name in waiting:
                pending.append(pool.submit(partial(_make, work, task, folder / name)))
                if len(pending) >= workers * _PENDING_PER_WORKER:
                    return

        try:
            submit()
            while pending:
                yield pending.popleft().result()
                submit()
        except BrokenProcessPool as error:
            raise HatcheryError(
                f"{folder}: a worker process was killed, probably for lack of memory; run the same command again with "
                "fewer threads or more memory; finished parts are not computed again"
            ) from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _end_with_the_parent() -> None:
    """Make this worker process end when its parent process has ended for any reason, and immediately after Ctrl-C.

    Without this function, a worker would wait forever for its next task, because the worker itself keeps the queue
    open.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, name="parent", daemon=True).start()


def _make(work: Work[Task], task: Task, path: Path) -> Part:
    facts_path = path.with_name(f"{path.name}.json")
    known = _finished(path, facts_path)
    if known is not None:
        return Part(path, known)
    for damaged in (path, facts_path):
        if damaged.is_dir():
            shutil.rmtree(damaged)
    with atomic_path(path) as partial_path:
        facts = work(task, partial_path)
    # Write the checksum last, because a part counts as finished if its file and its facts match the checksum.
    write_json(facts_path, {"sha256": _checksum(path, facts), "facts": facts})
    return Part(path, facts)


def _finished(path: Path, facts_path: Path) -> Facts | None:
    try:
        value = json_value(facts_path.read_text(encoding="utf-8"))
        if _checksum(path, value["facts"]) == value["sha256"]:
            return dict(value["facts"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


def _checksum(path: Path, facts: Facts) -> str:
    """Return one checksum of a task's result: the file that the task wrote, and the facts that it returned."""
    return digest([sha256_file(path), facts])
