"""The benchmark of the views knows the stages as they are: it makes all views of a few models."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def test_all_views_of_a_few_models_are_made(repository: Path) -> None:
    command = [sys.executable, "benchmarks/view_experiment.py", "--models", "2", "--tasks", "2"]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    made = [line.split()[0] for line in done.stdout.splitlines()]
    assert made[0] == "2"
    for view in ("collect_measurements", "summarise", "write_tables", "write_cost", "write_provenance", "write_page"):
        assert view in made
    sizes = {
        words[0]: int(words[1].replace(",", ""))
        for line in done.stdout.splitlines()
        if "bytes" in (words := line.split())
    }
    assert min(sizes[name] for name in ("index.html", "summary.csv", "measurements.parquet")) > 1000
