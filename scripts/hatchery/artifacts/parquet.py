"""Reads and writes Parquet files, row group by row group in constant memory, and writes shards named `i-of-n`. Errors
name the file.
"""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hatchery.artifacts.atomic import atomic_path
from hatchery.errors import ManifestError, first_line

ROW_GROUP_BYTES = 8 << 20
ROW_BYTES = 16
"""Number of bytes that the size of a row group counts for each row, in addition to the characters of the row's
texts.
"""


def write_table(path: str | Path, table: pa.Table) -> None:
    """Write a table to `path` atomically, compressed with zstd."""
    with atomic_path(path) as partial:
        pq.write_table(table, partial, compression="zstd")


def read_table(path: str | Path, columns: list[str] | None = None) -> pa.Table:
    """Return the table in a Parquet file. Raises ManifestError, which names the file, if the file is missing or
    damaged.
    """
    try:
        return pq.read_table(path, columns=columns, partitioning=None)
    except (OSError, pa.ArrowException, KeyError) as error:
        raise ManifestError(f"{path}: not a readable Parquet file: {first_line(error)}") from error


def read_tables(paths: Iterable[str | Path], columns: list[str] | None = None) -> pa.Table:
    """Return the concatenated tables of Parquet files with equal schemas, in the given order."""
    return pa.concat_tables([read_table(path, columns) for path in paths])


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Add the file's name to an OSError that the `with` block raises, because Arrow's errors do not contain the
    name.
    """
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def _row_sizes(table: pa.Table) -> npt.NDArray[np.int64]:
    """Return the estimated size in bytes of each row, shape (rows,): ROW_BYTES plus the number of characters of the
    row's texts. The method `TableWriter.write` uses the same estimate.
    """
    sizes = np.full(table.num_rows, ROW_BYTES, dtype=np.int64)
    for column in table.columns:
        if column.type == pa.string():
            sizes += pc.fill_null(pc.utf8_length(column), 0).to_numpy()
    return sizes


class TableWriter:
    """Writes a Parquet file in row groups of about ROW_GROUP_BYTES, so that only one row group is in memory.

    The caller passes a temporary name as `path` and renames the file afterwards (`atomic_path`). If `is_temporary` is
    true, the file is compressed fast, and without dictionaries and statistics, because the caller will read the file
    only once and delete it.
    """

    def __init__(self, path: str | Path, schema: pa.Schema, is_temporary: bool = False) -> None:
        self.rows = 0
        """Number of rows written so far."""
        self._path = Path(path)
        self._schema = schema
        self._writer = pq.ParquetWriter(
            path,
            schema,
            compression="lz4" if is_temporary else "zstd",
            use_dictionary=not is_temporary,
            write_statistics=not is_temporary,
        )
        # Rows in memory that are not yet written: `_buffer` contains rows as dictionaries, `_tables` contains tables.
        self._buffer: list[Mapping[str, Any]] = []
        self._tables: list[pa.Table] = []
        self._bytes = 0

    def write(self, row: Mapping[str, Any]) -> None:
        """Add one row. The methods `write` and `write_rows` cannot be mixed in one file."""
        self._buffer.append(row)
        self.rows += 1
        size = ROW_BYTES
        for value in row.values():
            if isinstance(value, str):
                size += len(value)
        self._bytes += size
        if self._bytes >= ROW_GROUP_BYTES:
            self._flush()

    def write_rows(self, table: pa.Table) -> None:
        """Add the rows of a table. The file has the same bytes as if each row had been added with `write`."""
        ends = np.cumsum(_row_sizes(table))
        start = 0
        while start < table.num_rows:
            before = int(ends[start - 1]) if start else 0
            # A row group ends after the row with which it reaches ROW_GROUP_BYTES.
            end = int(np.searchsorted(ends, before + ROW_GROUP_BYTES - self._bytes)) + 1
            part = table.slice(start, end - start)
            self._tables.append(part)
            self.rows += part.num_rows
            start += part.num_rows
            self._bytes += int(ends[start - 1]) - before
            if self._bytes >= ROW_GROUP_BYTES:
                self._flush()

    def write_table(self, table: pa.Table) -> None:
        """Write a table as a separate row group, which is ten times as fast as writing row by row."""
        self._flush()
        self._append(table)
        self.rows += table.num_rows

    def _flush(self) -> None:
        if self._buffer:
            self._append(pa.Table.from_pylist(self._buffer, schema=self._schema))
        elif self._tables:
            # Write all rows of a group in one call, because each call starts a new Parquet page.
            self._append(pa.concat_tables(self._tables).combine_chunks())
        self._buffer, self._tables, self._bytes = [], [], 0

    def _append(self, table: pa.Table) -> None:
        with _named(self._path):
            self._writer.write_table(table, row_group_size=max(table.num_rows, 1))

    def close(self) -> None:
        """Write the rows that are still in memory, and close the file."""
        self._flush()
        with _named(self._path):
            self._writer.close()

    def abandon(self) -> None:
        """Close the file without writing the rows that are still in memory. For use after an error, such as a full
        disk.
        """
        with contextlib.suppress(OSError, pa.ArrowException):
            self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()


def read_groups(path: str | Path, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """Yield the row groups of a Parquet file as tables; only one row group is in memory at a time.

    Raises ManifestError if the file is missing or damaged.
    """
    try:
        with pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                yield file.read_row_group(group, columns=columns)
    except (OSError, pa.ArrowException) as error:
        raise ManifestError(f"{path}: not a readable Parquet file: {first_line(error)}") from error


def read_batches(path: str | Path, rows: int, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a Parquet file in batches of at most `rows` rows.

    Raises ManifestError if the file is missing or damaged.
    """
    try:
        with pq.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False) as file:
            yield from file.iter_batches(rows, columns=columns, use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise ManifestError(f"{path}: not a readable Parquet file: {first_line(error)}") from error


def read_rows(path: str | Path, columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
    """Yield the rows of a Parquet file, each as a dictionary of its values by column; one row group is in memory at a
    time.

    Raises ManifestError if the file is missing or damaged.
    """
    for table in read_groups(path, columns):
        yield from table.to_pylist()


class ShardWriter:
    """Writes rows to shards, Parquet files with `rows_per_shard` rows each, in constant memory.

    The files are named `{prefix}-{i:05d}-of-{n:05d}.parquet`. Because the number n of shards is only known at the end,
    shards first have temporary names and are renamed when the writer is closed. After an exception, the shards are
    removed. Shards of an earlier run with the same prefix are removed, so a folder never contains shards of two runs.
    At least one shard is written, possibly without rows.
    """

    def __init__(self, folder: str | Path, prefix: str, schema: pa.Schema, rows_per_shard: int) -> None:
        self.folder = Path(folder)
        self.prefix = prefix
        self.schema = schema
        self.rows_per_shard = rows_per_shard
        self.rows = 0
        self.paths: list[Path] = []
        self._open: TableWriter | None = None
        self._partials: list[Path] = []

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        return self

    def write(self, row: Mapping[str, Any]) -> None:
        """Add one row."""
        if self._open is None:
            self._open = self._next()
        self._open.write(row)
        self.rows += 1
        if self._open.rows >= self.rows_per_shard:
            self._finish(self._open)

    def write_table(self, table: pa.Table) -> None:
        """Write the rows of a table as a separate row group, ten times as fast as row by row."""
        self._write(table, TableWriter.write_table)

    def write_rows(self, table: pa.Table) -> None:
        """Add the rows of a table. The files have the same bytes as if each row had been added with `write`."""
        self._write(table, TableWriter.write_rows)

    def _write(self, table: pa.Table, write: Callable[[TableWriter, pa.Table], None]) -> None:
        while table.num_rows:
            if self._open is None:
                self._open = self._next()
            head = table.slice(0, self.rows_per_shard - self._open.rows)
            write(self._open, head)
            self.rows += head.num_rows
            table = table.slice(head.num_rows)
            if self._open.rows >= self.rows_per_shard:
                self._finish(self._open)

    def complete(self) -> None:
        """Write the rows that are still in memory, so that closing the writer only renames files.

        If the shards of several writers must appear at the same time, call this method of each writer before closing
        the first writer.
        """
        if self._open is not None or not self._partials:
            self._finish(self._open or self._next())

    def _next(self) -> TableWriter:
        partial = self.folder / f".{self.prefix}-{len(self._partials):05d}.parquet.partial"
        self._partials.append(partial)
        return TableWriter(partial, self.schema)

    def _finish(self, shard: TableWriter) -> None:
        shard.close()
        self._open = None
        with self._partials[-1].open("rb+") as handle:
            os.fsync(handle.fileno())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.complete()
                self._publish()
        finally:
            if self._open is not None:
                self._open.abandon()
            for partial in self._partials:
                partial.unlink(missing_ok=True)

    def _publish(self) -> None:
        for stale in self.folder.glob(f"{self.prefix}-*-of-*.parquet"):
            stale.unlink()
        total = len(self._partials)
        for index, partial in enumerate(self._partials):
            path = self.folder / f"{self.prefix}-{index:05d}-of-{total:05d}.parquet"
            partial.replace(path)
            self.paths.append(path)
