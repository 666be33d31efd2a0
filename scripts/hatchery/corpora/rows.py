"""Rows of the tables and JSON lines that a user brings: one uniform value per record, errors with file and line."""

import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from hatchery.corpora.text_files import read_text, where_in
from hatchery.errors import SourceError
from hatchery.storage.sources import RawSource

# The default limit (131,072 characters) is shorter than many web pages.
csv.field_size_limit(2**30)

Row = tuple[str, Mapping[str, Any]]


def csv_rows(source: RawSource, name: str, encoding: str) -> Iterator[Row]:
    """Pairs of a place for messages (file and line) and the row of a CSV file with a header.

    Raises SourceError for a table that is not well formed, such as one that ends inside quotes.
    """
    where = where_in(source, name)
    reader = csv.DictReader(io.StringIO(read_text(source, name, encoding), newline=""), strict=True)
    try:
        for row in reader:
            yield f"{where}: line {reader.line_num}", row
    except csv.Error as error:
        raise SourceError(f"{where}: line {reader.line_num}: not a well-formed table: {error}") from error


def json_rows(source: RawSource, name: str, encoding: str) -> Iterator[Row]:
    """Pairs of a place for messages (file and line) and the object of each line; reads `.gz` files too.

    Raises SourceError for a line that is not a JSON object or a damaged archive; blank lines are skipped.
    """
    where = where_in(source, name)
    number = 0
    try:
        with source.open(name) as raw, gzip.open(raw) if name.endswith(".gz") else raw as handle:
            for number, line in enumerate(handle, start=1):
                if line.strip():
                    yield f"{where}: line {number}", _json_object(line, encoding)
    except (UnicodeDecodeError, ValueError) as error:
        raise SourceError(f"{where}: line {number}: not a JSON object: {error}") from error
    except (OSError, EOFError, zlib.error) as error:
        raise SourceError(f"{where}: after line {number}: cannot be read: {error}") from error


def _json_object(line: bytes, encoding: str) -> Mapping[str, Any]:
    value = json.loads(line.decode(encoding))
    if not isinstance(value, dict):
        raise ValueError(f"got {type(value).__name__}")
    return value


def cell(row: Mapping[str, Any], column: str, place: str) -> str | None:
    """The value in a column as text, or None where the row has no value there.

    Raises SourceError naming the columns that exist when this one does not.
    """
    if column not in row:
        columns = ", ".join(sorted(str(key) for key in row if key is not None))
        raise SourceError(f"{place}: there is no column {column!r}; there are: {columns}")
    value = row[column]
    return None if value is None else str(value)
