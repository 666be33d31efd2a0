"""Rows of the tidy table of measurements that a test writes down, as the frame that they are read as."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from hatchery.analysis.tidy_tables import MEASUREMENTS

SCHEMA = pl.DataFrame(MEASUREMENTS.schema.empty_table()).schema
SAME = {"model": "m", "run": "m-s42", "seed": 42, "failed": "", "primary": True, "main": True, "manifest": "0" * 12}


def frame(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """The rows, of one model where they do not say which; a column that a row lacks is null."""
    return pl.DataFrame([SAME | row for row in rows], SCHEMA)
