"""Strict reading of small CSV files: every complaint names the file, the line and the column.

Tables are read only through here, so a truncated, edited or doubled table stops the summary instead of bending a number
in it. A dataclass says which columns a table has and of which kind they are (`read_records`); what is behind a checksum
needs no further check. `read_rows` is for tables that people write, whose values must lie in ranges of their own.
"""

import csv
import dataclasses
import math
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

from hatchery.errors import EvaluationError

Record = TypeVar("Record")


@dataclass(frozen=True)
class Range:
    """Bounds of the numbers in a column, which they may reach: `Annotated[float, Range(0, 1)]` is a fraction."""

    low: float = -math.inf
    high: float = math.inf
    # Whether `inf` is a number of the column.
    infinite: bool = False


Fraction = Annotated[float, Range(0.0, 1.0)]


@dataclass(frozen=True)
class Row:
    """One line of a table; `where` says which, for messages."""

    values: dict[str, str]
    where: str

    def text(self, column: str, allowed: Sequence[str] = ()) -> str:
        """The text of a column. Raises EvaluationError when it is not one of `allowed` (if any are given)."""
        value = self.values[column]
        if allowed and value not in allowed:
            options = ", ".join(option or "empty" for option in allowed)
            raise EvaluationError(f"{self.where}: {column} is {value!r}, expected one of: {options}")
        return value

    def number(self, column: str, low: float = -math.inf, high: float = math.inf) -> float:
        """The finite number in a column. Raises EvaluationError when it is none or lies outside [low, high]."""
        text = self.values[column]
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise EvaluationError(f"{self.where}: {column} is {text!r}, expected a finite number")
        if not low <= value <= high:
            raise EvaluationError(f"{self.where}: {column} is {text}, expected a value from {low:g} to {high:g}")
        return value

    def optional_number(self, column: str, low: float = -math.inf) -> float | None:
        """Like `number`, or None for an empty field."""
        return self.number(column, low) if self.values[column] else None

    def count(self, column: str) -> int:
        """The whole number that is not negative in a column. Raises EvaluationError when it is none."""
        text = self.values[column]
        if not (text.isascii() and text.isdigit()):
            raise EvaluationError(f"{self.where}: {column} is {text!r}, expected a whole number")
        return int(text)


def read_records(
    path: str | Path, schema: type[Record], key: Sequence[str] = (), may_be_empty: bool = False
) -> list[Record]:
    """Read a CSV file whose columns are the fields of `schema`, a dataclass; further columns are passed over.

    A field is a `str`, a `Literal` of texts, an `int` (a whole number that is not negative), a finite `float`, perhaps
    `Annotated` with a `Range`, or a number `| None`, which is an empty field of the table, or `nan`. No two rows agree
    in all of `key`, if one is given. Raises EvaluationError like `read_rows`, and naming line and column of a field of
    another kind.
    """
    columns: Any = schema
    readers = _readers(columns)
    rows = read_rows(path, tuple(readers), key, may_be_empty)
    return [schema(**{column: read(row, column) for column, read in readers.items()}) for row in rows]


@cache
def _readers(schema: Any) -> dict[str, Callable[[Row, str], Any]]:
    hints = typing.get_type_hints(schema, include_extras=True)
    return {field.name: _reader(hints[field.name]) for field in dataclasses.fields(schema)}


def _reader(hint: Any) -> Callable[[Row, str], Any]:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        (chosen,) = (kind for kind in typing.get_args(hint) if kind is not types.NoneType)
        read = _reader(chosen)
        return lambda row, column: None if row.values[column] in ("", "nan") else read(row, column)
    if typing.get_origin(hint) is typing.Literal:
        return lambda row, column: row.text(column, typing.get_args(hint))
    if typing.get_origin(hint) is Annotated:
        _, bounds = typing.get_args(hint)
        return lambda row, column: (
            math.inf if bounds.infinite and row.values[column] == "inf" else row.number(column, bounds.low, bounds.high)
        )
    plain: dict[Any, Callable[[Row, str], Any]] = {str: Row.text, int: Row.count, float: Row.number}
    return plain[hint]


def read_rows(
    path: str | Path, columns: Sequence[str], key: Sequence[str] = (), may_be_empty: bool = False
) -> list[Row]:
    """Read a CSV file that has at least `columns` and in which no two rows agree in all of `key`, if one is given.

    Raises EvaluationError naming the file when it is missing, not UTF-8, empty, lacks a column, has a row of the
    wrong length, or repeats a row. `may_be_empty` allows a header without rows.
    """
    path = Path(path)
    try:
        with path.open(encoding="utf-8", newline="") as handle:
            reader = csv.reader(handle, strict=True)
            lines = [(reader.line_num, fields) for fields in reader if fields]
    except OSError as error:
        raise EvaluationError(f"{path}: the table cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise EvaluationError(f"{path}: not a CSV file in UTF-8: {error}") from error
    if not lines:
        raise EvaluationError(f"{path}: the table is empty; expected the columns {', '.join(columns)}")
    header = lines[0][1]
    if missing := [column for column in columns if column not in header]:
        raise EvaluationError(f"{path}: the table lacks the columns {', '.join(missing)}; it has {', '.join(header)}")
    if len(lines) == 1 and not may_be_empty:
        raise EvaluationError(f"{path}: the table has a header but no rows")
    return _keyed_rows(path, header, lines[1:], key)


def _keyed_rows(path: Path, header: list[str], lines: list[tuple[int, list[str]]], key: Sequence[str]) -> list[Row]:
    rows = []
    seen: dict[tuple[str, ...], int] = {}
    for number, fields in lines:
        where = f"{path}, line {number}"
        if len(fields) != len(header):
            raise EvaluationError(f"{where}: {len(fields)} fields, the header has {len(header)}")
        values = dict(zip(header, fields, strict=True))
        identity = tuple(values[column] for column in key)
        if key and identity in seen:
            raise EvaluationError(f"{where}: the row {', '.join(identity)} stands already in line {seen[identity]}")
        seen[identity] = number
        rows.append(Row(values, where))
    return rows
