"""The test cluster is a real Slurm: it preempts jobs, spares foreign settings, and can be stopped and started again."""

import os
import time
from pathlib import Path

import cluster
import cluster_files
import pytest
from cluster_jobs import ask, cluster_command, restarts, submit, wait_for, wait_for_state

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.usefixtures("slurm_cluster")]


def test_a_job_that_ends_within_the_grace_time_has_failed_and_is_not_requeued(tmp_path: Path) -> None:
    """A job in `urgent` takes both nodes from a long job in `graceful`."""
    options = ("--nodes=2", "--exclusive")
    victim = submit(tmp_path, "srun sh -c 'echo runs; exec sleep 600'", *options, "--partition=graceful")
    written = tmp_path / f"slurm-{victim}.out"
    # Slurm sends the signal to a job's steps and not to its script, so wait until the steps run.
    wait_for(lambda: written.exists() and written.read_text().count("runs") == 2, "the first job's step runs")
    (tmp_path / "urgent").mkdir()
    wait_for_state(submit(tmp_path / "urgent", "true", *options, "--partition=urgent"), "COMPLETED")
    assert wait_for_state(victim, "FAILED", "REQUEUED", "PENDING", "COMPLETED") == "FAILED"
    assert restarts(victim) == 0


def test_settings_of_a_real_cluster_are_never_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings, hosts = tmp_path / "slurm", tmp_path / "hosts"
    settings.mkdir()
    hosts.write_text("127.0.0.1 localhost\n", encoding="utf-8")
    monkeypatch.setattr(cluster_files, "SETTINGS", settings)
    # Otherwise the running cluster would lose its nodes' names.
    monkeypatch.setattr(cluster_files, "HOSTS", hosts)
    theirs = settings / "slurm.conf"
    theirs.write_text("ClusterName=university\n", encoding="utf-8")
    with pytest.raises(cluster_files.ClusterError, match="real one"):
        cluster_files.write_files()
    cluster_files.remove_files()
    assert theirs.read_text(encoding="utf-8") == "ClusterName=university\n"
    assert list(settings.iterdir()) == [theirs]
    assert hosts.read_text(encoding="utf-8") == "127.0.0.1 localhost\n"


@pytest.mark.skipif("HATCHERY_KEEP_CLUSTER" in os.environ, reason="others use the running cluster")
def test_stop_leaves_no_process_even_of_a_stubborn_job_and_the_accounting_survives(tmp_path: Path) -> None:
    stubborn = "trap '' TERM; srun --ntasks=2 sh -c 'trap \"\" TERM; sleep 4321 & sleep 4321'"
    job_id = submit(tmp_path, stubborn, "--nodes=2", "--ntasks-per-node=1")
    wait_for_state(job_id, "RUNNING")
    time.sleep(1)
    stopped = cluster_command("stop")
    assert stopped.returncode == 0, stopped.stderr
    assert cluster.leftovers() == []
    assert "sleep 4321" not in ask("ps", "-eo", "args").replace(stubborn, "")
    assert not (cluster_files.SETTINGS / "slurm.conf").exists()
    assert cluster_files.HOSTS_MARK not in cluster_files.HOSTS.read_text(encoding="utf-8")
    started = cluster_command("start")
    assert started.returncode == 0, started.stderr
    assert wait_for_state(job_id, "CANCELLED", "COMPLETED", "FAILED", "NODE_FAIL") == "CANCELLED"
    assert wait_for_state(submit(tmp_path, "true"), "COMPLETED") == "COMPLETED"
