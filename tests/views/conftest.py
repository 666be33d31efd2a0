"""The shared site of one experiment, and the shipped project with generated results."""

from pathlib import Path

import pytest
from measured_experiment import experiment, two_models, two_models_once  # noqa: F401
from page_site import ROWS, Site, two_runs
from shipped_workflow import Workflow

from hatchery.experiment.project import Project


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The shared site of two runs with all pages; tests must not change its files."""
    site = two_runs(tmp_path_factory.mktemp("page"))
    site.write(ROWS)
    return site


@pytest.fixture(scope="session")
def workflow_once(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> tuple[Path, Workflow]:
    folder = tmp_path_factory.mktemp("shipped")
    (folder / "config").symlink_to(repository / "config")
    return folder, Workflow(Project(folder / "config"))


@pytest.fixture
def workflow(workflow_once: tuple[Path, Workflow], monkeypatch: pytest.MonkeyPatch) -> Workflow:
    """The shipped project with generated results; its folder is the current directory."""
    monkeypatch.chdir(workflow_once[0])
    return workflow_once[1]
