"""The miniatures of the papers' experiments run from generated raw files to their pages, tables, figures and reports."""

import csv
from pathlib import Path

import pytest
from projects import make_project, snakemake

from hatchery.config.project import Project

pytestmark = pytest.mark.slow

MINIATURES = ("strict_mini", "strict_small_mini", "bnc_mini")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """A project folder in which all miniatures ran to their pages."""
    folder = make_project(tmp_path_factory.mktemp("miniatures") / "project", repository)
    result = snakemake(folder, "--cores", "2", *(f"results/{name}/index.html" for name in MINIATURES), timeout=3000)
    assert result.returncode == 0, (result.stdout + result.stderr)[-6000:]
    return folder


@pytest.fixture(scope="module")
def project(folder: Path) -> Project:
    return Project(folder / "config")


def summary(folder: Path, experiment: str) -> list[dict[str, str]]:
    with (folder / f"results/{experiment}/summary.csv").open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))
