"""Results of one evaluation in memory: tables, texts, and values for the manifest. A stage writes these results to
files, which the stage `collect_measurements` reads.

Each evaluation computes its results from a model, data (sentences, words or rows) and settings, without reading or
writing result files.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeAlias

import polars as pl
import pyarrow as pa

from hatchery.artifacts.atomic import atomic_path, write_text
from hatchery.artifacts.manifests import StageRun
from hatchery.artifacts.parquet import TableWriter, write_table
from hatchery.sanitize import csv_text


@dataclass(frozen=True)
class Parts:
    """A table that is produced in parts. Only one part is in memory at a time, and each part is written as a row group
    of Parquet.
    """

    schema: pa.Schema
    tables: Callable[[], Iterator[pa.Table]]


Table: TypeAlias = pl.DataFrame | pa.Table | Parts


def csv_of(frame: pl.DataFrame) -> str:
    """Return a table as the text of a CSV file; null is written as an empty field."""
    return csv_text(frame.columns, frame.iter_rows())


def frame_of(rows: Sequence[Any], schema: type) -> pl.DataFrame:
    """Return a data frame of the dataclass instances `rows`, with a column for each field of their class `schema`."""
    names = [field.name for field in fields(schema)]
    return pl.DataFrame([[getattr(row, name) for name in names] for row in rows], schema=names, orient="row")


@dataclass(frozen=True)
class Scores:
    """Results of one evaluation.

    `tables` and `texts` map file names to the contents of files in the result's folder; the suffix of a table's name,
    `.parquet` or `.csv`, determines its format. `facts` are values that the manifest stores under `measures`. `speed`
    contains measurements, such as seconds, that vary with the machine.
    """

    tables: Mapping[str, Table]
    facts: Mapping[str, Any]
    texts: Mapping[str, str] = field(default_factory=dict)
    speed: Mapping[str, Any] = field(default_factory=dict)

    def frame(self, name: str) -> pl.DataFrame:
        """Return the table with the file name `name` as a polars data frame. Raises KeyError for a name that is not in
        `tables`.
        """
        table = self.tables[name]
        if isinstance(table, pl.DataFrame):
            return table
        found = pl.from_arrow(pa.concat_tables(table.tables()) if isinstance(table, Parts) else table)
        assert isinstance(found, pl.DataFrame)
        return found

    def write(self, run: StageRun) -> None:
        """Write all tables and texts into the folder of `run`, and record the files, facts and speed in `run`."""
        for name, table in self.tables.items():
            path = run.add_output(run.folder / name)
            if path.suffix == ".csv":
                write_text(path, csv_of(self.frame(name)))
            elif isinstance(table, Parts):
                with atomic_path(path) as partial, TableWriter(partial, table.schema) as writer:
                    for part in table.tables():
                        writer.write_table(part)
            else:
                is_arrow = isinstance(table, pa.Table)
                write_table(path, table if is_arrow else table.to_arrow(compat_level=pl.CompatLevel.oldest()))
        for name, text in self.texts.items():
            path = run.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(run.add_output(path), text)
        run.measures |= self.facts
        run.volatile |= self.speed
