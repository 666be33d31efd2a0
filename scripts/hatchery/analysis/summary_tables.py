"""The machine-readable summary: `summary.csv` and the same rows as Parquet.

Both hold no time, host or duration, and numbers are fixed to four decimals, so that two runs of the same work give
the same bytes.
"""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa

from hatchery.analysis.summary_rows import COLUMNS, SummaryRow
from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.parquet import write_table
from hatchery.sanitize import csv_text

NUMBERS = (
    "mean",
    "std",
    "sampling_deviation",
    "blind_guess",
    "mean_without_failed",
    "published_mean",
    "published_std",
    "difference",
)
COUNTS = ("n", "n_failed", "n_without_number")


def write_csv(path: str | Path, rows: Sequence[SummaryRow]) -> None:
    """Write the rows as CSV with a header; floats with four decimals, None as an empty field."""
    write_text(path, csv_text(COLUMNS, ([row.printed(column) for column in COLUMNS] for row in rows)))


def write_parquet(path: str | Path, rows: Sequence[SummaryRow]) -> None:
    """Write the rows as Parquet: float64 (null for an empty field), int32 counts, strings."""
    kinds = dict.fromkeys(NUMBERS, pa.float64()) | dict.fromkeys(COUNTS, pa.int32())
    schema = pa.schema([(column, kinds.get(column, pa.string())) for column in COLUMNS])
    write_table(path, pa.Table.from_pylist([asdict(row) for row in rows], schema=schema))
