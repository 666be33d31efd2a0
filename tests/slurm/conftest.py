"""The test cluster, started once for all tests that need it and stopped behind them."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import cluster
import pytest
from cluster_jobs import MODELS, cluster_command, make_cluster_project
from projects import snakemake


@pytest.fixture(scope="session")
def slurm_cluster() -> Iterator[None]:
    """Two idle nodes. One that ran before stays; one started here is stopped without leaving a process."""
    reason = cluster.unavailable()
    if reason:
        pytest.skip(reason)
    ran_before = cluster.is_up()
    started = cluster_command("start")
    assert started.returncode == 0, started.stderr
    yield
    if not ran_before:
        stopped = cluster_command("stop")
        assert stopped.returncode == 0, stopped.stderr
        assert cluster.leftovers() == []


@pytest.fixture(scope="session")
def local_project(slurm_cluster: None, tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """A project folder configured for two nodes, in which the pretrainings ran on this machine alone."""
    folder = make_cluster_project(tmp_path_factory.mktemp("local") / "project", repository)
    result = snakemake(folder, "--cores", "2", "--", *MODELS)
    assert result.returncode == 0, (result.stdout + result.stderr)[-6000:]
    return folder


@pytest.fixture(scope="session")
def copy_of_project(local_project: Path) -> Callable[[Path], Path]:
    """What makes a project folder with sources, tokens and tokenizer, but without the pretrained models."""

    def copied(folder: Path) -> Path:
        shutil.copytree(local_project, folder, symlinks=True)
        for name in ("long", "checkpoints"):
            shutil.rmtree(folder / "results" / name, ignore_errors=True)
        return folder

    return copied
