"""Whatever happens to the command or its configuration while a job waits or runs: the right model in the end, once."""

import os
import signal
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
    restarts,
    sent,
    snakemake_in_background,
    snakemake_on_slurm,
    wait_for,
    wait_for_state,
)
from projects import planned_rules, snakemake

# Some ten seconds of work, on a machine that may be busy.
PATIENCE_SECONDS = 600

pytestmark = [pytest.mark.slurm, pytest.mark.slow]


@pytest.fixture(autouse=True)
def no_job_stays(prepared_project: Path) -> Iterator[None]:
    yield
    cancel(prepared_project)


@pytest.fixture
def closed_partition(slurm_cluster: None) -> Iterator[str]:
    """A partition in which jobs wait until the test sets it to UP."""
    ask("scontrol", "update", "PartitionName=closed", "State=DOWN")
    yield "closed"
    ask("scontrol", "update", "PartitionName=closed", "State=DOWN")


def pretraining_job(folder: Path) -> str:
    """Id of the only pretraining that was sent from `folder`, once it is there."""
    wait_for(lambda: queued(folder, "rule_pretrain"), "a pretraining in the queue", seconds=PATIENCE_SECONDS)
    jobs = queued(folder, "rule_pretrain")
    assert len(jobs) == 1
    return jobs[0].job_id


def test_settings_edited_while_a_job_waits_do_not_change_what_it_computes(
    prepared_project: Path, local_project: Path, closed_partition: str
) -> None:
    configure(prepared_project, partition=closed_partition)
    with snakemake_in_background(prepared_project, "--retries=0", "--", MODEL) as process:
        job_id = pretraining_job(prepared_project)
        wait_for_state(job_id, "PENDING")
        experiment = prepared_project / "config/experiments/tiny.yaml"
        text = experiment.read_text(encoding="utf-8")
        assert "steps: 12\n" in text
        experiment.write_text(text.replace("steps: 12\n", "steps: 6\n"), encoding="utf-8")
        ask("scontrol", "update", f"PartitionName={closed_partition}", "State=UP")
        code = process.wait(PATIENCE_SECONDS)
    assert code == 0, (prepared_project / "snakemake.out").read_text(encoding="utf-8")[-6000:]
    assert (prepared_project / MODEL).read_bytes() == (local_project / MODEL).read_bytes()
    assert planned_rules(prepared_project, MODEL).get("pretrain") == 1


def test_after_the_command_was_killed_it_says_what_to_do_and_then_ends_right(
    prepared_project: Path, local_project: Path
) -> None:
    with snakemake_in_background(prepared_project, "--", MODEL) as process:
        job_id = pretraining_job(prepared_project)
        wait_for(lambda: rank_process(job_id, 0, "pretrain.py"), "the first rank runs", seconds=PATIENCE_SECONDS)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(10)
    locked = snakemake_on_slurm(prepared_project, "--", MODEL)
    assert locked.returncode != 0
    assert "--unlock" in locked.stdout + locked.stderr
    # The job of the killed command goes on alone; a second one beside it would write into the same folder.
    wait_for_state(job_id, "COMPLETED", "FAILED", seconds=PATIENCE_SECONDS)
    assert snakemake(prepared_project, "--unlock", "--", MODEL).returncode == 0
    again = snakemake_on_slurm(prepared_project, "--", MODEL)
    assert again.returncode == 0, (again.stdout + again.stderr)[-6000:]
    assert (prepared_project / MODEL).read_bytes() == (local_project / MODEL).read_bytes()
    assert planned_rules(prepared_project, MODEL) == {}


def test_a_second_command_in_the_same_folder_is_refused_and_harms_nothing(
    prepared_project: Path, local_project: Path, closed_partition: str
) -> None:
    configure(prepared_project, partition=closed_partition)
    with snakemake_in_background(prepared_project, "--retries=0", "--", MODEL) as process:
        job_id = pretraining_job(prepared_project)
        second = snakemake_on_slurm(prepared_project, "--", MODEL)
        assert second.returncode != 0
        assert "cannot be locked" in second.stdout + second.stderr
        assert [job.job_id for job in queued(prepared_project)] == [job_id]
        ask("scontrol", "update", f"PartitionName={closed_partition}", "State=UP")
        code = process.wait(PATIENCE_SECONDS)
    assert code == 0, (prepared_project / "snakemake.out").read_text(encoding="utf-8")[-6000:]
    assert [job.job_id for job in sent(prepared_project)] == [job_id]
    assert (prepared_project / MODEL).read_bytes() == (local_project / MODEL).read_bytes()


def test_a_requeued_pretraining_gives_the_same_model(prepared_project: Path, local_project: Path) -> None:
    with snakemake_in_background(prepared_project, "--", MODEL) as process:
        job_id = pretraining_job(prepared_project)
        wait_for(lambda: rank_process(job_id, 1, "pretrain.py"), "the second rank runs", seconds=PATIENCE_SECONDS)
        ask("scontrol", "requeue", job_id)
        wait_for(lambda: restarts(job_id) == 1, "the job was requeued")
        code = process.wait(PATIENCE_SECONDS)
    assert code == 0, (prepared_project / "snakemake.out").read_text(encoding="utf-8")[-6000:]
    assert (prepared_project / MODEL).read_bytes() == (local_project / MODEL).read_bytes()
