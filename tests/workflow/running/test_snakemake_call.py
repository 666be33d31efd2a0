"""What surrounds the jobs of a call: SIGINT reaches every job once, and without conda they run in this environment."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from projects import make_project, snakemake
from snakemake.settings.types import DeploymentMethod, DeploymentSettings

from hatchery.workflow.job_lines import GO_ON
from hatchery.workflow.software import choose_software, has_conda

Call = Callable[..., subprocess.Popen[str]]


@pytest.mark.parametrize(("to", "ignored"), [("the process", False), ("its group", False), ("the process", True)])
def test_a_job_is_told_once_and_may_save_what_it_has(start: Call, folder: Path, to: str, ignored: bool) -> None:
    """Also where the surroundings ignore SIGINT, as in the background of a script."""
    former = signal.getsignal(signal.SIGINT)
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else former)
        process = start("results/trained.txt")
    finally:
        signal.signal(signal.SIGINT, former)
    try:
        log = folder / "logs/train.log"
        while not (log.exists() and "training" in log.read_text(encoding="utf-8")):
            assert process.poll() is None, process.communicate()[0]
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGINT) if to == "the process" else os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 1
    assert (folder / "checkpoint.txt").read_text(encoding="utf-8") == "1"
    assert not (folder / "results/trained.txt").exists()
    assert "Traceback" not in output


Say = Callable[..., tuple[int, list[str]]]
WITHOUT_CONDA = os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", "/bin"])


def test_a_profile_that_asks_for_conda_runs_without_it_and_says_so_once(say: Say) -> None:
    status, lines = say("--software-deployment-method", "conda", "--", "join", PATH=WITHOUT_CONDA)
    assert status == 0
    told = [line for line in lines if line.startswith("conda is not on PATH: jobs run in the environment of this ")]
    assert len(told) == 1


@pytest.mark.parametrize(
    ("asked", "left"),
    [
        ({DeploymentMethod.CONDA}, set()),
        ({DeploymentMethod.CONDA, DeploymentMethod.ENV_MODULES}, {DeploymentMethod.ENV_MODULES}),
        # A container has a conda of its own.
        ({DeploymentMethod.CONDA, DeploymentMethod.APPTAINER}, {DeploymentMethod.CONDA, DeploymentMethod.APPTAINER}),
        (set(), set()),
    ],
)
def test_only_conda_outside_of_containers_is_left_out(
    asked: set[DeploymentMethod], left: set[DeploymentMethod]
) -> None:
    settings = DeploymentSettings(deployment_method=frozenset(asked))
    told = choose_software(settings, lambda: False)
    assert set(settings.deployment_method) == left
    assert (told is None) == (asked == left)
    unchanged = DeploymentSettings(deployment_method=frozenset(asked))
    assert choose_software(unchanged, lambda: True) is None
    assert set(unchanged.deployment_method) == asked
    # conda may be a function of the shell.
    assert has_conda(lambda name: None, {"BASH_FUNC_conda%%": "() { :; }"})
    assert not has_conda(lambda name: None, {})


TARGET = "results/tiny/pretraining/ltg_bert-s42/manifest.json"


def _log(folder: Path) -> str:
    return "".join(path.read_text(encoding="utf-8") for path in (folder / "logs/pretrain").glob("*.log"))


@pytest.mark.slow
def test_sigint_to_snakemake_alone_saves_the_pretraining_and_the_next_call_goes_on(
    tmp_path: Path, repository: Path
) -> None:
    folder = make_project(tmp_path / "project", repository)
    experiment = folder / "config/experiments/tiny.yaml"
    text = experiment.read_text(encoding="utf-8")
    # Long enough to be met at work, short enough to be ended.
    experiment.write_text(text.replace("  steps: 12\n", "  steps: 400\n", 1), encoding="utf-8")
    before = snakemake(folder, "--cores", "2", "--until", "encode_corpus", "--", TARGET)
    assert before.returncode == 0, before.stdout + before.stderr
    process = subprocess.Popen(
        [sys.executable, "-m", "snakemake", "--cores", "2", TARGET],
        cwd=folder,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        end = time.monotonic() + 300
        while "400 steps to do" not in _log(folder):
            assert process.poll() is None and time.monotonic() < end, process.communicate(timeout=60)[0]
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 1
    stopped = re.search(r"stopped by SIGINT after step (\d+) of 400; a checkpoint is saved", output.splitlines()[-2])
    assert stopped is not None, output
    # What the user has stopped did not fail.
    assert output.splitlines()[-1] == GO_ON
    assert "failed" not in output and "error" not in output
    assert not (folder / TARGET).exists()
    again = snakemake(folder, "--cores", "2", TARGET)
    assert again.returncode == 0, again.stdout + again.stderr
    provenance = json.loads((folder / TARGET).with_name("provenance.json").read_text(encoding="utf-8"))
    assert f'"resumed_from_step": {stopped[1]}' in json.dumps(provenance)
