"""Pretrainings on two nodes that are cancelled, hit their limit, lose a process or are requeued: the same weights.

Four pretrainings are disturbed in mid-run at the same time, each in its own way, and then left to the workflow's own
retries. Their results are compared with those of one undisturbed process on this machine.
"""

import os
import re
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from cluster_jobs import (
    MODELS,
    RUNS,
    ask,
    cancel,
    log_of,
    pretraining_in_mid_run,
    queued,
    rank_process,
    restarts,
    snakemake_in_background,
    state,
    submit,
    wait_for,
    wait_for_state,
)

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

CANCELLED, LIMITED, KILLED, REQUEUED = RUNS
PATIENCE_SECONDS = 600


@dataclass(frozen=True)
class Story:
    """A pretraining's disturbed job, the log of that job, the log of the last attempt, and the weights."""

    job_id: str
    first_log: str
    log: str
    weights: bytes


def rank(job_id: str, number: int) -> int:
    """Return the process id of a rank of a job that trains."""
    pid = rank_process(job_id, number, "run.py pretrain")
    assert pid is not None, f"rank {number} of job {job_id} does not run"
    return pid


def disturb(run: str, job_id: str) -> None:
    if run == CANCELLED:
        ask("scancel", job_id)
    elif run == LIMITED:
        # Shorten the limit during the run, so that the training cannot know it and is ended by it. Until then the
        # process is stopped, because a fast machine would finish before.
        os.kill(rank(job_id, 0), signal.SIGSTOP)
        ask("scontrol", "update", f"JobId={job_id}", "TimeLimit=1")
    elif run == KILLED:
        os.kill(rank(job_id, 1), signal.SIGKILL)
    else:
        ask("scontrol", "requeue", job_id)


def disturb_all(folder: Path) -> dict[str, str]:
    """Disturb each pretraining as soon as it is in mid-run; return the disturbed jobs, by run."""
    met: dict[str, str] = {}

    def all_met() -> bool:
        for run, model in zip(RUNS, MODELS, strict=True):
            owner = None if run in met else pretraining_in_mid_run(folder, model)
            if owner is not None and owner.job is not None:
                disturb(run, owner.job)
                met[run] = owner.job
        return len(met) == len(RUNS)

    wait_for(all_met, "every pretraining in mid-run", seconds=PATIENCE_SECONDS)
    return met


@pytest.fixture(scope="module")
def stories(copy_of_project: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Story]:
    """The history of each pretraining, by run."""
    folder = copy_of_project(tmp_path_factory.mktemp("disturbed") / "project")
    try:
        with snakemake_in_background(folder, "--", *MODELS) as process:
            met = disturb_all(folder)
            limited = met[LIMITED]
            wait_for(lambda: not running(folder, limited), "the limit has hit", seconds=200)
            pid = rank_process(limited, 0, "run.py pretrain")
            if pid is not None:
                os.kill(pid, signal.SIGCONT)
            code = process.wait(PATIENCE_SECONDS)
        assert code == 0, (folder / "snakemake.out").read_text(encoding="utf-8")[-6000:]
    finally:
        cancel(folder)
    # Slurm logs of failed jobs are kept; a requeued job writes its log again.
    logs = {path.stem: path.read_text(encoding="utf-8") for path in folder.glob(".snakemake/slurm_logs/*/*/*.log")}
    return {
        run: Story(
            met[run],
            logs.get(met[run], ""),
            log_of(folder, model).read_text(encoding="utf-8"),
            (folder / model).with_name("model.safetensors").read_bytes(),
        )
        for run, model in zip(RUNS, MODELS, strict=True)
    }


def running(folder: Path, job_id: str) -> bool:
    return any(job.job_id == job_id and job.state == "RUNNING" for job in queued(folder))


@pytest.mark.parametrize("run", RUNS)
def test_each_goes_on_where_it_was_and_ends_with_the_weights_of_an_undisturbed_one(
    run: str, stories: dict[str, Story], local_project: Path
) -> None:
    assert "continues after step" in stories[run].log
    undisturbed = local_project / "results/long/pretraining" / run / "model.safetensors"
    assert stories[run].weights == undisturbed.read_bytes()


def test_a_cancelled_job_saves_before_it_ends(stories: dict[str, Story]) -> None:
    story = stories[CANCELLED]
    assert state(story.job_id) in ("CANCELLED", "FAILED")
    # Both processes get the signal; if one gets it a step earlier, the other stops because of it.
    stopped = re.search(r"[01]: .*stopped by SIGTERM after step (\d+) of", story.first_log)
    assert stopped, story.first_log
    assert f"continues after step {stopped[1]} from" in story.log


def test_a_job_that_ran_into_its_time_limit_was_ended_by_it(stories: dict[str, Story]) -> None:
    assert state(stories[LIMITED].job_id) == "TIMEOUT"


def test_a_killed_process_ends_its_job_with_a_message(stories: dict[str, Story]) -> None:
    story = stories[KILLED]
    assert state(story.job_id) in ("FAILED", "CANCELLED")
    assert re.search(r"task 1: Killed", story.first_log), story.first_log


def test_a_requeued_job_starts_again_under_its_number(stories: dict[str, Story]) -> None:
    assert restarts(stories[REQUEUED].job_id) == 1
    assert state(stories[REQUEUED].job_id) == "COMPLETED"


def test_the_first_process_of_a_job_knows_when_its_time_is_over(
    slurm_cluster: None, tmp_path: Path, repository: Path
) -> None:
    code = (
        "import os; from hatchery.training.interruption import Deadline; "
        "print('left', Deadline.from_environment(os.environ, None, 10.0).remaining_seconds())"
    )
    script = f'PYTHONPATH="{repository / "scripts"}" srun --ntasks=1 "{sys.executable}" -c "{code}"'
    job_id = submit(tmp_path, script, "--time=3", "--mem=500")
    wait_for_state(job_id, "COMPLETED", "FAILED", seconds=120)
    text = (tmp_path / f"slurm-{job_id}.out").read_text(encoding="utf-8")
    left = re.search(r"left ([\d.]+)", text)
    assert left and 60 < float(left[1]) <= 180, text
