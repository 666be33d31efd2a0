"""Only one process at a time owns a run folder; signs of life show an owner where file locks do not work."""

import fcntl
import subprocess
import sys
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hatchery.errors import CheckpointError
from hatchery.training import run_folder
from hatchery.training.checkpoints import Position
from hatchery.training.run_checkpoints import RunCheckpoints
from hatchery.training.run_folder import (
    WANTED,
    Owner,
    RunLease,
    Sign,
    clear_finished,
    locked_run_folder,
    read_sign,
    remove_run_folder,
    run_folder_name,
    write_sign,
)
from hatchery.training.runtime_settings import RuntimeSettings
from hatchery.training.topology import SINGLE_PROCESS
from hatchery.typed import build

HOLDER = """
import sys, time
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from hatchery.training.run_folder import locked_run_folder
with locked_run_folder(Path(sys.argv[1])):
    print("locked", flush=True)
    time.sleep(60)
"""


def start_holder(folder: Path, repository: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HOLDER, str(folder), str(repository / "scripts")]
    holder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None and holder.stdout.readline() == "locked\n"
    return holder


def test_a_second_process_waits_until_the_first_is_killed(
    tmp_path: Path, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    holder = start_holder(folder, repository)
    killer = subprocess.Popen([sys.executable, "-c", f"import os, time; time.sleep(0.5); os.kill({holder.pid}, 9)"])
    started = time.monotonic()
    with locked_run_folder(folder):
        assert time.monotonic() - started > 0.3
    assert "another process trains" in capsys.readouterr().err
    holder.wait()
    killer.wait()


def test_a_folder_that_its_owner_removed_is_made_anew(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with locked_run_folder(folder):
        (folder / "step_00000001").mkdir()
        remove_run_folder(folder)
        assert not folder.exists()
    with locked_run_folder(folder):
        assert [path.name for path in folder.iterdir()] == ["lock"]


def test_what_killed_runs_left_is_removed_and_what_can_go_on_is_kept(tmp_path: Path, repository: Path) -> None:
    made = {"tokens": "aa", "tokenizer": "bb"}
    finished, unfinished, empty, locked = (
        tmp_path / name
        for name in (run_folder_name({"steps": 10}, made), run_folder_name({"steps": 20}, made), "empty", "locked")
    )
    for folder in (finished, unfinished):
        (folder / "step_00000010").mkdir(parents=True)
        (folder / "lock").touch()
    empty.mkdir()
    (empty / "lock").write_text("of a process that was killed")
    (tmp_path / ".old.removed/step_00000010").mkdir(parents=True)
    holder = start_holder(locked, repository)
    try:
        assert {path.name for path in clear_finished(tmp_path, {finished.name, locked.name})} == {
            ".old.removed",
            finished.name,
            "empty",
        }
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted([unfinished.name, "locked"])
    finally:
        holder.kill()
        holder.communicate()


def test_the_name_of_a_run_folder_depends_on_each_input_and_on_the_order_of_the_teachers() -> None:
    plain = {"tokens": "a", "tokenizer": "b"}
    added = (
        "initial_model",
        "counts",
        "order_model",
        "order_words",
        "order_corpus",
        "teacher",
        "teacher_2",
        "member_2",
    )
    changed = [*({**plain, name: "c"} for name in (*plain, *added))]
    assert run_folder_name({}, plain) not in {run_folder_name({}, inputs) for inputs in changed}
    teachers = {f"teacher_{number}": str(number) for number in range(2, 11)}
    swapped = {**teachers, "teacher_9": "10", "teacher_10": "9"}
    names = [run_folder_name({}, {**of, **plain}) for of in (teachers, dict(reversed(teachers.items())), swapped)]
    assert names[0] == names[1] != names[2]


def test_a_run_folder_that_cannot_be_made_ends_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CheckpointError, match="cannot be made"), locked_run_folder(tmp_path / "file" / "run"):
        pass


HERE = Owner.of_this_process(Path("out/manifest.json"), {"SLURM_JOB_ID": "102", "SLURMD_NODENAME": "n1"})
ELSEWHERE = replace(HERE, token="other", host="n2", machine="another start of another machine", job="101", pid=5)


@pytest.fixture(autouse=True)
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_folder, "BEAT_SECONDS", 0.02)
    monkeypatch.setattr(run_folder, "STALE_SECONDS", 0.5)
    monkeypatch.setattr(run_folder, "POLL_SECONDS", 0.02)


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    """The lock file of a run folder whose owner is a process on another machine, with file locks invisible here."""
    path = tmp_path / "run" / "lock"
    path.parent.mkdir()
    path.touch()
    write_sign(path, Sign(ELSEWHERE, 3))
    return path


def test_an_owner_outside_of_slurm_is_ended_on_its_own_host() -> None:
    alone = replace(ELSEWHERE, job=None)
    assert (str(alone), alone.how_to_end) == ("process 5 on n2", "kill 5 on n2")


