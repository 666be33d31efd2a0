"""Fixtures that several test folders share, and how tests share the processors."""

import os
from pathlib import Path

import pytest

# Before anything imports torch. The tests' matrices are tiny: several threads wait for each other far longer than
# they compute, and longer still beside another test process.
os.environ.setdefault("OMP_NUM_THREADS", "1")

REPOSITORY = Path(__file__).resolve().parent.parent
TESTS = REPOSITORY / "tests"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of a folder in one process: they share what their session fixtures make.

    The folders that really run the workflow take longest, so they begin.
    """
    for item in items:
        item.add_marker(pytest.mark.xdist_group(item.path.relative_to(TESTS).parts[0]))
    items.sort(key=lambda item: item.path.relative_to(TESTS).parts[0] not in ("workflow", "slurm"))


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
