"""Rows of raw files, whether corpora, word lists, tasks or suites of pairs: tables, JSON lines, plain lines.

Every row comes with its place, file and line, for messages; `parquet_files` gives those of Parquet. Memory holds a
block of the file and one record, so that files of any size pass.
"""

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hatchery.corpora.raw_files import Piece
from hatchery.corpora.text_files import Lines
from hatchery.errors import SourceError
from hatchery.raw.registration import RawSource

# The default limit (131,072 characters) is shorter than many web pages; none at all would let one quote that is never
# closed swallow the whole file.
csv.field_size_limit(2**26)
RECORD_BYTES = 2**28

PlacedRow = tuple[str, Mapping[str, Any]]
_KINDS = {list: "a list", dict: "an object", bool: "true or false", int: "a number", float: "a number"}


# Under this key a row of a table holds the fields for which the header has no name.
SURPLUS = None


def csv_rows(lines: Lines, delimiter: str = ",") -> Iterator[PlacedRow]:
    """Pairs of a place for messages (file and line) and the row of a table with a header; see `has_surplus`.

    Between tabs, quotes count only where they enclose a cell on its line: all others are letters, and every line is a
    row. Raises SourceError for a table that is not well formed, such as one that ends inside quotes or names two
    columns alike.
    """
    if delimiter == "\t":
        yield from _tab_rows(lines)
        return
    header = None
    try:
        if lines.offset:
            whole = Lines(lines.source, lines.name, lines.encoding)
            header = next(csv.reader(_with_ends(whole), strict=True, delimiter=delimiter))
        reader = csv.DictReader(_with_ends(lines), header, restkey=SURPLUS, strict=True, delimiter=delimiter)
        _check_header(reader.fieldnames or (), lines.where, delimiter)
        for row in reader:
            yield lines.place, row
    except csv.Error as error:
        raise SourceError(f"{lines.place}: not a well-formed table: {error}") from error


def _tab_rows(lines: Lines) -> Iterator[PlacedRow]:
    rows = iter(lines)
    first = next(iter(Lines(lines.source, lines.name, lines.encoding)) if lines.offset else rows, "")
    header = _cells(first)
    _check_header(header, lines.where, "\t")
    for line in rows:
        if line:
            cells = _cells(line, len(header))
            missing = [None] * (len(header) - len(cells))
            row: dict[Any, Any] = dict(zip(header, [*cells, *missing], strict=False))
            yield lines.place, row | ({SURPLUS: cells[len(header) :]} if len(cells) > len(header) else {})


def _cells(line: str, wanted: int | None = None) -> list[str]:
    """The cells between tabs; quotes around them go where the line is well formed, with so many cells."""
    plain = line.split("\t")
    if '"' not in line:
        return plain
    try:
        (quoted,) = csv.reader([line], strict=True, delimiter="\t")
    except csv.Error:
        return plain
    return plain if len(quoted) != wanted == len(plain) else quoted


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


def json_lines(source: RawSource, name: str, encoding: str = "utf-8", piece: Piece | None = None) -> Lines:
    """The lines of a file with a JSON value on each: other than in a text, only \\n ends one."""
    return Lines(source, name, encoding, piece, longest=RECORD_BYTES)


def filled_lines(lines: Lines) -> Iterator[str]:
    """The lines that are not blank, without a \\r at their end; `lines` says where the one at hand stands."""
    for line in lines:
        if line and not line.isspace():
            yield line.rstrip("\r")


def json_rows(lines: Lines, strict: bool = False, text_field: str | None = None) -> Iterator[PlacedRow]:
    """Pairs of a place for messages (file and line) and the object of each line; reads compressed files too.

    With `text_field`, a line that is a text alone is an object with that field.

    Raises SourceError for a line that is not a JSON object or a damaged archive; blank lines are skipped. Half
    surrogates, which JSON can spell and Unicode text cannot hold, become U+FFFD; with `strict` they stay, for somebody
    who refuses them, and a key that stands twice in an object is refused.
    """
    decode = json.JSONDecoder().decode
    for line in filled_lines(lines):
        try:
            value = decode(line)
            if strict and isinstance(value, dict) and not _surely_unique(value, line):
                value = json.loads(line, object_pairs_hook=_unique_keys)
        except RecursionError:
            raise SourceError(f"{lines.place}: not a JSON object: nested too deeply") from None
        except ValueError as error:
            raise SourceError(f"{lines.place}: not a JSON object: {error}") from error
        if text_field is not None and isinstance(value, str):
            value = {text_field: value}
        if not isinstance(value, dict):
            raise SourceError(f"{lines.place}: not a JSON object: got {type(value).__name__}")
        if not strict and ("\\ud" in line or "\\uD" in line):
            value = {key: _without_half_surrogates(item) for key, item in value.items()}
        yield lines.place, value


_KEY_END = re.compile(r'"[ \t\r\n]*:')


def _surely_unique(values: dict[str, object], text: str) -> bool:
    """Whether the count of colons alone shows that no key stands twice; looking at every key is much slower.

    Each key that is written has a colon behind its closing quote, and texts can only add to their number: where there
    are as many of them as keys were read, none was read over another.
    """
    colons = text.count(":")
    if colons == len(values):
        return True
    keys = _key_count(values)
    return colons == keys or len(_KEY_END.findall(text)) == keys


def _key_count(value: object) -> int:
    if isinstance(value, dict):
        return len(value) + sum(map(_key_count, value.values()))
    return sum(map(_key_count, value)) if isinstance(value, list) else 0


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    values = dict(pairs)
    if len(values) != len(pairs):
        names = [key for key, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {repeated!r} stands twice in one object")
    return values


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
