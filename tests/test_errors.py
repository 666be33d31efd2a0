"""Errors of the machine end in one line, with any type of exception; defects keep their traceback."""

import argparse
import errno
import os
import re
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from hatchery.artifacts.atomic import atomic_path
from hatchery.command import run_command
from hatchery.errors import ModelError, links_lost, refusal, writing_refused
from hatchery.workflow.rules import with_plain_errors


class ForeignError(Exception):
    """An exception of a library written in Rust."""


FULL = [
    OSError(errno.ENOSPC, "No space left on device", "results/x"),
    ForeignError("Error while serializing: I/O error: No space left on device (os error 28)"),
    ForeignError('Error while serializing: IoError(Os { code: 28, kind: StorageFull, message: "No space" })'),
]
MEMORY = [
    MemoryError(),
    OSError(errno.ENOMEM, "Cannot allocate memory"),
    RuntimeError("[enforce fail at alloc_cpu.cpp:121] . DefaultCPUAllocator: can't allocate memory: you tried ..."),
    RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB."),
    RuntimeError("std::bad_alloc"),
    RuntimeError("can't start new thread"),
    ImportError("libtorch_cpu.so: failed to map segment from shared object"),
]


def raising(error: Exception) -> Callable[[argparse.Namespace], None]:
    def main(_: argparse.Namespace) -> None:
        raise error

    return main


REFUSED = [
    *(
        (error, ".*: No space left on device; free disk space and run again; finished results are kept")
        for error in FULL
    ),
    *((error, "error: not enough memory; run again with fewer processes.*") for error in MEMORY),
    (
        OSError(errno.EROFS, "Read-only file system", "results/x"),
        "error: results/x: Read-only file system; results need a writable folder.*",
    ),
    # Text that an error quotes from a file must not control the terminal.
    (ModelError("x.jsonl, line 1: \x1b[2J ok"), re.escape("error: x.jsonl, line 1: \ufffd[2J ok")),
]


@pytest.mark.parametrize(("error", "line"), REFUSED, ids=repr)
def test_what_a_command_refuses_is_one_line_with_a_remedy(error: Exception, line: str, capsys, monkeypatch) -> None:
    monkeypatch.setattr(sys, "argv", ["command"])
    with pytest.raises(SystemExit) as stop:
        run_command(raising(error), argparse.ArgumentParser())
    assert stop.value.code == 1
    [message] = capsys.readouterr().err.splitlines()
    assert re.fullmatch(line, message), message


def test_a_full_disk_and_a_long_name_end_the_planning_in_one_line_and_a_defect_does_not() -> None:
    def plan(number: int) -> None:
        raise OSError(number, os.strerror(number), "results/settings/x.json")

    with pytest.raises(SystemExit, match=r"^error: results/settings/x\.json: No space left on device; free disk space"):
        with_plain_errors(plan)(errno.ENOSPC)
    with pytest.raises(SystemExit, match=r"^error: results/settings/x\.json: File name too long; file names may have"):
        with_plain_errors(plan)(errno.ENAMETOOLONG)
    with pytest.raises(FileNotFoundError):
        with_plain_errors(plan)(errno.ENOENT)


