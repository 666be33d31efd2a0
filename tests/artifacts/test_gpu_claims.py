"""Jobs on one machine never share a GPU, however the jobs end; the GPUs are simulated."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hatchery.artifacts.gpu_claims import claim, lock_folder, release, visible_gpus
from hatchery.errors import ConfigError

SHOW = "import os; print(os.environ.get('CUDA_VISIBLE_DEVICES'))"
HOLD = "import os, time; print(os.environ['CUDA_VISIBLE_DEVICES'], flush=True); time.sleep(60)"


def start(repository: Path, locks: Path, gpus: int, code: str, visible: str | None) -> subprocess.Popen[str]:
    environment = {key: value for key, value in os.environ.items() if key != "CUDA_VISIBLE_DEVICES"}
    if visible is not None:
        environment["CUDA_VISIBLE_DEVICES"] = visible
    command = [sys.executable, "scripts/claim_gpus.py", "--gpus", str(gpus), "--locks", str(locks), "--"]
    return subprocess.Popen(
        [*command, sys.executable, "-c", code],
        cwd=repository,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_concurrent_commands_get_different_gpus_and_a_killed_one_gives_its_own_back(repository, tmp_path):
    running = [start(repository, tmp_path, 1, HOLD, "2,3,5") for _ in range(3)]
    try:
        assert sorted(first_line(process) for process in running) == ["2", "3", "5"]
        late = start(repository, tmp_path, 1, SHOW, "2,3,5")
        assert late.stderr is not None
        assert late.stderr.readline().startswith("waiting for 1 of the GPUs 2, 3, 5")
        assert late.poll() is None
        running[0].send_signal(signal.SIGKILL)
        free, _ = late.communicate(timeout=60)
        assert free.strip() in ("2", "3", "5")
        assert late.returncode == 0
    finally:
        for process in running:
            process.kill()
            process.communicate()


def test_the_command_replaces_the_process_and_its_status_and_signals_are_its_own(repository, tmp_path):
    failing = start(repository, tmp_path, 1, "raise SystemExit(7)", "0,1")
    failing.communicate(timeout=60)
    assert failing.returncode == 7
    running = start(repository, tmp_path, 1, HOLD, "0,1")
    first_line(running)
    running.send_signal(signal.SIGTERM)
    running.communicate(timeout=60)
    assert running.returncode == -signal.SIGTERM
    # Without GPUs, the command runs and claims nothing.
    for visible in ("", "-1"):
        process = start(repository, tmp_path / "locks", 1, SHOW, visible)
        shown, errors = process.communicate(timeout=60)
        assert (process.returncode, shown.strip(), errors) == (0, visible, "")
    assert not (tmp_path / "locks").exists()
    command = [sys.executable, "scripts/claim_gpus.py", "--gpus", "1", "--", "no_such_program"]
    result = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr.strip() == "error: claim_gpus: no_such_program: No such file or directory"


@pytest.mark.parametrize(("visible", "gpus"), [("4", 1), ("1,2", 2), ("1", 8)])
def test_a_command_that_takes_every_gpu_shares_none_with_one_that_wants_fewer(repository, tmp_path, visible, gpus):
    large = start(repository, tmp_path, gpus, HOLD, visible)
    try:
        assert first_line(large) == visible
        small = start(repository, tmp_path, 1, SHOW, visible)
        assert small.stderr is not None
        assert small.stderr.readline().startswith(f"waiting for 1 of the GPUs {visible.replace(',', ', ')}")
        large.kill()
        free, _ = small.communicate(timeout=60)
        assert free.strip() == visible.split(",")[0]
    finally:
        large.kill()
        large.communicate()


def test_jobs_of_slurm_whose_gpus_all_begin_at_0_do_not_wait_for_each_other():
    shared = lock_folder({})
    assert lock_folder({"CUDA_VISIBLE_DEVICES": "0,1"}) == shared
    # A job without allocated GPUs must share the machine's GPUs with all other jobs.
    assert lock_folder({"SLURM_JOB_ID": "7"}) == shared
    first, second = (lock_folder({"CUDA_VISIBLE_DEVICES": "0", "SLURM_JOB_ID": job}) for job in ("7", "8"))
    assert len({first, second, shared}) == 3


def test_several_gpus_are_claimed_at_once_or_not_at_all(tmp_path):
    names = ["a", "b", "c", "d"]
    first = claim(names, 3, tmp_path / "new" / "locks")
    assert list(first) == ["a", "b", "c"]
    # The folder was created, with access only for this user.
    assert (tmp_path / "new" / "locks").stat().st_mode & 0o777 == 0o700
    claimed = []

    def waiting() -> None:
        # While the larger job waits, a smaller job can claim the free GPU.
        smaller = claim(["d"], 1, tmp_path / "new" / "locks")
        claimed.append(list(smaller))
        release(smaller)
        release(first)

    second = claim(names, 2, tmp_path / "new" / "locks", waiting, poll_seconds=0.01)
    assert claimed == [["d"]]
    assert list(second) == ["a", "b"]
    release(second)


def test_jobs_that_share_a_gpu_are_spread_and_share_none_with_one_that_wants_it_whole(tmp_path):
    def full() -> None:
        raise TimeoutError

    shares = [claim(["a", "b"], 1, tmp_path, full, jobs_per_gpu=2) for _ in range(4)]
    assert sorted(name for held in shares for name in held) == ["a", "a", "b", "b"]
    with pytest.raises(TimeoutError):
        claim(["a", "b"], 1, tmp_path, full, jobs_per_gpu=2)
    release(shares[1])
    (other,) = shares[1]
    with pytest.raises(TimeoutError):
        claim([other], 1, tmp_path, full)
    for held in shares:
        release(held)
    whole = claim([other], 1, tmp_path, full)
    with pytest.raises(TimeoutError):
        claim([other], 1, tmp_path, full, jobs_per_gpu=2)
    release(whole)


def test_a_job_with_two_slots_gets_two_gpus(tmp_path):
    taken = claim(["b"], 1, tmp_path, jobs_per_gpu=2)
    # Slot 0 of GPU b is taken, so that the job gets slot 0 of GPU a and slot 1 of GPU b.
    both = claim(["a", "b"], 2, tmp_path, jobs_per_gpu=2)
    assert sorted(both) == ["a", "b"]
    release(taken)
    release(both)


@pytest.mark.parametrize("wanted", [0, 3])
def test_more_gpus_than_there_are_is_an_error_and_no_endless_wait(tmp_path, wanted):
    with pytest.raises(ConfigError, match=f"the job needs {wanted} GPUs, but this process may use 2 GPUs \\(0, 1\\)"):
        claim(["0", "1"], wanted, tmp_path)


def test_gpus_are_those_that_the_environment_names_else_those_that_the_driver_or_the_device_files_list(
    tmp_path: Path,
) -> None:
    program = tmp_path / "nvidia-smi"
    # A GPU may be divided into instances, each on a line below its GPU.
    lines = (
        "GPU 0: NVIDIA H100 (UUID: GPU-1)",
        "  MIG 1g.10gb Device 0: (UUID: MIG-1)",
        "GPU 1: NVIDIA H100 (UUID: GPU-2)",
    )
    program.write_text("".join(["#!/bin/sh\n", *(f"echo '{line}'\n" for line in lines)]))
    program.chmod(0o755)
    for chosen, names in (
        ("3, 1", ["3", "1"]),
        ("GPU-1a,GPU-2b", ["GPU-1a", "GPU-2b"]),
        ("", []),
        ("-1", []),
        ("NoDevFiles", []),
        (None, ["0", "1"]),
    ):
        environment = {"PATH": str(tmp_path)} | ({} if chosen is None else {"CUDA_VISIBLE_DEVICES": chosen})
        assert visible_gpus(environment) == names
    assert visible_gpus({"PATH": ""}, tmp_path / "no_devices") == []
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    assert visible_gpus({"PATH": ""}, tmp_path) == ["0", "1"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda locks: locks.touch(), r"locks: got a file, expected a folder for claims on GPUs; remove "),
        (lambda locks: (locks.mkdir(), locks.chmod(0o777)), "other users may write in this folder for claims on GPUs"),
    ],
)
def test_claims_that_others_could_have_made_are_refused(
    make: Callable[[Path], object], message: str, tmp_path: Path
) -> None:
    make(tmp_path / "locks")
    with pytest.raises(ConfigError, match=message):
        claim(["0"], 1, tmp_path / "locks")


def test_a_folder_of_claims_of_somebody_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    with pytest.raises(
        ConfigError, match=rf"belongs to user {owner}, expected {owner + 1}; remove [^ ]+, or set TMPDIR"
    ):
        claim(["0"], 1, tmp_path)
    assert not any(tmp_path.iterdir())
