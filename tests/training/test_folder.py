"""One process at a time owns a run folder, and the lock ends with its process."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from hatchery.errors import CheckpointError
from hatchery.training.run_folder import locked_run_folder, remove_run_folder

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


def test_a_run_folder_that_cannot_be_made_ends_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CheckpointError, match="cannot be made"), locked_run_folder(tmp_path / "file" / "run"):
        pass