def test_a_full_disk_is_named_where_a_library_does_not_say_what_it_wrote(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    error = OSError(errno.ENOSPC, "No space left on device")
    room = {"f_frsize": 4096, "f_bavail": 1 << 20, "f_files": 1 << 20, "f_favail": 1 << 19}
    disks = {"results": SimpleNamespace(**{**room, "f_bavail": 0})}
    monkeypatch.setattr(os, "statvfs", lambda path: disks.get(str(path), SimpleNamespace(**room)))
    assert str(refusal(error)).startswith("results: No space left on device; free disk space and run again")
    disks["results"] = SimpleNamespace(**{**room, "f_favail": 0})
    assert str(refusal(error)).startswith(
        "results: no more files can be created on this disk, because it has no free inodes; free"
    )
    # Some file systems do not count files.
    disks["results"] = SimpleNamespace(**{**room, "f_files": 0, "f_favail": 0})
    assert str(refusal(error)).startswith("writing: No space left on device; free disk space")


def test_what_a_plan_says_of_names_of_strangers_steers_no_terminal() -> None:
    def plan() -> None:
        raise ModelError("a\x1b[2Jb\u202ec.txt: no such file\nsecond")

    with pytest.raises(SystemExit) as caught:
        with_plain_errors(plan)()
    assert caught.value.code == "error: a\ufffd[2Jb\ufffdc.txt: no such file\nerror: second"


@pytest.mark.parametrize(
    "error",
    [
        KeyError("memory"),
        RuntimeError("shape mismatch"),
        ForeignError("expected value at line 28"),
        OSError(errno.ENOENT, "No such file or directory", "x"),
        ValueError("out of memory of its own"),
    ],
    ids=repr,
)
def test_a_defect_keeps_its_traceback(error: Exception, monkeypatch) -> None:
    assert refusal(error) is None
    monkeypatch.setattr(sys, "argv", ["command"])
    with pytest.raises(type(error)):
        run_command(raising(error), argparse.ArgumentParser())


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space"), *FULL[1:]], ids=repr)
def test_an_output_that_cannot_be_written_is_named_whichever_library_writes_it(
    error: Exception, tmp_path: Path
) -> None:
    with pytest.raises(OSError) as raised, atomic_path(tmp_path / "model.bin"):
        raise error
    assert raised.value.errno == errno.ENOSPC
    assert raised.value.filename == str(tmp_path / "model.bin")
    assert list(tmp_path.iterdir()) == []


def test_other_errors_pass_the_writing_of_an_output_untouched(tmp_path: Path) -> None:
    for error in (ModelError("x (os error 28)"), ForeignError("x"), OSError(errno.ENOSPC, "No space", "elsewhere")):
        with pytest.raises(type(error)) as raised, atomic_path(tmp_path / "model.bin"):
            raise error
        assert raised.value is error
        assert getattr(error, "filename", None) in (None, "elsewhere")


def test_a_real_write_that_fails_names_the_output_and_not_its_temporary_name(repository: Path, tmp_path: Path) -> None:
    code = (
        "from hatchery.command import run_command; import argparse; from hatchery.artifacts.atomic import write_text\n"
    )
    code += f"run_command(lambda _: write_text({str(tmp_path / 'x.txt')!r}, 'x' * 5000), argparse.ArgumentParser())"
    outcome = subprocess.run(
        [sys.executable, "-c", code],
        cwd=repository / "scripts",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome.returncode == 1
    assert re.fullmatch(f"error: {tmp_path}/x.txt: File too large; .*\n", outcome.stderr)


LOCK = """
import multiprocessing, sys
sys.path.insert(0, sys.argv[1])
from hatchery.errors import refusal
try:
    multiprocessing.get_context("spawn").Lock()
except OSError as error:
    print(refusal(error))
"""


@pytest.mark.parametrize("state", ["read-only", "missing"])
def test_a_place_for_semaphores_that_cannot_be_written_is_named_with_its_cure(state: str, repository: Path) -> None:
    # In a separate mount namespace, so that the machine's /dev does not change.
    hidden = {
        "read-only": "mount -t tmpfs -o ro tmpfs /dev/shm",
        "missing": "mount -t tmpfs tmpfs /dev && : > /dev/null",
    }[state]
    script = f'{hidden} && exec "$@"'
    command = ["unshare", "--mount", "sh", "-c", script, "sh", sys.executable, "-c", LOCK, str(repository / "scripts")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout and ("unshare" in done.stderr or "mount" in done.stderr):
        pytest.skip("needs the right to mount")
    assert re.fullmatch(r"/dev/shm: .+; several processes need .+\(compute\.corpus_threads: .+\n", done.stdout)


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_log_on_the_full_disk_does_not_hide_the_status(unbuffered: str, repository: Path) -> None:
    code = "from hatchery.command import run_command; import argparse\n"
    code += "def main(_): raise MemoryError\nrun_command(main, argparse.ArgumentParser())"
    with Path("/dev/full").open("w") as full:
        outcome = subprocess.run(
            [sys.executable, "-c", code],
            cwd=repository / "scripts",
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            stderr=full,
            check=False,
        )
    assert outcome.returncode == 1


def test_a_project_that_cannot_be_written_is_told_before_snakemake_fails(tmp_path: Path, monkeypatch) -> None:
    assert writing_refused(tmp_path) is None
    # Root ignores permissions, and tests may run as root.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert str(writing_refused(tmp_path)).startswith(f"{tmp_path}: this folder is not writable, but Snakemake")


def test_a_clone_without_links_is_told_with_the_cure(repository: Path, tmp_path: Path) -> None:
    assert links_lost(repository) is None
    links = [path.name for path in sorted(repository.iterdir()) if (path.parent / "workflow") in path.resolve().parents]
    assert "profiles" in links
    for name in links:
        (tmp_path / name).write_text("workflow/profiles\n")
    names = " ".join(links)
    assert str(links_lost(tmp_path)).endswith(f"git config core.symlinks true && rm {names} && git checkout {names}")
