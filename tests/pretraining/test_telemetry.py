"""The metrics file begins with what a checkpoint knew, and refuses numbers that JSON has no word for."""

import json
from pathlib import Path

import pytest

from hatchery.pretraining.telemetry import MetricsFile


def test_a_resumed_file_drops_the_steps_after_the_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    metrics = MetricsFile(path)
    for step in range(1, 4):
        metrics.append({"step": step, "loss": 1 / step})
    kept = "".join(metrics.text().splitlines(keepends=True)[:2])
    metrics.append({"step": 4, "loss": 0.25})
    resumed = MetricsFile(path, kept)
    resumed.append({"step": 3, "loss": 1 / 3})
    assert [json.loads(line)["step"] for line in resumed.text().splitlines()] == [1, 2, 3]
    assert json.loads(resumed.text().splitlines()[2])["loss"] == 1 / 3


def test_a_number_that_is_not_finite_never_enters_the_file(tmp_path: Path) -> None:
    metrics = MetricsFile(tmp_path / "metrics.jsonl")
    with pytest.raises(ValueError):
        metrics.append({"step": 1, "loss": float("nan")})
    assert metrics.text() == ""
