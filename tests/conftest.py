"""Fixtures that several test folders share, and how tests share the processors."""

import os
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

# Before anything imports torch. The tests' matrices are tiny: several threads wait for each other far longer than
# they compute, and longer still beside another test process.
os.environ.setdefault("OMP_NUM_THREADS", "1")

REPOSITORY = Path(__file__).resolve().parent.parent
TESTS = REPOSITORY / "tests"


class FolderScheduling(LoadScopeScheduling):
    """Tests of a folder run in one process, because they share what session fixtures make.

    The files of tests/workflow share nothing but what lies in its folder `finished`, and take longest: each may run
    anywhere. pytest-xdist's own groups are marks, which it does not see with pytest 9.
    """

    def _split_scope(self, nodeid: str) -> str:
        parts = nodeid.partition("::")[0].split("/")
        return "/".join(parts[: 3 if "workflow" in parts[:2] else 2])


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FolderScheduling:
    """How `pytest -n 2 --dist loadscope` shares the tests among processes."""
    return FolderScheduling(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first, so that no process is left with them at the end."""
    items.sort(key=lambda item: item.path.relative_to(TESTS).parts[0] != "workflow")


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
