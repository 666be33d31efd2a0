"""Rows of tables and JSON lines: one uniform value per record, streamed, errors with file and line.

Memory holds a block of the file and one record, so that files of any size pass.
"""

import csv
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hatchery.corpora.cutting import Piece
from hatchery.corpora.text_files import Lines
from hatchery.errors import SourceError
from hatchery.raw.registration import RawSource

# The default limit (131,072 characters) is shorter than many web pages; none at all would let one quote that is never
# closed swallow the whole file.
csv.field_size_limit(2**26)
RECORD_BYTES = 2**28

Row = tuple[str, Mapping[str, Any]]
_KINDS = {list: "a list", dict: "an object", bool: "true or false", int: "a number", float: "a number"}


# Under this key a row of a table holds the fields for which the header has no name.
SURPLUS = None


def csv_rows(lines: Lines, delimiter: str = ",") -> Iterator[Row]:
    """Pairs of a place for messages (file and line) and the row of a table with a header; see `has_surplus`.

    Raises SourceError for a table that is not well formed, such as one that ends inside quotes or names two columns
    alike.
    """
    header = None
    try:
        if lines.offset:
            whole = Lines(lines.source, lines.name, lines.encoding)
            header = next(csv.reader(_with_ends(whole), strict=True, delimiter=delimiter))
        reader = csv.DictReader(_with_ends(lines), header, restkey=SURPLUS, strict=True, delimiter=delimiter)
        _check_header(reader.fieldnames or (), lines.where, delimiter)
        for row in reader:
            yield f"{lines.where}: line {lines.line}", row
    except csv.Error as error:
        raise SourceError(f"{lines.where}: line {lines.line}: not a well-formed table: {error}") from error


def _with_ends(lines: Lines) -> Iterator[str]:
    return (f"{line}\n" for line in lines)


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


def json_lines(source: RawSource, name: str, encoding: str, piece: Piece | None = None) -> Lines:
    """The lines of a file with a JSON value on each: other than in a text, only \\n ends one."""
    return Lines(source, name, encoding, piece, longest=RECORD_BYTES)


def json_rows(lines: Lines) -> Iterator[Row]:
    """Pairs of a place for messages (file and line) and the object of each line; reads compressed files too.

    Raises SourceError for a line that is not a JSON object or a damaged archive; blank lines are skipped. Half
    surrogates, which JSON can spell and Unicode text cannot hold, become U+FFFD.
    """
    decode = json.JSONDecoder().decode
    for line in lines:
        if not line or line.isspace():
            continue
        place = f"{lines.where}: line {lines.line}"
        try:
            value = decode(line)
        except (ValueError, RecursionError) as error:
            raise SourceError(f"{place}: not a JSON object: {error}") from error
        if not isinstance(value, dict):
            raise SourceError(f"{place}: not a JSON object: got {type(value).__name__}")
        if "\\ud" in line or "\\uD" in line:
            value = {key: _without_half_surrogates(item) for key, item in value.items()}
        yield place, value


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
