"""A summary that a test writes as the lines of its CSV file, in both forms that the stage writes."""

import csv
from pathlib import Path

from hatchery.analysis.summary_rows import COLUMNS, SummaryRow
from hatchery.analysis.summary_tables import COUNTS, NUMBERS, write_csv, write_parquet
from hatchery.artifacts.checksums import write_checksums


def write_summary(folder: Path, lines: list[str]) -> Path:
    """Write `summary.csv` and `summary.parquet` of lines without a header; the path of the latter."""
    rows = []
    for texts in csv.DictReader(lines, COLUMNS, restval=""):
        numbers = {name: float(texts[name]) if texts[name] else None for name in NUMBERS}
        counts = {name: int(texts[name] or 0) for name in COUNTS}
        rows.append(SummaryRow(**{**texts, **numbers, **counts}))
    return write_rows_of_summary(folder, rows)


def write_rows_of_summary(folder: Path, rows: list[SummaryRow]) -> Path:
    """The same of rows."""
    write_csv(folder / "summary.csv", rows)
    write_parquet(folder / "summary.parquet", rows)
    write_checksums([folder / "summary.csv", folder / "summary.parquet"])
    return folder / "summary.parquet"
