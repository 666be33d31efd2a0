"""Strict reading of small CSV files: every complaint names the file, the line and the column.

Result tables are read only through here, so a truncated, edited or doubled table stops the summary instead of
bending a number in it.
"""

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hatchery.errors import EvaluationError


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


def read_rows(path: str | Path, columns: Sequence[str], key: Sequence[str]) -> list[Row]:
    """Read a CSV file that has at least `columns` and in which no two rows agree in all of `key`.

    Raises EvaluationError naming the file when it is missing, not UTF-8, empty, lacks a column, has a row of the
    wrong length, or repeats a row.
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
    if len(lines) == 1:
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
        if identity in seen:
            raise EvaluationError(f"{where}: the row {', '.join(identity)} stands already in line {seen[identity]}")
        seen[identity] = number
        rows.append(Row(values, where))
    return rows
