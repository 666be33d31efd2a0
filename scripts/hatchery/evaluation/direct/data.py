"""Data of an evaluation by `hatchery.evaluate` (without an experiment) as a raw source: a file, a folder, an archive,
or a table in memory.

Readers of suites, tasks and texts expect a raw source. Here, files are read in place, without registration.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from hatchery.errors import ConfigError, EvaluationError, SourceError
from hatchery.evaluation.json_lines import shorten
from hatchery.raw.archives import ArchiveLimits, is_archive, unpack
from hatchery.raw.registration import RawSource, unregistered

MOST_FILES = 1_000_000
TABLE = "table.parquet"
"""File name under which messages mention a table in memory."""


def source_at(path: str | Path, scratch: Path) -> RawSource:
    """Return the files at `path`; an archive is unpacked into the folder `scratch`.

    Raises SourceError for a missing path or an empty folder.
    """
    root = Path(path).expanduser()
    if is_archive(root):
        unpack(root, scratch / "unpacked", ArchiveLimits())
        root = scratch / "unpacked"
    found = unregistered(root, MOST_FILES)
    if found is None:
        what = "an empty folder" if root.is_dir() else "no such file or folder"
        raise SourceError(f"{path}: data: {what}; expected a file, a folder or an archive with the data")
    return found


def source_of_frame(frame: pl.DataFrame, scratch: Path) -> RawSource:
    """Write `frame` to the file TABLE in `scratch`, and return a source with this single file."""
    scratch.mkdir(parents=True, exist_ok=True)
    frame.write_parquet(scratch / TABLE)
    found = unregistered(scratch / TABLE, 1)
    assert found is not None
    return replace(found, root=scratch, kind="folder")


def as_frame(data: Any) -> pl.DataFrame:
    """Return a table in memory (a polars or pandas data frame, a mapping of columns, or a list of mappings) as a polars
    data frame.

    Raises ConfigError if `data` has another type.
    """
    if isinstance(data, pl.DataFrame):
        return data
    if isinstance(data, pl.LazyFrame):
        return data.collect()
    if type(data).__module__.startswith("pandas"):
        return pl.from_pandas(data)
    if isinstance(data, Mapping) or (
        isinstance(data, Sequence) and data and all(isinstance(row, Mapping) for row in data)
    ):
        return pl.DataFrame(data)
    raise ConfigError(
        f"data: got {shorten(data)}, expected a table: a data frame of polars or pandas, a mapping of columns, or a "
        "list of rows"
    )


def require_texts(frame: pl.DataFrame, columns: Sequence[str]) -> None:
    """Raise EvaluationError naming the first cell of `columns` that is not a text, or ConfigError for a missing
    column."""
    for column in columns:
        if column not in frame.columns:
            raise ConfigError(f"column: got {column!r}, expected one of {', '.join(frame.columns)}")
        cells = frame[column]
        if cells.dtype == pl.String and cells.null_count() == 0:
            continue
        for number, value in enumerate(cells, start=1):
            if not isinstance(value, str):
                raise EvaluationError(f"row {number:,}: {column}: got {shorten(value)}, expected a text")
