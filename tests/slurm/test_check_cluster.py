"""The cluster check on a real cluster: it accepts available resources, and reports missing ones."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_jobs import ask, environment
from projects import configure, make_project

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.usefixtures("slurm_cluster")]


def check(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the check for the tiny experiment with the environment of the tests."""
    command = [sys.executable, "scripts/check_cluster.py", "--experiment", "tiny"]
    return subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=900, check=False
    )


@pytest.fixture
def folder(tmp_path: Path, repository: Path) -> Path:
    return make_project(tmp_path / "project", repository)


def test_jobs_that_the_cluster_can_run_pass_and_none_is_sent(folder: Path) -> None:
    configure(folder, nodes=2, gpus_per_node=8, gpu_type="fake", account="testers")
    jobs = ask("sacct", "-nX", "--format=JobID")
    result = check(folder)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "--nodes=2 --ntasks-per-node=8" in result.stdout
    assert result.stdout.endswith("Slurm would accept all of these jobs.\n")
    assert ask("sacct", "-nX", "--format=JobID") == jobs


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"account": "nobody"}, "Invalid account"),
        ({"partition": "closed"}, "partition closed would wait, because the partition is down"),
    ],
)
def test_what_the_cluster_does_not_have_is_told_in_a_line(
    changes: dict[str, object], problem: str, folder: Path
) -> None:
    configure(folder, **changes)
    result = check(folder)
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ") and problem in line
    assert "config/config.yaml" in line
    assert ("convert_corpus" in line) == ("account" in changes or "partition" in changes), line


@pytest.fixture
def short_partition() -> Iterator[str]:
    ask("scontrol", "update", "PartitionName=graceful", "MaxTime=20")
    yield "graceful"
    ask("scontrol", "update", "PartitionName=graceful", "MaxTime=UNLIMITED")


def test_more_time_than_the_partition_allows_is_told_because_slurm_lets_it_wait(
    short_partition: str, folder: Path
) -> None:
    configure(folder, partition=short_partition)
    result = check(folder)
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert (
        "would wait forever, because they request more than the 20 minutes of partition graceful; lower max_minutes"
        in line
    )
    configure(folder, max_minutes=20)
    assert check(folder).returncode == 0
