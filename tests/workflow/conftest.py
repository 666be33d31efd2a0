"""Projects that tests of the workflow may change, and the shipped one."""

from pathlib import Path

import pytest
from projects import make_project

from hatchery.experiment.project import Project
from hatchery.workflow.jobs import Jobs


@pytest.fixture
def project(tmp_path: Path, repository: Path) -> Path:
    """A project folder with the shipped configuration and the tiny experiments."""
    return make_project(tmp_path / "project", repository)


@pytest.fixture(scope="session")
def jobs(repository: Path) -> Jobs:
    """The jobs of the shipped configuration."""
    return Jobs(Project(repository / "config"))
