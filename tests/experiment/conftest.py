"""A copy of the shipped configuration that a test may break."""

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def configuration(tmp_path: Path, repository: Path) -> Path:
    """The folder `config/` in a folder of its own."""
    folder = tmp_path / "config"
    shutil.copytree(repository / "config", folder)
    return folder
