"""A pretraining on two nodes that is cancelled, hits its limit, loses a process or its Snakemake: the same weights.

Each test disturbs the first job in mid-run and then leaves everything to the workflow's own retries.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_jobs import (
    MODEL,
    ask,
    cancel,
    configure,
    queued,
    rank_process,
    sent,
    snakemake_in_background,
    snakemake_on_slurm,
    submit,
    wait_for,
    wait_for_state,
)
from projects import make_project, snakemake

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

STEPS, DISTURBED_AFTER = 300, 40
TOKENS = "results/tokens/tiny/tiny/manifest.json"
WEIGHTS = "results/tiny/pretraining/ltg_bert-s42/model.safetensors"
LOG = "logs/pretrain/tiny/ltg_bert-s42.log"
# The executor takes a state of sacct as it stands there, and never understands "CANCELLED by 0".
BY_SQUEUE = "--slurm-status-command=squeue"


def copied(source: Path, folder: Path) -> Path:
    shutil.copytree(source, folder, symlinks=True)
    for name in ("tiny", "checkpoints"):
        shutil.rmtree(folder / "results" / name, ignore_errors=True)
    return folder


@pytest.fixture(scope="module")
def long_project(slurm_cluster: None, tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """A project folder with tokens, whose pretraining lasts long enough to be met in the middle."""
    folder = make_project(tmp_path_factory.mktemp("long") / "project", repository)
    experiment = folder / "config/experiments/tiny.yaml"
    text = experiment.read_text(encoding="utf-8")
    for old, new in (("  steps: 12\n", f"  steps: {STEPS}\n"), ("  batch_size: 8\n", "  batch_size: 32\n")):
        assert old in text
        text = text.replace(old, new, 1)
    text = text.replace("evaluation_interval_steps: 6", "evaluation_interval_steps: 150")
    experiment.write_text(text, encoding="utf-8")
    config = folder / "config/config.yaml"
    text, count = re.subn(r"(checkpoint_interval_steps): \d+", r"\1: 20", config.read_text(encoding="utf-8"))
    assert count == 1
    config.write_text(text, encoding="utf-8")
    configure(folder, nodes=2)
    result = snakemake(folder, "--cores", "2", "--", TOKENS)
    assert result.returncode == 0, (result.stdout + result.stderr)[-6000:]
    return folder


@pytest.fixture(scope="module")
def undisturbed(long_project: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The weights of a run on two nodes to which nothing happened."""
    folder = copied(long_project, tmp_path_factory.mktemp("undisturbed") / "project")
    result = snakemake_on_slurm(folder, "--retries=0", "--", MODEL)
    assert result.returncode == 0, (result.stdout + result.stderr)[-6000:]
    return (folder / WEIGHTS).read_bytes()


@pytest.fixture
def project(long_project: Path, tmp_path: Path) -> Iterator[Path]:
    folder = copied(long_project, tmp_path / "project")
    yield folder
    cancel(folder)


def job_in_mid_run(folder: Path) -> str:
    """Id of the pretraining's job once some of its steps are done."""

    def steps() -> int:
        return sum(path.read_text().count("\n") for path in folder.glob("results/checkpoints/*/metrics.jsonl"))

    wait_for(lambda: steps() >= DISTURBED_AFTER, f"step {DISTURBED_AFTER}", seconds=300)
    (job,) = queued(folder, "rule_pretrain")
    assert steps() < STEPS
    return job.job_id


def finish(process: subprocess.Popen[str], folder: Path) -> str:
    """Wait until the workflow has ended well; the log of the pretraining's last attempt."""
    assert process.wait(500) == 0, (folder / "snakemake.out").read_text(encoding="utf-8")[-6000:]
    return (folder / LOG).read_text(encoding="utf-8")


def test_a_cancelled_job_saves_and_the_next_attempt_ends_with_the_same_weights(
    project: Path, undisturbed: bytes
) -> None:
    with snakemake_in_background(project, BY_SQUEUE, "--", MODEL) as process:
        job_id = job_in_mid_run(project)
        ask("scancel", job_id)
        wait_for_state(job_id, "CANCELLED", "FAILED")
        first = (project / LOG).read_text(encoding="utf-8")
        log = finish(process, project)
    stopped = re.search(r"0: .*stopped by SIGTERM after step (\d+) of", first)
    assert stopped, first
    assert f"goes on after step {stopped[1]} from" in log
    assert (project / WEIGHTS).read_bytes() == undisturbed


def test_a_job_that_runs_into_its_time_limit_is_gone_on_with(project: Path, undisturbed: bytes) -> None:
    with snakemake_in_background(project, BY_SQUEUE, "--", MODEL) as process:
        job_id = job_in_mid_run(project)
        # Shortened while it runs, so that the training cannot know: this is the limit that hits.
        ask("scontrol", "update", f"JobId={job_id}", "TimeLimit=1")
        assert wait_for_state(job_id, "TIMEOUT", "COMPLETED", seconds=200) == "TIMEOUT"
        log = finish(process, project)
    assert "goes on after step" in log
    assert (project / WEIGHTS).read_bytes() == undisturbed


def test_a_killed_process_ends_the_job_with_a_message_and_the_next_attempt_goes_on(
    project: Path, undisturbed: bytes
) -> None:
    with snakemake_in_background(project, BY_SQUEUE, "--", MODEL) as process:
        job_id = job_in_mid_run(project)
        second = rank_process(job_id, 1, "pretrain.py")
        assert second is not None
        os.kill(second, signal.SIGKILL)
        # Far less than the time after which processes give up waiting for each other.
        wait_for_state(job_id, "FAILED", "CANCELLED", seconds=120)
        first = (project / LOG).read_text(encoding="utf-8")
        log = finish(process, project)
    assert re.search(r"task 1: Killed", first), first
    assert "goes on after step" in log
    assert (project / WEIGHTS).read_bytes() == undisturbed


def test_a_job_whose_snakemake_was_killed_hands_its_run_over_to_the_next_one(project: Path, undisturbed: bytes) -> None:
    with snakemake_in_background(project, BY_SQUEUE, "--", MODEL) as process:
        job_id = job_in_mid_run(project)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(10)
    assert snakemake(project, "--unlock", "--", MODEL).returncode == 0
    with snakemake_in_background(project, BY_SQUEUE, "--", MODEL) as process:
        finish(process, project)
    wait_for(lambda: not queued(project), "the first job has gone", seconds=60)
    assert {job.job_id for job in sent(project)} > {job_id}
    assert (project / WEIGHTS).read_bytes() == undisturbed


def test_the_first_process_of_a_job_knows_when_its_time_is_over(
    slurm_cluster: None, tmp_path: Path, repository: Path
) -> None:
    code = (
        "import os; from hatchery.pretraining.time_limit import Deadline; "
        "print('left', Deadline.from_environment(os.environ, None, 10.0).remaining_seconds())"
    )
    script = f'PYTHONPATH="{repository / "scripts"}" srun --ntasks=1 "{sys.executable}" -c "{code}"'
    job_id = submit(tmp_path, script, "--time=3", "--mem=500")
    wait_for_state(job_id, "COMPLETED", "FAILED", seconds=120)
    text = (tmp_path / f"slurm-{job_id}.out").read_text(encoding="utf-8")
    left = re.search(r"left ([\d.]+)", text)
    assert left and 60 < float(left[1]) <= 180, text
