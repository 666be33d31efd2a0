"""A pretraining whose Slurm daemon is killed ends unseen: what it made is taken by the next command, not made again."""

import json
import os
import signal
from collections.abc import Callable
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
    snakemake_in_background,
    snakemake_on_slurm,
    step_daemons,
    wait_for,
)

from hatchery.artifacts.manifests import FINISHED, read_manifest

PATIENCE_SECONDS = 400
MODEL = MODELS[0]

pytestmark = [pytest.mark.slurm, pytest.mark.slow]


def test_a_result_that_was_finished_behind_a_killed_slurmstepd_is_taken_by_the_next_command(
    copy_of_project: Callable[[Path], Path], tmp_path: Path
) -> None:
    folder = copy_of_project(tmp_path / "project")
    manifest = folder / MODEL
    try:
        with snakemake_in_background(folder, "--retries=0", "--", MODEL) as process:
            wait_for(lambda: pretraining_in_mid_run(folder, MODEL), "the training in mid-run", seconds=PATIENCE_SECONDS)
            (job,) = queued(folder, "rule_pretrain")
            # The daemon of the script, not that of the step, whose end would end the processes.
            (daemon,) = step_daemons(job.job_id, "batch")
            assert rank_process(job.job_id, 0, "run.py pretrain") is not None
            os.kill(daemon, signal.SIGKILL)
            wait_for(manifest.exists, "the result of the orphaned job", seconds=PATIENCE_SECONDS)
            # Slurm looks after the script when a node registers, at its leisure; now it is told that the job is lost.
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
    assert "finished before, its checksums hold: taken as it is" in log_of(folder, MODEL).read_text(encoding="utf-8")
    assert manifest.with_name("model.safetensors").stat().st_mtime_ns == weights
    assert json.loads(manifest.read_text(encoding="utf-8")) == told
    read_manifest(manifest).verify()
