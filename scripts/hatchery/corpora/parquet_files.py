"""Rows and texts of Parquet files, such as the data sets of the Hugging Face hub.

Row groups are read in batches, and the pages of a column are read through a small buffer. So memory does not grow with
the size of the file or of its row groups.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hatchery.corpora.raw_files import Piece, where_in
from hatchery.corpora.rows import PlacedRow
from hatchery.corpora.text_files import Lines
from hatchery.errors import SourceError, first_line
from hatchery.raw.registration import RawSource

UNREAD = object()
"""Value in a row for a column that was not read."""
_ROWS_PER_BATCH = 8192
# Batches of texts are small, because a text may be a whole book.
_TEXTS_PER_BATCH = 1000
_BUFFER_BYTES = 1 << 20
_BATCH_BYTES = 64 << 20
_NULL = pa.null()


@contextmanager
def _opened(source: RawSource, name: str, where: str, done: Callable[[], int]) -> Iterator[pq.ParquetFile]:
    """Yield the Parquet file `name` of a source, opened for reading. Raises SourceError for a damaged file; the message
    contains the number of rows read so far, which `done` returns.

    Raises SourceError for columns that Arrow cannot distinguish.
    """
    try:
        with source.open(name) as handle:
            file = pq.ParquetFile(handle, buffer_size=_BUFFER_BYTES, pre_buffer=False)
            check_names(file.schema_arrow, where)
            yield file
    except (OSError, EOFError, UnicodeDecodeError, pa.ArrowException) as error:
        raise SourceError(f"{where}: not readable as Parquet after row {done()}: {first_line(error)}") from error


def check_names(fields: Iterable[pa.Field], where: str, inside: str = "") -> None:
    """Raise SourceError for two columns with the same name, and for a column `a.b` next to a column `a`.

    Arrow selects columns by dotted paths, so `a.b` is ambiguous if there is a column `a`.
    """
    fields = list(fields)
    counts = Counter(field.name for field in fields)
    for field in fields:
        name = inside + field.name
        if counts[field.name] > 1:
            raise SourceError(f"{where}: {counts[field.name]} columns are called {name!r}; rename all but one")
        parts = field.name.split(".")
        for end in range(1, len(parts)):
            if (other := ".".join(parts[:end])) in counts:
                raise SourceError(
                    f"{where}: the name of the column {name!r} also means a field of the column {inside + other!r}; "
                    "rename one of these columns"
                )
        if pa.types.is_struct(field.type):
            check_names(list(field.type), where, f"{name}.")


def _is_json(kind: pa.DataType) -> bool:
    """Return True if JSON can represent the values of an Arrow type."""
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return _is_json(kind.storage_type)
    if types.is_dictionary(kind) or types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _is_json(kind.value_type)
    if types.is_struct(kind):
        return all(_is_json(field.type) for field in kind)
    return (
        _is_text(kind) or types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or kind == _NULL
    )


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def parquet_rows(
    source: RawSource, name: str, wanted: Collection[str] | None, where: str = "", piece: Piece | None = None
) -> Iterator[PlacedRow]:
    """Yield a pair (position, row) for each row of a Parquet file; if `piece` is given, only for the rows of this
    piece. The position (file and row number) is for messages.

    Only the columns in `wanted` are read; other columns have the value `UNREAD`. If `wanted` is None, every column is
    read, and the types of the columns are not checked. Columns of texts and numbers are converted with NumPy, which is
    several times as fast as Arrow's own conversion. Raises SourceError for a damaged file, naming file and row. Also
    raises SourceError for a wanted column with values that JSON cannot represent, such as bytes and dates.
    """
    number, where = 0 if piece is None else piece.first, where or where_in(source, name)
    last = None if piece is None else number + piece.count
    with _opened(source, name, where, lambda: number) as file:
        column_names = file.schema_arrow.names
        columns = [column for column in column_names if wanted is None or column in wanted]
        for column in () if wanted is None else columns:
            if not _is_json(kind := file.schema_arrow.field(column).type):
                raise SourceError(
                    f"{where}: column {column!r} holds {kind}, expected text or numbers; save the column as text"
                )
        unread = {column: UNREAD for column in column_names if column not in columns}
        for batch in _batches(file, _ROWS_PER_BATCH, columns, number, last):
            cells = [_values(column) for column in batch.columns]
            # If the file contains no requested column, yield a row without values for each row of the batch.
            for values in zip(*cells, strict=True) if cells else (() for _ in range(batch.num_rows)):
                number += 1
                yield f"{where}, row {number}", {**unread, **dict(zip(columns, values, strict=True))}


def _values(column: pa.Array) -> list[Any]:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    # Numeric columns with nulls are not converted by NumPy, because NumPy would convert integers with nulls to floats.
    if is_text or (column.null_count == 0 and (pa.types.is_integer(kind) or pa.types.is_floating(kind))):
        return list(column.to_numpy(zero_copy_only=False).tolist())
    return list(column.to_pylist())


def texts_of_column(lines: Lines, field: str) -> Iterator[tuple[int, str]]:
    """Yield a pair (index of the row, text in the column `field`) for each row of a Parquet file. A null is an empty
    text.

    `a.b` is the field `b` of the objects in `a`. The encoding of `lines` has no effect, because Parquet text is UTF-8.
    Raises SourceError for a damaged file, a missing column, or a column that does not contain text.
    """
    done = lines.first
    last = None if lines.piece is None else done + lines.piece.count
    with _opened_texts(lines, field) as table:
        for batch in _batches(table, _TEXTS_PER_BATCH, [field], done, last):
            texts = batch.column(0)
            if pa.types.is_struct(texts.type):
                texts = pc.struct_field(texts, field.split(".")[1:])
            # Convert with NumPy, which is several times faster than to_pylist.
            for text in texts.to_numpy(zero_copy_only=False):
                yield done, text or ""
                done += 1
                lines.line = done


def _batches(
    table: pq.ParquetFile, rows: int, columns: list[str], first: int, last: int | None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows `first` to `last - 1` in batches of at most `rows`; row groups without these rows are not read."""
    before, groups = 0, []
    for group in range(table.num_row_groups):
        size = table.metadata.row_group(group).num_rows
        if before + size > first and (last is None or before < last):
            groups.append((before, group))
        before += size
    row = groups[0][0] if groups else 0
    for batch in table.iter_batches(
        _rows_at_once(table, columns, rows), [group for _, group in groups], columns, use_threads=False
    ):
        end = batch.num_rows if last is None else max(0, last - row)
        start = max(0, first - row)
        yield batch.slice(start, max(0, end - start))
        row += batch.num_rows


