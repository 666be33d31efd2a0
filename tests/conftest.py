"""Fixtures that several test folders share."""

from pathlib import Path

import pytest

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
