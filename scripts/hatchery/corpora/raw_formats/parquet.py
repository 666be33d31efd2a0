"""Parquet: one row per text, the text in a column, as data sets of the Hugging Face hub are stored.

Row groups are read in batches, and the pages of a column through a small buffer, so that memory stays flat whatever
the size of file and row group.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hatchery.corpora.cutting import Piece
from hatchery.corpora.raw_texts import RawText, index_key
from hatchery.corpora.text_files import Lines
from hatchery.errors import SourceError, first_line

_ROWS_PER_BATCH = 1000
_BUFFER_BYTES = 1 << 20


def read(lines: Lines, field: str) -> Iterator[RawText]:
    """The texts in the column `field`, in the order of the rows; a null is an empty text.

    `a.b` is the field `b` of the objects in `a`. The encoding is of no meaning here: Parquet text is UTF-8. Raises
    SourceError for a damaged file, a missing column, or a column of something else than text.
    """
    done = lines.first
    last = None if lines.piece is None else done + lines.piece.count
    with _readable(lines, field) as table:
        before, groups = 0, []
        for group in range(table.num_row_groups):
            rows = table.metadata.row_group(group).num_rows
            if before + rows > done and (last is None or before < last):
                groups.append((before, group))
            before += rows
        row = groups[0][0] if groups else 0
        for batch in table.iter_batches(_ROWS_PER_BATCH, [group for _, group in groups], [field], use_threads=False):
            texts = _text_column(batch.column(0), field)
            wanted = texts[max(0, done - row) : None if last is None else max(0, last - row)]
            # Through NumPy the conversion is several times faster than with to_pylist.
            for text in wanted.to_numpy(zero_copy_only=False):
                yield RawText(index_key(done), text or "")
                done += 1
                lines.line = done
            row += batch.num_rows


def pieces_of(lines: Lines, field: str, piece_bytes: int, every: int) -> Iterator[Piece]:
    """The file divided into pieces of about `piece_bytes` of its text, each of a multiple of `every` rows."""
    with _readable(lines, field) as table:
        rows = table.metadata.num_rows
        groups = (table.metadata.row_group(group) for group in range(table.num_row_groups))
        columns = (group.column(index) for group in groups for index in range(group.num_columns))
        size = sum(column.total_uncompressed_size for column in columns if column.path_in_schema == field)
    stored = lines.source.size(lines.name)
    step = max(1, rows * piece_bytes // max(size, 1) // every) * every
    for first in range(0, rows, step):
        last = min(first + step, rows)
        yield Piece(stored * first // rows, stored * last // rows, 0, first, last - first)


@contextmanager
def _readable(lines: Lines, field: str) -> Iterator[pq.ParquetFile]:
    try:
        with lines.source.open(lines.name) as handle:
            table = pq.ParquetFile(handle, buffer_size=_BUFFER_BYTES, pre_buffer=False)
            _check_column(table.schema_arrow, field, lines.where)
            yield table
    except (OSError, EOFError, UnicodeDecodeError, pa.ArrowException) as error:
        reason = first_line(error)
        raise SourceError(f"{lines.where}: after row {lines.line}: not readable as Parquet: {reason}") from error


def _text_column(column: pa.Array, field: str) -> pa.Array:
    """The texts of a column, which may be a field of its objects."""
    return pc.struct_field(column, field.split(".")[1:]) if pa.types.is_struct(column.type) else column


def _check_column(schema: pa.Schema, field: str, where: str) -> None:
    top, *below = [field] if field in schema.names else field.split(".")
    if top not in schema.names:
        raise SourceError(f"{where}: there is no column {field!r}; there are: {', '.join(sorted(schema.names))}")
    kind = schema.field(top).type
    for part in below:
        there = [kind.field(place).name for place in range(kind.num_fields)] if pa.types.is_struct(kind) else []
        if part not in there:
            raise SourceError(f"{where}: column {field!r}: there is no {part!r}, only: {', '.join(there) or kind}")
        kind = kind.field(part).type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        raise SourceError(f"{where}: column {field!r}: expected text, got {kind}")
