"""A job survives disturbances of the command, its configuration or Slurm's daemon: it makes the right model, once."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from cluster_jobs import (
    MODELS,
    ask,
    cancel,
    log_of,
    pretraining_in_mid_run,
    queued,
    rank_process,
    sent,
    snakemake_in_background,
    snakemake_on_slurm,
    step_daemons,
    wait_for,
    wait_for_state,
)
from projects import configure, planned_rules, snakemake

from hatchery.artifacts.manifests import FINISHED, read_manifest

# The work takes some ten seconds, but the machine may be busy.
PATIENCE_SECONDS = 600
MODEL = MODELS[0]

pytestmark = [pytest.mark.slurm, pytest.mark.slow]


@dataclass(frozen=True)
class Waited:
    """A pretraining that waited in the queue during a second command and an edit of the experiment's file."""

    folder: Path
    job_id: str
    second_command: subprocess.CompletedProcess[str]
    queue_then: list[str]


def pretraining_job(folder: Path) -> str:
    """Return the id of the only pretraining from `folder`, once it is queued."""
    wait_for(lambda: queued(folder, "rule_pretrain"), "a pretraining in the queue", seconds=PATIENCE_SECONDS)
    jobs = queued(folder, "rule_pretrain")
    assert len(jobs) == 1
    return jobs[0].job_id


@pytest.fixture(scope="module")
def waited(copy_of_project: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Waited]:
    folder = copy_of_project(tmp_path_factory.mktemp("waited") / "project")
    configure(folder, partition="closed")
    # Jobs in this partition wait until it is opened.
    ask("scontrol", "update", "PartitionName=closed", "State=DOWN")
    try:
        with snakemake_in_background(folder, "--retries=0", "--", MODEL) as process:
            job_id = pretraining_job(folder)
            wait_for_state(job_id, "PENDING")
            second = snakemake_on_slurm(folder, "--", MODEL)
            queue = [job.job_id for job in queued(folder)]
            experiment = folder / "config/experiments/long.yaml"
            text = experiment.read_text(encoding="utf-8")
            assert "steps: 300\n" in text
            experiment.write_text(text.replace("steps: 300\n", "steps: 200\n"), encoding="utf-8")
            ask("scontrol", "update", "PartitionName=closed", "State=UP")
            code = process.wait(PATIENCE_SECONDS)
        assert code == 0, (folder / "snakemake.out").read_text(encoding="utf-8")[-6000:]
        yield Waited(folder, job_id, second, queue)
    finally:
        ask("scontrol", "update", "PartitionName=closed", "State=DOWN")
        cancel(folder)


def test_settings_edited_while_a_job_waits_do_not_change_what_it_computes(waited: Waited, local_project: Path) -> None:
    assert (waited.folder / MODEL).read_bytes() == (local_project / MODEL).read_bytes()
    assert planned_rules(waited.folder, MODEL).get("pretrain") == 1


def test_a_second_command_in_the_same_folder_is_refused_and_harms_nothing(waited: Waited) -> None:
    assert waited.second_command.returncode != 0
    assert "cannot be locked" in waited.second_command.stdout + waited.second_command.stderr
    assert waited.queue_then == [waited.job_id]
    assert [job.job_id for job in sent(waited.folder)] == [waited.job_id]


def test_after_the_command_was_killed_it_says_what_to_do_and_then_takes_the_run_over(
    copy_of_project: Callable[[Path], Path], local_project: Path, tmp_path: Path
) -> None:
    folder = copy_of_project(tmp_path / "project")
    try:
        with snakemake_in_background(folder, "--", MODEL) as process:
            job_id = pretraining_job(folder)
            wait_for(lambda: pretraining_in_mid_run(folder, MODEL), "the training in mid-run", seconds=PATIENCE_SECONDS)
            # Stop the process until the next job wants its run, because a fast machine would finish before.
            held = rank_process(job_id, 1, "run.py pretrain")
            assert held is not None
            os.kill(held, signal.SIGSTOP)
            os.kill(process.pid, signal.SIGKILL)
            process.wait(10)
        locked = snakemake_on_slurm(folder, "--", MODEL)
        assert locked.returncode != 0
        assert "--unlock" in locked.stdout + locked.stderr
        assert snakemake(folder, "--unlock", "--", MODEL).returncode == 0
        with snakemake_in_background(folder, "--", MODEL) as process:
            wait_for(
                lambda: list(folder.glob("results/checkpoints/*/wanted")),
                "the second job asks for the run",
                seconds=PATIENCE_SECONDS,
            )
            os.kill(held, signal.SIGCONT)
            code = process.wait(PATIENCE_SECONDS)
        assert code == 0, (folder / "snakemake.out").read_text(encoding="utf-8")[-6000:]
        wait_for(lambda: not queued(folder), "the first job has gone")
    finally:
        cancel(folder)
    assert {job.job_id for job in sent(folder)} > {job_id}
    assert (folder / MODEL).read_bytes() == (local_project / MODEL).read_bytes()
    assert planned_rules(folder, MODEL) == {}


def test_a_result_that_was_finished_behind_a_killed_slurmstepd_is_taken_by_the_next_command(
    copy_of_project: Callable[[Path], Path], tmp_path: Path
) -> None:
    folder = copy_of_project(tmp_path / "project")
    manifest = folder / MODEL
    try:
        with snakemake_in_background(folder, "--retries=0", "--", MODEL) as process:
            wait_for(lambda: pretraining_in_mid_run(folder, MODEL), "the training in mid-run", seconds=PATIENCE_SECONDS)
            (job,) = queued(folder, "rule_pretrain")
            # Kill the daemon of the script, because the end of the step's daemon would end the processes.
            (daemon,) = step_daemons(job.job_id, "batch")
            assert rank_process(job.job_id, 0, "run.py pretrain") is not None
            os.kill(daemon, signal.SIGKILL)
            wait_for(manifest.exists, "the result of the orphaned job", seconds=PATIENCE_SECONDS)
            # Slurm checks the script only when a node registers, so this command tells Slurm that the job is lost.
            ask("scancel", "--signal=KILL", job.job_id)
            assert process.wait(PATIENCE_SECONDS) != 0
        wait_for(lambda: not queued(folder), "the job has gone")
        assert not manifest.exists(), "Snakemake was to delete what it takes for unfinished"
        finished = manifest.with_name(FINISHED)
        told = json.loads(finished.read_text(encoding="utf-8"))
        weights = manifest.with_name("model.safetensors").stat().st_mtime_ns
        again = snakemake_on_slurm(folder, "--rerun-incomplete", "--", MODEL)
        assert again.returncode == 0, (again.stdout + again.stderr)[-6000:]
    finally:
        cancel(folder)
    assert "reused the finished result, whose checksums" in log_of(folder, MODEL).read_text(encoding="utf-8")
    assert manifest.with_name("model.safetensors").stat().st_mtime_ns == weights
    assert json.loads(manifest.read_text(encoding="utf-8")) == told
    read_manifest(manifest).verify()
