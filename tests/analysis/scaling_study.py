"""Helpers of the scaling tests: values of findings, and the study with other runs."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hatchery.analysis.analyses.analysis import Findings, Study
from hatchery.analysis.tidy_tables import RUNS, read_frame, write_rows

Analysed = Callable[..., Findings]
PAPER = {"paper": "reduced_vocabulary"}


def rows(found: Findings, **wanted: Any) -> list[Mapping[str, Any]]:
    return [row for row in found.rows if wanted.items() <= row.items()]


def cells(found: Findings, table: int = 0) -> list[list[str]]:
    return [[cell if isinstance(cell, str) else cell.text for cell in row.cells] for row in found.tables[table].rows]


def altered(study: Study, folder: Path, change: Callable[[dict[str, Any]], list[dict[str, Any]]]) -> Study:
    """Return the study with other runs; `change` returns the replacements of a run."""
    runs = [new for run in read_frame(study.tables["runs"], RUNS).to_dicts() for new in change(run)]
    write_rows(folder / "runs.parquet", RUNS, runs)
    return replace(study, tables={**study.tables, "runs": folder / "runs.parquet"})
