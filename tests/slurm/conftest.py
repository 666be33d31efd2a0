"""The test cluster, started once for all tests that need it and stopped after them."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import cluster
import pytest
from cluster_jobs import MODELS, cluster_command, make_cluster_project
from projects import snakemake

TOKENS = "results/tokens/tiny/tiny/manifest.json"
# Sources that fine-tuning reads.
SOURCES = tuple(f"resources/sources/embedded_{name}.json" for name in ("glue", "filter_data", "hans"))


@pytest.fixture(scope="session")
def slurm_cluster() -> Iterator[None]:
    """Two idle nodes. A cluster that ran before stays; a cluster started here is stopped without leaving a process.

    If no cluster can run, the tests are skipped, or fail with HATCHERY_REQUIRE_CLUSTER set, as in CI.
    """
    reason = cluster.unavailable()
    if reason and os.environ.get("HATCHERY_REQUIRE_CLUSTER"):
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)
    ran_before = cluster.is_up()
    if not ran_before:
        assert cluster_command("stop").returncode == 0
        cluster.forget_jobs()
    started = cluster_command("start")
    assert started.returncode == 0, started.stderr
    yield
    if not ran_before:
        stopped = cluster_command("stop")
        assert stopped.returncode == 0, stopped.stderr
        assert cluster.leftovers() == []


@pytest.fixture(scope="session")
def prepared_project(slurm_cluster: None, tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """A project folder configured for two nodes, with sources, tokens and tokenizer; tests must not change it."""
    folder = make_cluster_project(tmp_path_factory.mktemp("prepared") / "project", repository)
    return _run_here(folder, *SOURCES, TOKENS)


@pytest.fixture(scope="session")
def copy_of_project(prepared_project: Path) -> Callable[[Path], Path]:
    """Return a function that copies the prepared project into the given folder."""
    return lambda folder: Path(shutil.copytree(prepared_project, folder, symlinks=True))


@pytest.fixture(scope="session")
def local_project(copy_of_project: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project folder whose pretrainings ran on this machine alone, each undisturbed in one process."""
    return _run_here(copy_of_project(tmp_path_factory.mktemp("local") / "project"), *MODELS)


def _run_here(folder: Path, *targets: str) -> Path:
    result = snakemake(folder, "--cores", "2", "--", *targets)
    assert result.returncode == 0, (result.stdout + result.stderr)[-6000:]
    return folder
