"""A forked process behaves as the command does on its own: status, output, folder, environment, signals."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from forked import Forked, python_beside, run, surroundings
from forked_client import SERVER, can_be_forked

SCRIPT = "scripts/clean_experiment.py"


def both(repository: Path, *arguments: str) -> list[tuple[int, str, str]]:
    command = [sys.executable, *arguments]
    choices = {"cwd": repository, "capture_output": True, "text": True}
    done = [run(command, **choices), subprocess.run(command, **choices, check=False)]
    return [(one.returncode, one.stdout, one.stderr) for one in done]


@pytest.mark.parametrize(
    "arguments", [(SCRIPT, "--help"), (SCRIPT,), (SCRIPT, "no_such_experiment"), ("-m", "snakemake", "--version")]
)
def test_status_and_output_are_those_of_the_command(arguments: tuple[str, ...], repository: Path) -> None:
    forked, real = both(repository, *arguments)
    assert forked == real


def test_python_in_a_shell_command_is_forked_and_keeps_its_status(repository: Path) -> None:
    done = subprocess.run(
        f"python {SCRIPT} --help | head -n 1; python {SCRIPT} 2> /dev/null; echo $?; python -c 'print(3)'",
        shell=True,
        cwd=repository,
        env={**os.environ, **surroundings()},
        capture_output=True,
        text=True,
        check=True,
    )
    first, *rest = done.stdout.splitlines()
    assert first.startswith("usage: clean_experiment.py") and rest == ["2", "3"]


def test_jobs_of_a_forked_snakemake_are_forked(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "scripts").symlink_to(repository / "scripts")
    (tmp_path / "Snakefile").write_text(
        "from types import SimpleNamespace\n"
        "from hatchery.workflow.software import put_own_environment_first\n"
        "put_own_environment_first(SimpleNamespace(deployment_method=set()))\n"
        "rule:\n    output: 'found'\n    shell: 'command -v python > {output}'\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "snakemake", "--cores", "1"]
    run(command, cwd=tmp_path, env={**os.environ, **surroundings()}, check=True, capture_output=True)
    assert (tmp_path / "found").read_text(encoding="utf-8").strip() == str(python_beside(Path(surroundings()[SERVER])))


def test_a_signal_reaches_the_process_and_is_its_status(repository: Path) -> None:
    with Forked([sys.executable, "-m", "snakemake", "--help"], cwd=repository, stdout=subprocess.PIPE) as process:
        process.send_signal(signal.SIGSTOP)
        assert process.poll() is None
        process.kill()
        assert process.wait(timeout=20) == -signal.SIGKILL
    assert not Path(f"/proc/{process.pid}/cmdline").exists()


def test_other_scripts_and_settings_of_python_are_real_processes(repository: Path, tmp_path: Path) -> None:
    assert can_be_forked([SCRIPT], str(repository), {"PYTHON": "python3.11", "PYTHONUNBUFFERED": "1"})
    assert not can_be_forked([SCRIPT], str(tmp_path), {})
    assert not can_be_forked([SCRIPT], str(repository), {"PYTHONHASHSEED": "1"})
    assert not can_be_forked(["-c", "1"], str(repository), {})
    (tmp_path / "scripts").mkdir()
    assert not can_be_forked(["-m", "snakemake"], str(tmp_path), {})
