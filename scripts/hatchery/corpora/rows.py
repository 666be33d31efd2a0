"""Functions that read rows of JSON files (corpora, word lists, tasks, suites of pairs), and the cells of rows.

Every row has a position (file and line) for messages. `csv_tables` yields the rows of tables, and `parquet_files`
yields the rows of Parquet files. Files of any size can be read, because memory contains only one row and a part of the
file.
"""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from hatchery.corpora.csv_tables import SURPLUS
from hatchery.corpora.raw_files import Piece
from hatchery.corpora.text_files import Lines
from hatchery.errors import SourceError
from hatchery.raw.registration import RawSource

RECORD_BYTES = 2**28

PlacedRow = tuple[str, Mapping[str, Any]]
_NOT_BLANK = re.compile(r"\S")
_KINDS = {
    type(None): "null",
    list: "a list",
    dict: "an object",
    bool: "true or false",
    int: "a number",
    float: "a number",
}


def json_lines(source: RawSource, name: str, encoding: str = "utf-8", piece: Piece | None = None) -> Lines:
    """Return the lines of a file with one JSON value per line; unlike in a text file, only \\n ends a line."""
    return Lines(source, name, encoding, piece, longest=RECORD_BYTES)


def filled_lines(lines: Lines) -> Iterator[str]:
    """Yield the lines that are not blank, without a \\r at their end. `lines.line` is the number of this line."""
    for line in lines:
        if line and not line.isspace():
            yield line.rstrip("\r")


def is_json_list(source: RawSource, name: str, encoding: str = "utf-8") -> bool:
    """Return True if a JSON file is one list. Such a file is read as a whole by one process, because an item of the
    list may span several lines.
    """
    return next(filled_lines(json_lines(source, name, encoding)), "").lstrip().startswith("[")


def json_rows(lines: Lines, strict: bool = False, text_field: str | None = None) -> Iterator[PlacedRow]:
    """Yield pairs of a position for messages and the object of each line, or of each item if the file is one list.

    The position is file and line, or file and item; `lines.record_line` is the line or item number. Two pandas layouts
    are read: a list of rows, and an object of columns, in which each column is an object with the row numbers as keys.
    If `text_field` is set, a line or item that is only a text becomes an object with this field. Compressed files are
    also read.

    Raises SourceError for a damaged compressed file, and for a line that is not a JSON object; blank lines are skipped.
    Lone surrogates, which JSON can contain but Unicode text cannot, become U+FFFD. If `strict` is
    True, lone surrogates are unchanged, so that the caller can refuse them, and a repeated key in an object is an
    error.
    """
    for place, value in _json_values(lines, strict):
        if text_field is not None and isinstance(value, str):
            value = {text_field: value}
        if not isinstance(value, dict):
            raise SourceError(f"{place}: not a JSON object: got {type(value).__name__}")
        yield place, value


def _json_values(lines: Lines, strict: bool) -> Iterator[tuple[str, Any]]:
    """Yield (position, value) for each line or, if the file is one list or one table of columns, for each row."""
    texts, begins, decode = filled_lines(lines), not lines.offset, json.JSONDecoder().decode
    for text in texts:
        if begins and text.lstrip().startswith("["):
            for number, value in enumerate(_items(lines, text, texts, strict), 1):
                lines.record_line = number
                yield f"{lines.where}, item {number}", value if strict else _without_half_surrogates(value)
            return
        try:
            value = decode(text)
            if strict and isinstance(value, dict) and not _surely_unique(value, text):
                value = json.loads(text, object_pairs_hook=unique_keys)
        except (ValueError, RecursionError) as error:
            raise _no_json(lines.place, error) from None
        if not strict and ("\\ud" in text or "\\uD" in text):
            value = _without_half_surrogates(value)
        lines.record_line = lines.line
        if begins and _is_table_of_columns(value) and _has_one_line(lines):
            for number in range(len(next(iter(value.values())))):
                lines.record_line = number + 1
                row = {column: cells[str(number)] for column, cells in value.items()}
                yield f"{lines.where}, item {number + 1}", row
            return
        begins = False
        yield lines.place, value