def _rows_at_once(table: pq.ParquetFile, columns: list[str], most: int) -> int:
    """Return the number of rows per batch: at most `most`, and fewer for long texts, so that a batch has about
    _BATCH_BYTES. The size of a row is estimated by the mean size in the row group with the longest rows.
    """
    wanted, largest = _leaves(table, columns), 1
    for group in (table.metadata.row_group(index) for index in range(table.num_row_groups)):
        size = sum(group.column(leaf).total_uncompressed_size for leaf in wanted)
        largest = max(largest, size // max(group.num_rows, 1))
    return max(1, min(most, _BATCH_BYTES // largest))


def _leaves(table: pq.ParquetFile, columns: Sequence[str]) -> list[int]:
    """Return the indices of Parquet's leaf columns that belong to `columns`.

    Raises Arrow's error for an encrypted column. The function first reads one row, which raises this error. Without
    this reading, Arrow would abort the process at a request for the size of an encrypted column.
    """
    if table.num_row_groups and columns:
        next(table.iter_batches(1, [0], columns, use_threads=False), None)
    paths = (table.schema.column(leaf).path for leaf in range(table.metadata.num_columns))
    return [leaf for leaf, path in enumerate(paths) if any(f"{path}.".startswith(f"{name}.") for name in columns)]


def pieces_of_column(lines: Lines, field: str, piece_bytes: int, every: int) -> Iterator[Piece]:
    """Yield pieces of a Parquet file, each with about `piece_bytes` of text in the column `field`. The number of rows
    of a piece, except for the last piece, is a multiple of `every`.
    """
    with _opened_texts(lines, field) as table:
        rows = table.metadata.num_rows
        groups = [table.metadata.row_group(group) for group in range(table.num_row_groups)]
        leaves = _leaves(table, [field])
        size = sum(group.column(leaf).total_uncompressed_size for group in groups for leaf in leaves)
    stored = lines.source.size(lines.name)
    step = max(1, rows * piece_bytes // max(size, 1) // every) * every
    for first in range(0, rows, step):
        last = min(first + step, rows)
        yield Piece(stored * first // rows, stored * last // rows, 0, first, last - first)


@contextmanager
def _opened_texts(lines: Lines, field: str) -> Iterator[pq.ParquetFile]:
    with _opened(lines.source, lines.name, lines.where, lambda: lines.line) as table:
        _check_column(table.schema_arrow, field, lines.where)
        yield table


def _check_column(schema: pa.Schema, field: str, where: str) -> None:
    top, *below = [field] if field in schema.names else field.split(".")
    if top not in schema.names:
        raise SourceError(f"{where}: there is no column {field!r}; there are: {', '.join(sorted(schema.names))}")
    kind = schema.field(top).type
    for part in below:
        field_names = [kind.field(place).name for place in range(kind.num_fields)] if pa.types.is_struct(kind) else []
        if part not in field_names:
            raise SourceError(
                f"{where}: column {field!r}: there is no field {part!r}, only: {', '.join(field_names) or kind}"
            )
        kind = kind.field(part).type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if not _is_text(kind):
        raise SourceError(f"{where}: column {field!r}: expected text, got {kind}")
