"""The test cluster is a real Slurm: two nodes, accounting, preemption; it can be stopped and started again."""

import os
import time
from pathlib import Path

import cluster
import cluster_files
import pytest
from cluster_jobs import ask, cluster_command, restarts, submit, wait_for, wait_for_state

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.usefixtures("slurm_cluster")]


def output(folder: Path, job_id: str) -> str:
    return (folder / f"slurm-{job_id}.out").read_text(encoding="utf-8")


def test_two_nodes_take_jobs() -> None:
    assert cluster.node_states().keys() == {"n1", "n2"}
    assert cluster.is_up()


def test_a_job_runs_and_the_accounting_says_so(tmp_path: Path) -> None:
    job_id = submit(tmp_path, "echo the answer is $((6 * 7))")
    assert wait_for_state(job_id, "COMPLETED", "FAILED") == "COMPLETED"
    assert output(tmp_path, job_id) == "the answer is 42\n"


def test_a_failed_job_is_failed_in_the_accounting_with_its_exit_code(tmp_path: Path) -> None:
    job_id = submit(tmp_path, "exit 3")
    wait_for_state(job_id, "FAILED")
    assert ask("sacct", "-nPX", f"--jobs={job_id}", "--format=ExitCode").strip() == "3:0"


def test_srun_starts_one_task_on_each_of_two_nodes_which_resolve_by_name(tmp_path: Path) -> None:
    task = "echo $SLURMD_NODENAME $SLURM_PROCID of $SLURM_NTASKS; getent hosts n1 n2 >/dev/null || echo unknown"
    job_id = submit(tmp_path, f"srun --nodes=2 --ntasks-per-node=1 sh -c '{task}'", "--nodes=2", "--ntasks-per-node=1")
    assert wait_for_state(job_id, "COMPLETED", "FAILED") == "COMPLETED"
    assert sorted(output(tmp_path, job_id).splitlines()) == ["n1 0 of 2", "n2 1 of 2"]


def test_gpus_are_counted_on_every_node(tmp_path: Path) -> None:
    job_id = submit(
        tmp_path, "srun sh -c 'echo $CUDA_VISIBLE_DEVICES'", "--nodes=2", "--ntasks-per-node=1", "--gres=gpu:2"
    )
    assert wait_for_state(job_id, "COMPLETED", "FAILED") == "COMPLETED"
    assert all(len(line.split(",")) == 2 for line in output(tmp_path, job_id).splitlines())
    assert "gres/gpu=4" in ask("sacct", "-nPX", f"--jobs={job_id}", "--format=AllocTRES")


def test_an_unknown_account_is_refused_at_submission(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="Invalid account"):
        submit(tmp_path, "true", "--account=nobody")


def test_scancel_sends_sigterm_first_and_ends_the_job(tmp_path: Path) -> None:
    job_id = submit(tmp_path, "srun sh -c 'trap \"echo told; exit 1\" TERM; echo runs; while :; do sleep 0.2; done'")
    wait_for(
        lambda: (tmp_path / f"slurm-{job_id}.out").exists() and "runs" in output(tmp_path, job_id), "the step runs"
    )
    ask("scancel", job_id)
    wait_for_state(job_id, "CANCELLED")
    # What the step says may reach the file after the controller knows its end.
    wait_for(lambda: "told" in output(tmp_path, job_id), "the step's last words")


def preempt(folder: Path, partition: str) -> str:
    """Let a job in `urgent` take both nodes from a long one in `partition`; id of the latter."""
    step = "srun sh -c 'echo runs; exec sleep 600'"
    script = f'echo "restart ${{SLURM_RESTART_COUNT:-0}}"; [ "${{SLURM_RESTART_COUNT:-0}}" -gt 0 ] || {step}'
    options = ("--nodes=2", "--exclusive", "--open-mode=append")
    victim = submit(folder, script, *options, f"--partition={partition}")
    written = folder / f"slurm-{victim}.out"
    # Slurm tells the steps of a job and not its script: before they run nobody would hear it.
    wait_for(lambda: written.exists() and output(folder, victim).count("runs") == 2, "the first job's step runs")
    (folder / "urgent").mkdir()
    wait_for_state(submit(folder / "urgent", "true", *options, "--partition=urgent"), "COMPLETED")
    return victim


def test_a_job_of_higher_priority_requeues_another_which_starts_again_under_its_number(tmp_path: Path) -> None:
    victim = preempt(tmp_path, "main")
    assert restarts(victim) == 1
    wait_for_state(victim, "COMPLETED", seconds=150)
    assert "restart 0" in output(tmp_path, victim) and output(tmp_path, victim).endswith("restart 1\n")


def test_a_job_that_ends_within_the_grace_time_has_failed_and_is_not_requeued(tmp_path: Path) -> None:
    victim = preempt(tmp_path, "graceful")
    assert wait_for_state(victim, "FAILED", "REQUEUED", "PENDING", "COMPLETED") == "FAILED"
    assert restarts(victim) == 0


def test_settings_of_a_real_cluster_are_never_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings, hosts = tmp_path / "slurm", tmp_path / "hosts"
    settings.mkdir()
    hosts.write_text("127.0.0.1 localhost\n", encoding="utf-8")
    monkeypatch.setattr(cluster_files, "SETTINGS", settings)
    # Otherwise the cluster that runs would lose its names.
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