def wait_for_beat(lock: Path, beat: int) -> None:
    deadline = time.monotonic() + 30
    while (sign := read_sign(lock)) is None or sign.beat < beat:
        assert time.monotonic() < deadline, f"never came to beat {beat}: {sign}"
        time.sleep(0.01)


def test_the_owner_shows_life_while_it_owns_the_folder_and_leaves_it_free(tmp_path: Path) -> None:
    with locked_run_folder(tmp_path / "run", HERE) as lease:
        assert not lease.waited
        wait_for_beat(lease.lock, 3)
        sign = read_sign(lease.lock)
        assert sign is not None and sign.owner == HERE
        lease.verify()
    assert read_sign(lease.lock) is None


def test_a_dead_owner_on_another_machine_is_waited_out_once(lock: Path, capsys: pytest.CaptureFixture[str]) -> None:
    began = time.monotonic()
    with locked_run_folder(lock.parent, HERE) as lease:
        assert time.monotonic() - began >= 0.5
        assert lease.waited
        sign = read_sign(lock)
        assert sign is not None and sign.owner == HERE
    message = capsys.readouterr().err.splitlines()[0]
    assert message == f"waiting: another process trains in {lock.parent} (Slurm job 101, process 5 on n2)"


def test_a_living_owner_on_another_machine_is_refused_by_name_with_what_to_do(lock: Path) -> None:
    ended = threading.Event()

    def live() -> None:
        beat = 3
        while not ended.wait(0.02):
            beat += 1
            write_sign(lock, Sign(ELSEWHERE, beat))

    thread = threading.Thread(target=live)
    thread.start()
    try:
        with (
            pytest.raises(
                CheckpointError,
                match=r"Slurm job 101, process 5 on n2 still trains .* after 1 seconds .* \(scancel 101\)",
            ),
            locked_run_folder(lock.parent, HERE, patience_seconds=1.0),
        ):
            pass
    finally:
        ended.set()
        thread.join()
    sign = read_sign(lock)
    assert sign is not None and sign.owner == ELSEWHERE


def test_an_owner_that_was_taken_for_dead_writes_nothing_more(tmp_path: Path, runtime_slice: Any) -> None:
    options = build(RuntimeSettings, runtime_slice(), "runtime")
    with locked_run_folder(tmp_path / "run", HERE) as lease:
        write_sign(lease.lock, Sign(ELSEWHERE, 0))
        checkpoints = RunCheckpoints(tmp_path / "run", SINGLE_PROCESS, options, lease=lease)
        save: Any = partial(checkpoints.save, Position(5, 50), None, dict, str)
        for attempt in (lease.verify, save):
            with pytest.raises(CheckpointError, match="Slurm job 101, process 5 on n2 has taken over the run"):
                attempt()
    sign = read_sign(lease.lock)
    assert sign is not None and sign.owner == ELSEWHERE and sign.beat == 0


def test_on_the_same_machine_the_file_lock_alone_tells_that_an_owner_is_dead(lock: Path) -> None:
    write_sign(lock, Sign(replace(ELSEWHERE, machine=HERE.machine), 3))
    with locked_run_folder(lock.parent, HERE) as lease:
        assert not lease.waited


@pytest.mark.parametrize(("output", "asks"), [(HERE.output, True), ("another/manifest.json", False)])
def test_only_another_attempt_of_the_same_job_asks_the_owner_to_stop(lock: Path, output: str, asks: bool) -> None:
    write_sign(lock, Sign(replace(ELSEWHERE, output=output), 3))
    with locked_run_folder(lock.parent, HERE):
        # The new owner has removed its own request.
        assert not (lock.parent / WANTED).exists()
    write_sign(lock, Sign(replace(ELSEWHERE, output=output), 4))
    with pytest.raises(CheckpointError), locked_run_folder(lock.parent, HERE, patience_seconds=0.1):
        pass
    assert (lock.parent / WANTED).exists() is asks


def test_the_owner_hears_that_it_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with locked_run_folder(tmp_path / "run", HERE) as lease:
        assert not lease.is_claimed
        lease.lock.with_name(WANTED).write_text(str(ELSEWHERE))
        deadline = time.monotonic() + 30
        while not lease.is_claimed:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert "Slurm job 101, process 5 on n2 wants to take over this run" in capsys.readouterr().err


def test_file_systems_without_locks_are_served_by_signs_of_life(lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with (
        locked_run_folder(lock.parent, HERE) as lease,
        pytest.raises(CheckpointError, match="still trains"),
        locked_run_folder(lock.parent, replace(HERE, token="third"), patience_seconds=0.2),
    ):
        pass
    assert lease.waited


def test_what_is_no_sign_of_life_has_no_owner(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    assert read_sign(lock) is None
    for text in ("", "{", '{"owner": {}, "beat": 1}', "[]"):
        lock.write_text(text)
        assert read_sign(lock) is None


def test_a_lease_without_a_folder_ends_quietly(tmp_path: Path) -> None:
    with locked_run_folder(tmp_path / "run", HERE) as lease:
        remove_run_folder(tmp_path / "run")
        time.sleep(0.1)
        lease.verify()
    assert isinstance(lease, RunLease)
