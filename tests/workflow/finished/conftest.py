"""The tiny experiments, run once for all tests that check their files or plan reruns."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from forked import surroundings
from forked_client import FIRST
from projects import (
    CAUSAL,
    COPY,
    ONE_CONVERTS,
    STUDY,
    STUDY_PAGE,
    STUDY_TEXT,
    TINY,
    make_project,
    planned_rules,
    snakemake,
)


@pytest.fixture(scope="session")
def finished_project(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """A project folder in which the tiny experiments ran to their pages and their exported models."""
    folder = make_project(tmp_path_factory.mktemp("workflow") / "project", repository)
    result = snakemake(folder, "--cores", "2", *TINY, *CAUSAL)
    assert result.returncode == 0, (result.stdout + result.stderr)[-6000:]
    return folder


@pytest.fixture(scope="session")
def second_project(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """A second project at another place, where the first job of every stage starts as a process of a user does.

    The logs of these jobs name all imported modules. All other jobs are forked as in the first project, with another
    seed of Python's hashes. Corpora are converted by one process instead of two.
    """
    folder = make_project(tmp_path_factory.mktemp("another place") / "project", repository)
    first = {**surroundings(1), FIRST: str(tmp_path_factory.mktemp("first"))}
    result = snakemake(folder, *ONE_CONVERTS, "--cores", "2", *CAUSAL, *TINY, environment=first)
    assert result.returncode == 0, (result.stdout + result.stderr)[-6000:]
    return folder


@pytest.fixture(scope="module")
def study(finished_project: Path) -> Iterator[Path]:
    """The project with a study of the tiny experiment and a copy of it with the same models and evaluations."""
    first = not (finished_project / STUDY_PAGE).exists()
    (finished_project / COPY).write_bytes((finished_project / "config/experiments/tiny.yaml").read_bytes())
    (finished_project / STUDY).parent.mkdir(exist_ok=True)
    (finished_project / STUDY).write_text(STUDY_TEXT, encoding="utf-8")
    planned = planned_rules(finished_project, "results/side/summary.csv")
    assert planned == ({"collect_measurements": 1, "join_experiments": 1, "summarise": 1} if first else {})
    result = snakemake(finished_project, "--cores", "2", STUDY_PAGE)
    assert result.returncode == 0, (result.stdout + result.stderr)[-6000:]
    yield finished_project
    (finished_project / COPY).unlink()
    (finished_project / STUDY).unlink()
