"""Parquet rows as records: only the columns that are asked for, a batch at a time, nested objects as dictionaries.

Columns of text and numbers go through NumPy, which is several times as fast as Arrow's own conversion.
"""

from collections.abc import Collection, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hatchery.errors import EvaluationError
from hatchery.evaluation.json_lines import Record
from hatchery.storage.sources import RawSource

_ROWS_PER_BATCH = 8192


def read_parquet(source: RawSource, name: str, wanted: Collection[str]) -> Iterator[Record]:
    """Yield the rows of a Parquet file in order; `line` is the number of the row, from 1.

    Raises EvaluationError naming file and row for a damaged file, and naming the file when it holds no row.
    """
    row = 0
    try:
        with source.open(name) as handle:
            file = pq.ParquetFile(handle)
            columns = [column for column in file.schema_arrow.names if column in wanted]
            left_out = tuple(column for column in file.schema_arrow.names if column not in wanted)
            for batch in file.iter_batches(_ROWS_PER_BATCH, columns=columns, use_threads=False):
                cells = [_objects(column) for column in batch.columns]
                # Not by the columns' lengths: a file may have none of the wanted columns.
                rows = zip(*cells, strict=True) if cells else (() for _ in range(batch.num_rows))
                for values in rows:
                    row += 1
                    yield Record(dict(zip(columns, values, strict=True)), f"{name}, row {row}", row, left_out)
    except (OSError, EOFError, UnicodeDecodeError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise EvaluationError(f"{name}: after row {row}: not readable as Parquet: {reason}") from error
    if row == 0:
        raise EvaluationError(f"{name}: the file holds no records")


def _objects(column: pa.Array) -> list[Any]:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    # A null number would come out of NumPy as a float.
    if is_text or (column.null_count == 0 and (pa.types.is_integer(kind) or pa.types.is_floating(kind))):
        return list(column.to_numpy(zero_copy_only=False).tolist())
    return list(column.to_pylist())
