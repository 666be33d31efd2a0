"""Parquet helpers: sharded writing with names that say `i-of-n`, and reading back with clear errors."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from hatchery.errors import ManifestError
from hatchery.storage.atomic import atomic_path


def write_table(path: str | Path, table: pa.Table) -> None:
    """Write one table to `path` atomically, compressed with zstd."""
    with atomic_path(path) as partial:
        pq.write_table(table, partial, compression="zstd")


def read_table(path: str | Path, columns: list[str] | None = None) -> pa.Table:
    """Read one Parquet file. Raises ManifestError naming the file when it is missing or damaged."""
    try:
        return pq.read_table(path, columns=columns, partitioning=None)
    except (OSError, pa.ArrowException, KeyError) as error:
        raise ManifestError(f"{path}: not a readable Parquet file: {str(error).splitlines()[0]}") from error


def read_tables(paths: Iterable[str | Path], columns: list[str] | None = None) -> pa.Table:
    """Read and concatenate Parquet files of one schema, in the given order."""
    return pa.concat_tables([read_table(path, columns) for path in paths])


class ShardWriter:
    """Write rows to `{prefix}-{i:05d}-of-{n:05d}.parquet` with at most `rows_per_shard` rows each.

    The number of shards is known only at the end, so shards are written under partial names and renamed when the
    writer is closed; after an exception nothing of them stays. Shards of an earlier run with the same prefix are
    removed, so a folder never mixes two runs. Always makes at least one shard, possibly without rows.
    """

    def __init__(self, folder: str | Path, prefix: str, schema: pa.Schema, rows_per_shard: int) -> None:
        self.folder = Path(folder)
        self.prefix = prefix
        self.schema = schema
        self.rows_per_shard = rows_per_shard
        self.rows = 0
        self.paths: list[Path] = []
        self._buffer: list[Mapping[str, Any]] = []
        self._partials: list[Path] = []

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        return self

    def write(self, row: Mapping[str, Any]) -> None:
        """Add one row."""
        self._buffer.append(row)
        self.rows += 1
        if len(self._buffer) >= self.rows_per_shard:
            self._flush()

    def _flush(self) -> None:
        partial = self.folder / f".{self.prefix}-{len(self._partials):05d}.parquet.partial"
        write_table(partial, pa.Table.from_pylist(self._buffer, schema=self.schema))
        self._partials.append(partial)
        self._buffer = []

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            for partial in self._partials:
                partial.unlink(missing_ok=True)
            return
        if self._buffer or not self._partials:
            self._flush()
        for stale in self.folder.glob(f"{self.prefix}-*-of-*.parquet"):
            stale.unlink()
        total = len(self._partials)
        for index, partial in enumerate(self._partials):
            path = self.folder / f"{self.prefix}-{index:05d}-of-{total:05d}.parquet"
            partial.replace(path)
            self.paths.append(path)