def _items(lines: Lines, text: str, more: Iterator[str], strict: bool) -> Iterator[Any]:
    """Yield the items of a JSON list that begins in `text`; memory contains at most twice the lines of one item.

    Items are decoded in place. If an item is incomplete, the decoding is repeated only after the number of its lines
    has doubled.
    """
    decoder = json.JSONDecoder(object_pairs_hook=unique_keys if strict else None)
    rest, at, is_first = text, text.index("[") + 1, True

    def place() -> str:
        ahead = rest.count("\n", at)
        return f"{lines.where}{lines.mark}{lines.line - ahead}"

    while True:
        # Before each item, expect a comma (except before the first item), or the bracket at the end of the list.
        while (at := _after_blanks(rest, at)) == len(rest) and (line := next(more, None)) is not None:
            rest, at = line, 0
        if rest.startswith("]", at):
            if rest[at + 1 :].strip() or next(more, None) is not None:
                raise SourceError(f"{place()}: not JSON: text follows the end of the list")
            return
        if not is_first:
            if not rest.startswith(",", at):
                following = rest[at : at + 20]
                raise SourceError(f"{place()}: not JSON: expected ',' or ']' after an item, got {following!r}")
            at += 1
        is_first, step = False, 1
        while True:
            try:
                value, at = decoder.raw_decode(rest, _after_blanks(rest, at))
                break
            except (ValueError, RecursionError) as error:
                # If decoding fails before the end of the available text, the item is malformed. If decoding fails at
                # the end of the text, the item continues in the next line.
                goes_on = isinstance(error, json.JSONDecodeError) and error.pos >= len(rest)
                if not goes_on or not (ahead := list(islice(more, step))):
                    at = error.pos if isinstance(error, json.JSONDecodeError) else at
                    raise _no_json(place(), error) from None
                rest, at, step = "\n".join([rest[at:], *ahead]), 0, 2 * step
        yield value


def _after_blanks(text: str, at: int) -> int:
    match = _NOT_BLANK.search(text, at)
    return len(text) if match is None else match.start()


def _is_table_of_columns(value: Any) -> bool:
    """Return True if a value is `{"column": {"0": cell, "1": cell}}`, with the same row numbers in each column."""
    if not isinstance(value, dict) or not value or not all(isinstance(cells, dict) for cells in value.values()):
        return False
    rows = [str(number) for number in range(len(next(iter(value.values()))))]
    return bool(rows) and all(list(cells) == rows for cells in value.values())


def _has_one_line(lines: Lines) -> bool:
    texts = filled_lines(json_lines(lines.source, lines.name, lines.encoding))
    return next(texts, None) is not None and next(texts, None) is None


def _no_json(place: str, error: Exception) -> SourceError:
    reason = "nested too deeply" if isinstance(error, RecursionError) else error
    return SourceError(f"{place}: not a JSON object: {reason}")


_KEY_END = re.compile(r'"[ \t\r\n]*:')


def _surely_unique(values: dict[str, object], text: str) -> bool:
    """Return True if the number of colons in `text` proves that no key occurs twice. This test is much faster than
    checking every key.

    A colon follows each key in `text`, and strings may contain further colons. So the number of colons is at least the
    number of keys in `text`. If the number of colons equals the number of decoded keys, no key was decoded twice.
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


def unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return the pairs (key, value) of a JSON object as a mapping. Raises ValueError for a repeated key. Used as
    `object_pairs_hook`.
    """
    values = dict(pairs)
    if len(values) != len(pairs):
        names = [key for key, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {repeated!r} occurs twice in one object")
    return values


def _without_half_surrogates(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_half_surrogates(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_half_surrogates(item) for item in value]
    if not isinstance(value, str) or value.isascii():
        return value
    return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def cell(row: Mapping[str, Any], column: str, place: str) -> str | None:
    """Return the value in a column as text, or None if the row has no value in this column.

    Raises SourceError naming the existing columns if the column is missing, and for a value that is a list or an
    object.
    """
    value = field(row, column, place)
    if isinstance(value, list | dict):
        raise SourceError(f"{place}: {column!r} holds {kind_of(value)}, expected a text or a number")
    return None if value is None else str(value)


def field(row: Mapping[str, Any], column: str, place: str) -> Any:
    """Return the unchanged value in a column of a row. Raises SourceError naming the existing columns if this column is
    missing.
    """
    if column not in row:
        columns = ", ".join(sorted(str(key) for key in row if key is not SURPLUS))
        raise SourceError(f"{place}: there is no column {column!r}; there are: {columns}")
    return row[column]


def kind_of(value: Any) -> str:
    """Return the name of a JSON value's type, for messages."""
    return _KINDS.get(type(value), "a text")
