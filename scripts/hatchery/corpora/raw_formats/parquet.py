"""Parquet: one row per text, the text in a column, as data sets of the Hugging Face hub are stored.

Row groups are read in batches, and the pages of a column through a small buffer, so that memory stays flat whatever
the size of file and row group.
"""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from hatchery.corpora.raw_formats.record import RawText, index_key
from hatchery.corpora.text_files import where_in
from hatchery.errors import SourceError
from hatchery.storage.sources import RawSource

_ROWS_PER_BATCH = 1000
_BUFFER_BYTES = 1 << 20


def read(source: RawSource, file: str, field: str, encoding: str) -> Iterator[RawText]:
    """The texts in the column `field`, in the order of the rows; a null is an empty text.

    `encoding` is of no meaning here: Parquet text is UTF-8. Raises SourceError for a damaged file, a missing column,
    or a column of something else than text.
    """
    where = where_in(source, file)
    done = 0
    try:
        with source.open(file) as handle:
            table = pq.ParquetFile(handle, buffer_size=_BUFFER_BYTES, pre_buffer=False)
            _check_column(table.schema_arrow, field, where)
            for batch in table.iter_batches(_ROWS_PER_BATCH, columns=[field], use_threads=False):
                # Through NumPy the conversion is several times faster than with to_pylist.
                for text in batch.column(0).to_numpy(zero_copy_only=False):
                    yield RawText(index_key(done), text or "")
                    done += 1
    except (OSError, EOFError, UnicodeDecodeError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise SourceError(f"{where}: after row {done}: not readable as Parquet: {reason}") from error


def _check_column(schema: pa.Schema, field: str, where: str) -> None:
    if field not in schema.names:
        raise SourceError(f"{where}: there is no column {field!r}; there are: {', '.join(sorted(schema.names))}")
    kind = schema.field(field).type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        raise SourceError(f"{where}: column {field!r}: expected text, got {kind}")
