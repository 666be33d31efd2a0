"""Rows of tables and JSON lines: one uniform value per record, streamed, errors with file and line.

Memory holds a block of the file and one record, so that files of any size pass.
"""

import csv
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hatchery.corpora.text_files import blocks, open_lines, where_in
from hatchery.errors import ConfigError, SourceError
from hatchery.storage.sources import RawSource

# The default limit (131,072 characters) is shorter than many web pages; none at all would let one quote that is never
# closed swallow the whole file.
csv.field_size_limit(2**26)
RECORD_BYTES = 2**28

Row = tuple[str, Mapping[str, Any]]
_KINDS = {list: "a list", dict: "an object", bool: "true or false", int: "a number", float: "a number"}


# Under this key a row of a table holds the fields for which the header has no name.
SURPLUS = None


def csv_rows(source: RawSource, name: str, encoding: str, delimiter: str = ",") -> Iterator[Row]:
    """Pairs of a place for messages (file and line) and the row of a table with a header; see `has_surplus`.

    Raises SourceError for a table that is not well formed, such as one that ends inside quotes or names two columns
    alike.
    """
    where = where_in(source, name)
    lines = (f"{line}\n" for line in open_lines(source, name, encoding))
    reader = csv.DictReader(lines, restkey=SURPLUS, strict=True, delimiter=delimiter)
    try:
        _check_header(reader.fieldnames or (), where, delimiter)
        for row in reader:
            yield f"{where}: line {reader.line_num}", row
    except csv.Error as error:
        raise SourceError(f"{where}: line {reader.line_num}: not a well-formed table: {error}") from error


def _check_header(columns: Sequence[str], where: str, delimiter: str) -> None:
    for column, count in Counter(columns).items():
        # Spreadsheets leave columns without a name.
        if count > 1 and column:
            raise SourceError(f"{where}: line 1: {count} columns are called {column!r}; rename all but one")
    if len(columns) == 1 and (found := [mark for mark in ("\t", ";", "|", ",") if mark in columns[0]]):
        raise SourceError(
            f"{where}: line 1: one column, {columns[0]!r}, with the delimiter {delimiter!r}; "
            f"set the option `delimiter`, perhaps to {found[0]!r}"
        )


def has_surplus(row: Mapping[str, Any]) -> bool:
    """Whether a row of a table has more fields than its header, as when a text with commas stands without quotes."""
    return SURPLUS in row


def json_rows(source: RawSource, name: str, encoding: str) -> Iterator[Row]:
    """Pairs of a place for messages (file and line) and the object of each line; reads compressed files too.

    Raises SourceError for a line that is not a JSON object or a damaged archive; blank lines are skipped. Half
    surrogates, which JSON can spell and Unicode text cannot hold, become U+FFFD.
    """
    where = where_in(source, name)
    decode = json.JSONDecoder().decode
    for number, line in enumerate(_byte_lines(source, name), start=1):
        try:
            text = line.decode(encoding)
            if not text or text.isspace():
                continue
            value = decode(text)
        except LookupError as error:
            raise ConfigError(f"encoding: there is no encoding called {encoding!r}") from error
        except (ValueError, RecursionError) as error:
            raise SourceError(f"{where}: line {number}: not a JSON object: {error}") from error
        if not isinstance(value, dict):
            raise SourceError(f"{where}: line {number}: not a JSON object: got {type(value).__name__}")
        if b"\\ud" in line or b"\\uD" in line:
            value = {key: _without_half_surrogates(item) for key, item in value.items()}
        yield f"{where}: line {number}", value


def _byte_lines(source: RawSource, name: str) -> Iterator[bytes]:
    """The lines of a file without their ends and without a byte-order mark, as bytes."""
    rest: list[bytes] = []
    rest_bytes, first = 0, True
    for block in blocks(source, name):
        if first:
            block, first = block.removeprefix(b"\xef\xbb\xbf"), False
        head, *lines = block.split(b"\n")
        rest.append(head)
        rest_bytes += len(head)
        if rest_bytes > RECORD_BYTES:
            raise SourceError(f"{where_in(source, name)}: a line is longer than {RECORD_BYTES:,} bytes")
        if lines:
            yield b"".join(rest)
            yield from lines[:-1]
            rest, rest_bytes = [lines[-1]], len(lines[-1])
    yield b"".join(rest)


def _without_half_surrogates(value: Any) -> Any:
    if not isinstance(value, str) or value.isascii():
        return value
    return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def cell(row: Mapping[str, Any], column: str, place: str) -> str | None:
    """The value in a column as text, or None where the row has no value there.

    Raises SourceError naming the columns that exist when this one does not, and for a list or an object.
    """
    value = field(row, column, place)
    if isinstance(value, list | dict):
        raise SourceError(f"{place}: {column!r} holds {kind_of(value)}, expected a text or a number")
    return None if value is None else str(value)


def field(row: Mapping[str, Any], column: str, place: str) -> Any:
    """The value in a column as it stands. Raises SourceError naming the columns that exist when this one does not."""
    if column not in row:
        columns = ", ".join(sorted(str(key) for key in row if key is not SURPLUS))
        raise SourceError(f"{place}: there is no column {column!r}; there are: {columns}")
    return row[column]


def kind_of(value: Any) -> str:
    """What a value of JSON is called in messages."""
    return _KINDS.get(type(value), "a text")
