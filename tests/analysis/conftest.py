"""An experiment with measurements, as stages write them, and the papers' numbers."""

from pathlib import Path

import pytest
from measured_experiment import experiment, two_models, two_models_once  # noqa: F401

from hatchery.analysis.published_values import PublishedNumber, read_numbers


@pytest.fixture(scope="session")
def numbers(repository: Path) -> list[PublishedNumber]:
    """All numbers of all papers."""
    paths = sorted((repository / "config" / "published" / "values").glob("*.csv"))
    return [number for path in paths for number in read_numbers(path)]
