"""Parts are in task order for any number of processes, finished parts survive a failure, and foreign parts
are ignored."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from faults import DAMAGE

from hatchery.artifacts.parallel_map import make_parts
from hatchery.errors import SourceError


def write_number(log: Path, task: int, path: Path) -> dict[str, Any]:
    if task < 0:
        path.write_text("half")
        raise SourceError(f"task {task} is damaged")
    path.write_text(f"part {task}")
    (log / f"{task}").write_text((log / f"{task}").read_text() + "x" if (log / f"{task}").exists() else "x")
    return {"number": task}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    folder = tmp_path / "log"
    folder.mkdir()
    return folder


def runs(log: Path) -> dict[str, int]:
    return {path.name: len(path.read_text()) for path in sorted(log.iterdir())}


@pytest.mark.parametrize("workers", [1, 2])
def test_parts_come_in_task_order(log: Path, tmp_path: Path, workers: int) -> None:
    tasks = list(range(12))
    parts = list(make_parts(tasks, partial(write_number, log), tasks, tmp_path / "parts", workers))
    assert [part.facts["number"] for part in parts] == tasks
    assert [part.path.read_text() for part in parts] == [f"part {task}" for task in tasks]


@pytest.mark.parametrize("workers", [1, 2])
def test_the_first_error_in_task_order_is_raised_and_finished_parts_are_kept(
    log: Path, tmp_path: Path, workers: int
) -> None:
    work = partial(write_number, log)
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / ".part.4711-0123abcd.partial").write_text("half of a part of a killed attempt")
    with pytest.raises(SourceError, match="task -1 is damaged"):
        list(make_parts([1, -1, 2, -2], work, ["one", "bad", "two", "worse"], folder, workers))
    assert not [path for path in folder.iterdir() if path.name.endswith(".partial")]
    parts = list(make_parts([1, 3, 2], work, ["one", "three", "two"], folder, workers))
    assert [part.facts["number"] for part in parts] == [1, 3, 2]
    assert runs(log)["1"] == 1


def test_a_part_of_another_key_or_of_other_code_is_not_taken(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = partial(write_number, log)
    for key in ("seed 0", "seed 1"):
        list(make_parts([1], work, [key], tmp_path / "parts"))
    assert runs(log) == {"1": 2}
    monkeypatch.setattr("hatchery.artifacts.parallel_map._code", lambda: "edited")
    list(make_parts([1], work, ["seed 1"], tmp_path / "parts"))
    assert runs(log) == {"1": 3}


@pytest.mark.parametrize("of", ["part", "facts"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_part_is_made_again(log: Path, tmp_path: Path, damage: str, of: str) -> None:
    work = partial(write_number, log)
    path = next(make_parts([1], work, ["key"], tmp_path / "parts")).path
    DAMAGE[damage](path if of == "part" else path.with_name(f"{path.name}.json"))
    part = next(make_parts([1], work, ["key"], tmp_path / "parts"))
    assert (part.path.read_text(), part.facts) == ("part 1", {"number": 1})
    assert runs(log) == {"1": 2}


SLOW = """
import sys, time
from pathlib import Path
from hatchery.artifacts.parallel_map import make_parts

def work(task, path):
    Path(sys.argv[1], f"{task}.started").touch()
    time.sleep(100)

if __name__ == "__main__":
    list(make_parts([1, 2, 3], work, [1, 2, 3], Path(sys.argv[1], "parts"), 2))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_workers_end_with_their_parent(number: signal.Signals, tmp_path: Path, repository: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    surroundings = {**os.environ, "PYTHONPATH": str(repository / "scripts")}
    command = [sys.executable, str(tmp_path / "slow.py"), str(tmp_path)]
    process = subprocess.Popen(command, env=surroundings, stderr=subprocess.DEVNULL)
    until(lambda: len(list(tmp_path.glob("*.started"))) == 2)
    children = psutil.Process(process.pid).children(recursive=True)
    assert len(children) >= 2
    process.send_signal(number)
    if number == signal.SIGINT:
        # Ctrl-C in a terminal reaches all processes. If only the parent got the signal, it would wait for its tasks.
        for child in children:
            child.send_signal(number)
    assert process.wait(10) != 0
    _, alive = psutil.wait_procs(children, timeout=10)
    assert not alive


def test_a_signal_of_ctrl_c_ends_a_stage_also_where_it_was_ignored(tmp_path: Path, repository: Path) -> None:
    # No process writes into the pipe, so the stage waits inside a system call.
    os.mkfifo(tmp_path / "call.json")
    command = [sys.executable, str(repository / "scripts/run.py"), "convert_corpus", str(tmp_path / "call.json")]
    script = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh", *command]
    process = subprocess.Popen(script, stderr=subprocess.DEVNULL)

    def ignored() -> int:
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
        return int(status.partition("SigIgn:")[2].split()[0], 16) >> (signal.SIGINT - 1) & 1

    until(ignored)
    until(lambda: not ignored())
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == -signal.SIGINT


def until(happened: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_equal_keys_are_a_defect(log: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="all different"):
        list(make_parts([1, 2], partial(write_number, log), ["key", "key"], tmp_path / "parts"))
