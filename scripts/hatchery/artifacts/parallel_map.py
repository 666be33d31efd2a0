"""Work in parts: independent tasks in several processes, with their files in task order, kept after a kill.

Each task writes one file and returns a few facts about it. Both are stored under the task's key, the digest of
everything that determines them. So a killed job continues with the missing parts, and a part of other settings or of
other code is never used. A part that differs from its checksum is made again. Order, bytes and errors do not depend on
the number of processes.
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
"""Facts on a finished part, as JSON."""
Work = Callable[[Task, Path], Facts]
# Enough to keep all processes busy during one long part, few enough to stop soon after an error.
_PENDING_PER_WORKER = 4


@dataclass(frozen=True)
class Part:
    """A finished part: its file, and the facts that its task returned."""

    path: Path
    facts: Facts


def make_parts(
    tasks: Sequence[Task], work: Work[Task], keys: Sequence[Any], folder: Path, workers: int = 1
) -> Iterator[Part]:
    """Run `work(task, path)` for every task and yield the parts in the order of the tasks.

    `work` writes the file at `path`, a temporary name, and returns facts as JSON; with more than one worker it must be
    importable (a function of a module, or a partial of one) and the tasks picklable. `keys` are JSON values, one per
    task and all different: everything that determines the part except for this code. The first error in task order is
    raised; finished parts stay in `folder` for the next attempt. The caller removes the folder after using the parts.
    """
    names = [digest([_code(), key])[:32] for key in keys]
    if len(set(names)) != len(tasks):
        raise ValueError("parts need one key for each task, all different")
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
    """Return a digest of the library's sources, so that parts made before a fix of a reader are not used after it."""
    root = Path(__file__).resolve().parents[1]
    sources = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        sources.update(path.read_bytes())
    return sources.hexdigest()


def _in_processes(
    tasks: Sequence[Task], work: Work[Task], names: Sequence[str], folder: Path, workers: int
) -> Iterator[Part]:
    # A forked child of a process with threads (Arrow's pool) may lock up, so the children are spawned.
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
                f"{folder}: a worker process was killed, probably for lack of memory; "
                "start again with fewer threads or more memory: the finished parts are kept"
            ) from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _end_with_the_parent() -> None:
    """End this worker when its parent has ended for any reason, and immediately after Ctrl-C.

    A killed parent does not close the queue: a worker holds both ends, and would wait for its next task for ever.
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
    # The checksum is written last: a part counts as finished only if its file and its facts match it.
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
    """Return one checksum for the file of a part and its facts, because both affect the result."""
    return digest([sha256_file(path), facts])
