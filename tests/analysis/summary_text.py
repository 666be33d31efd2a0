"""Tables as text: a summary written from the lines of its CSV file, and the cells of a Markdown table."""

import csv
from pathlib import Path
from typing import get_type_hints

from hatchery.analysis.summary_rows import COLUMNS, SummaryRow, write_csv, write_parquet
from hatchery.artifacts.checksums import write_checksums

KINDS = get_type_hints(SummaryRow)


def write_summary(folder: Path, lines: list[str]) -> Path:
    """Write `summary.csv` and `summary.parquet` from lines without a header; return the path of `summary.parquet`."""
    rows = []
    for texts in csv.DictReader(lines, COLUMNS, restval=""):
        counts = {name: int(texts[name] or 0) for name in ("n", "n_failed", "n_without_number")}
        # By default, each run is a pretraining seed.
        counts["seeds"] = int(texts["seeds"] or counts["n"])
        numbers = {name: float(text) if text else None for name, text in texts.items() if KINDS[name] == float | None}
        rows.append(SummaryRow(**{**texts, **numbers, **counts}))
    return write_rows_of_summary(folder, rows)


def write_rows_of_summary(folder: Path, rows: list[SummaryRow]) -> Path:
    """Write `summary.csv` and `summary.parquet` from rows; return the path of `summary.parquet`."""
    write_csv(folder / "summary.csv", rows)
    write_parquet(folder / "summary.parquet", rows)
    write_checksums([folder / "summary.csv", folder / "summary.parquet"])
    return folder / "summary.parquet"


def cells_of(markdown: str, source: str) -> list[list[str]]:
    """Return the rows of a table whose second cell starts with `source`."""
    lines = [line[2:-2].split(" | ") for line in markdown.splitlines() if line.startswith("| ")]
    return [line for line in lines if len(line) > 2 and line[1].startswith(source)]
