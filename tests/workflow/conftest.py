"""The tiny experiment, run once for all tests that look at its files or ask what would run again."""

import importlib.util
import sys
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location("projects", Path(__file__).parent / "projects.py")
assert _spec is not None and _spec.loader is not None
_projects = importlib.util.module_from_spec(_spec)
sys.modules["projects"] = _projects
_spec.loader.exec_module(_projects)


@pytest.fixture(scope="session")
def finished_project(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """A project folder in which the tiny experiment ran to its page."""
    folder = _projects.make_project(tmp_path_factory.mktemp("workflow") / "project", repository)
    result = _projects.snakemake(folder, "--cores", "2", "results/tiny/index.html")
    assert result.returncode == 0, (result.stdout + result.stderr)[-6000:]
    return folder
