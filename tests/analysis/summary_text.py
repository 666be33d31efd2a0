"""Tables as text: a summary that a test writes as the lines of its CSV file, and what a table in Markdown says."""

import csv
from pathlib import Path
from typing import get_type_hints

from hatchery.analysis.summary_rows import COLUMNS, SummaryRow, write_csv, write_parquet
from hatchery.artifacts.checksums import write_checksums

KINDS = get_type_hints(SummaryRow)


def write_summary(folder: Path, lines: list[str]) -> Path:
    """Write `summary.csv` and `summary.parquet` of lines without a header; the path of the latter."""
    rows = []
    for texts in csv.DictReader(lines, COLUMNS, restval=""):
        counts = {name: int(texts[name] or 0) for name in ("n", "n_failed", "n_without_number")}
        # As if every run were a pretraining.
        counts["seeds"] = int(texts["seeds"] or counts["n"])
        numbers = {name: float(text) if text else None for name, text in texts.items() if KINDS[name] == float | None}
        rows.append(SummaryRow(**{**texts, **numbers, **counts}))
    return write_rows_of_summary(folder, rows)


def write_rows_of_summary(folder: Path, rows: list[SummaryRow]) -> Path:
    """The same of rows."""
    write_csv(folder / "summary.csv", rows)
    write_parquet(folder / "summary.parquet", rows)
    write_checksums([folder / "summary.csv", folder / "summary.parquet"])
    return folder / "summary.parquet"


def cells_of(markdown: str, source: str) -> list[list[str]]:
    """The cells behind `source` in the lines of a table, with label and number of runs."""
    lines = [line[2:-2].split(" | ") for line in markdown.splitlines() if line.startswith("| ")]
    return [line for line in lines if len(line) > 2 and line[1].startswith(source)]
