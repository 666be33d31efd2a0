"""The check of a cluster on a real one: it is satisfied with what is there, and names what is not."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cluster_jobs import environment
from projects import configure, make_project

pytestmark = [pytest.mark.slurm, pytest.mark.slow]


def check(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the check for the tiny experiment with the environment of the tests."""
    command = [sys.executable, "scripts/check_cluster.py", "--experiment", "tiny", *options]
    return subprocess.run(
        [*command, "--", "--software-deployment-method", "env-modules"],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


def test_two_nodes_that_reach_each_other_pass(slurm_cluster: None, tmp_path: Path, repository: Path) -> None:
    folder = make_project(tmp_path / "project", repository)
    configure(folder, nodes=2)
    result = check(folder, "--wait=600")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "--nodes=2 --ntasks=2" in result.stdout
    assert "n1), " in result.stdout
    assert "gloo, 2 processes" in result.stdout
    assert " 0 error" in result.stdout
    assert not (folder / "results/.cluster_check").exists()


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="this machine has GPUs")
def test_gpus_that_slurm_promises_but_nobody_sees_are_an_error(
    slurm_cluster: None, tmp_path: Path, repository: Path
) -> None:
    folder = make_project(tmp_path / "project", repository)
    configure(folder, gpus_per_node=1)
    result = check(folder, "--wait=600")
    assert result.returncode == 1, result.stdout + result.stderr
    assert "a job with one GPU sees none by nvidia-smi" in result.stdout


def test_what_the_cluster_does_not_have_is_named_without_any_job(
    slurm_cluster: None, tmp_path: Path, repository: Path
) -> None:
    folder = make_project(tmp_path / "project", repository)
    configure(folder, partition="nowhere", nodes=3)
    result = check(folder)
    assert result.returncode == 1
    assert "partition 'nowhere' does not exist; there are: main" in result.stdout
    assert "no probe is submitted before the errors above are mended" in result.stdout
