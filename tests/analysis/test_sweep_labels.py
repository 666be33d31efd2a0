"""A run that a sweep made is called by what differs wherever people read, and by its short name in files."""

import csv
import dataclasses
from pathlib import Path
from typing import Any

import pytest

from hatchery.analysis.settings import models_with_counts
from hatchery.analysis.summary_rows import SummaryRow
from hatchery.experiment.seeded_run import SeededRun
from hatchery.runner import run_stage
from hatchery.views.page import _listed
from hatchery.views.stages.summarise import summarise
from hatchery.views.summary_text import WIDTH

LABEL = "elc, learning_rate 0.005, optimizer.name lamb"


@pytest.fixture
def written(two_models: Any, tmp_path: Path) -> dict[str, str]:
    settings = two_models.summary_settings()
    settings["runs"] = [{**run, **({"label": LABEL} if run["model"] == "elc" else {})} for run in settings["runs"]]
    names = ("summary.csv", "summary.parquet", "summary.md", "summary.txt")
    paths = [tmp_path / name for name in names]
    table, parquet, markdown, text = paths
    run_stage(
        summarise,
        settings,
        table,
        measurements=two_models.collected(),
        published=[],
        parquet=parquet,
        markdown=markdown,
        text=text,
    )
    return {path.name: path.read_text() for path in paths if path.suffix != ".parquet"}


def test_the_text_has_a_line_for_each_thing_that_differs(written: dict[str, str]) -> None:
    lines = written["summary.txt"].splitlines()
    found = next(index for index, line in enumerate(lines) if line.endswith(" elc"))
    assert lines[found + 1].endswith(" learning_rate 0.005") and lines[found + 2].endswith(" optimizer.name lamb")
    assert all(len(line) <= WIDTH for line in lines)


def test_markdown_has_the_whole_name_and_the_table_for_computers_the_short_one(written: dict[str, str]) -> None:
    assert f"| {LABEL} |" in written["summary.md"]
    models = {row["model"] for row in csv.DictReader(written["summary.csv"].splitlines())}
    assert models == {"elc", "plain"}


def test_seeds_of_a_run_of_a_sweep_are_averaged_under_one_name() -> None:
    runs = [SeededRun("a_x_1-s1", "a_x_1", 1, "a, x 1"), SeededRun("a_x_1-s2", "a_x_1", 2, "a, x 1")]
    assert models_with_counts(runs) == {"a_x_1": "a, x 1 (2 seeds)"}


def test_runs_that_failed_are_called_by_their_labels(two_models: Any, tmp_path: Path) -> None:
    settings = two_models.summary_settings()
    settings["runs"] = [{**run, "label": f"{run['model']}, rate 1"} for run in settings["runs"]]
    markdown = tmp_path / "summary.md"
    run_stage(summarise, settings, tmp_path / "summary.csv", measurements=two_models.collected(), markdown=markdown)
    assert "- Failed or without a number: plain, rate 1, seed 2, cola: majority" in markdown.read_text()


def test_names_with_commas_are_listed_with_semicolons() -> None:
    assert _listed(["plain", LABEL, "third"]) == f"plain; {LABEL} and third"


def test_the_columns_of_the_table_for_computers_are_what_they_were() -> None:
    assert "label" not in [field.name for field in dataclasses.fields(SummaryRow)]
