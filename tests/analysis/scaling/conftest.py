"""The published side of the reduced-vocabulary study: its 42 logged runs and their learning curves."""

import csv
from collections.abc import Sequence
from pathlib import Path

import pytest

from hatchery.analysis.published_curves import PublishedRun, read_published_curves


@pytest.fixture(scope="session")
def logged(repository: Path) -> Sequence[PublishedRun]:
    return read_published_curves(repository / "config/published/curves/reduced_vocabulary.csv")


@pytest.fixture(scope="session")
def digitised(golden_directory: Path) -> tuple[list[float], list[float]]:
    """FLOPs and losses of the 30 dots of Figure 1."""
    path = golden_directory / "published" / "reduced_vocabulary_figure1_digitised.csv"
    with path.open(encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    return [float(row["flops"]) for row in rows], [float(row["dev_loss"]) for row in rows]
