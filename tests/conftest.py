"""Fixtures that several test folders share."""

from pathlib import Path

import pytest
from projects import make_demo_project, snakemake

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of this checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def shared_directory() -> Path:
    """The folder of reference and real data beside the checkout; the test is skipped where it is missing."""
    shared = REPOSITORY.parent / "shared"
    if not (shared / "reference").is_dir():
        pytest.skip("needs ../shared with the reference data, which is not part of the repository")
    return shared


@pytest.fixture(scope="session")
def golden_directory(shared_directory: Path) -> Path:
    """Inputs and outputs measured on the authors' models."""
    return shared_directory / "reference" / "golden"


@pytest.fixture(scope="session")
def demo_project(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """A project folder in which the demo ran here, which takes minutes; several tests read it, none may change it."""
    folder = make_demo_project(tmp_path_factory.mktemp("demo") / "project", repository)
    result = snakemake(folder, "--cores", "2", "--", "results/demo/index.html")
    assert result.returncode == 0, (result.stdout + result.stderr)[-6000:]
    return folder
