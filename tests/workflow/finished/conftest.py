"""The tiny experiment, run once for all tests that look at its files or ask what would run again."""

from pathlib import Path

import pytest
from projects import TINY, make_project, snakemake


@pytest.fixture(scope="session")
def finished_project(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """A project folder in which the tiny experiment ran to its page and its exported models."""
    folder = make_project(tmp_path_factory.mktemp("workflow") / "project", repository)
    result = snakemake(folder, "--cores", "2", *TINY)
    assert result.returncode == 0, (result.stdout + result.stderr)[-6000:]
    return folder
