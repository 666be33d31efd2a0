"""The jobs of a call: SIGINT reaches every job once, and without conda the jobs run in this environment."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
from projects import make_project, snakemake
from snakemake.settings.types import DeploymentMethod, DeploymentSettings, MaxJobsPerTimespan, SchedulingSettings

from hatchery.workflow.job_lines import GO_ON
from hatchery.workflow.snakemake_call import begin_jobs
from hatchery.workflow.software import choose_software, has_conda

Call = Callable[..., subprocess.Popen[str]]


def interrupted(process: subprocess.Popen[str], logs: Path, begun: str, send: Callable[[int, int], None]) -> list[str]:
    """Send SIGINT as soon as one of the logs shows that its job is at work; return the lines of the call."""
    end = time.monotonic() + 300
    try:
        while not any(begun in path.read_text(encoding="utf-8") for path in logs.glob("*.log")):
            assert process.poll() is None and time.monotonic() < end, process.communicate(timeout=60)[0]
            time.sleep(0.05)
        send(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 1
    # A job that the user has stopped is not reported as failed.
    assert output.splitlines()[-1] == GO_ON and not re.search("failed|error|Traceback", output), output
    return output.splitlines()


@pytest.mark.parametrize(("send", "ignored"), [(os.kill, False), (os.killpg, False), (os.kill, True)])
def test_a_job_is_told_once_and_may_save_what_it_has(
    start: Call, folder: Path, send: Callable[[int, int], None], ignored: bool
) -> None:
    """Test also a call that starts with SIGINT ignored, as in the background of a script."""
    former = signal.getsignal(signal.SIGINT)
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else former)
        process = start(folder, "results/trained.txt")
    finally:
        signal.signal(signal.SIGINT, former)
    lines = interrupted(process, folder / "logs", "training", send)
    assert lines[-2] == "train: stopped; a checkpoint is saved (log: logs/train.log)"
    assert (folder / "checkpoint.txt").read_text(encoding="utf-8") == "1"
    assert not (folder / "results/trained.txt").exists()


WITHOUT_CONDA = os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", "/bin"])


def test_a_profile_that_asks_for_conda_runs_without_it_and_says_so_once(
    say: Callable[..., tuple[int, list[str]]],
) -> None:
    status, lines = say("--software-deployment-method", "conda", "--", "join", PATH=WITHOUT_CONDA)
    assert status == 0
    assert sum(line.startswith("conda is not on PATH: jobs run in the environment of this ") for line in lines) == 1


CONDA, MODULES, CONTAINER = DeploymentMethod.CONDA, DeploymentMethod.ENV_MODULES, DeploymentMethod.APPTAINER


@pytest.mark.parametrize(
    ("asked", "surroundings", "left"),
    [
        ({CONDA, MODULES}, {}, {MODULES}),
        # A function of the shell can provide conda.
        ({CONDA, MODULES}, {"BASH_FUNC_conda%%": "() { :; }"}, {CONDA, MODULES}),
        # A container has its own conda.
        ({CONDA, CONTAINER}, {}, {CONDA, CONTAINER}),
        (set(), {}, set()),
    ],
)
def test_only_conda_outside_of_containers_is_left_out(
    asked: set[DeploymentMethod], surroundings: dict[str, str], left: set[DeploymentMethod]
) -> None:
    settings = DeploymentSettings(deployment_method=frozenset(asked))
    told = choose_software(settings, lambda: has_conda(lambda name: None, surroundings))
    assert set(settings.deployment_method) == left
    assert (told is None) == (asked == left)


@pytest.mark.parametrize(
    ("local", "limit", "is_kept"), [(True, "100/1s", False), (True, "5/1s", True), (False, "100/1s", True)]
)
def test_local_jobs_start_without_the_default_limit_of_their_rate(local: bool, limit: str, is_kept: bool) -> None:
    scheduler = SimpleNamespace(job_rate_limiter="limiter")
    settings = SchedulingSettings(max_jobs_per_timespan=MaxJobsPerTimespan.parse_choice(limit))
    workflow = SimpleNamespace(local_exec=local, scheduling_settings=settings, scheduler=scheduler)
    with mock.patch("hatchery.workflow.snakemake_call.hand_on_interrupts"):
        begin_jobs(SimpleNamespace(workflow=workflow, cleanup_workdir=list))
    assert scheduler.job_rate_limiter == ("limiter" if is_kept else None)


TARGET = "results/tiny/pretraining/ltg_bert-s42/manifest.json"


@pytest.mark.slow
def test_sigint_to_snakemake_alone_saves_the_pretraining_and_the_next_call_goes_on(
    start: Call, tmp_path: Path, repository: Path
) -> None:
    folder = make_project(tmp_path / "project", repository)
    experiment = folder / "config/experiments/tiny.yaml"
    text = experiment.read_text(encoding="utf-8")
    # The training must be long enough to be interrupted, and short enough to finish.
    text = text.replace("  steps: 12\n", "  steps: 400\n", 1)
    experiment.write_text(text.replace("interval_steps: 6\n", "interval_steps: 200\n", 1), encoding="utf-8")
    before = snakemake(folder, "--cores", "1", "--until", "encode_corpus", "--", TARGET)
    assert before.returncode == 0, before.stdout + before.stderr
    line = interrupted(start(folder, TARGET), folder / "logs/pretrain", "400 steps to do", os.kill)[-2]
    stopped = re.search(r"stopped by SIGINT after step (\d+) of 400; a checkpoint is saved", line)
    assert stopped is not None, line
    assert not (folder / TARGET).exists()
    again = snakemake(folder, "--cores", "2", TARGET)
    assert again.returncode == 0, again.stdout + again.stderr
    provenance = json.loads((folder / TARGET).with_name("provenance.json").read_text(encoding="utf-8"))
    assert f'"resumed_from_step": {stopped[1]}' in json.dumps(provenance)
