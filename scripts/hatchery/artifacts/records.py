"""Small files read by schema: a dataclass defines a line of a table, or a JSON object.

The same functions read files with checksums and files written by people. The types of the fields, perhaps with the
ranges of `hatchery.settings`, are the whole schema. Every error is one line that names the file, the line and the
column.
"""

import csv
import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from hatchery.artifacts.atomic import json_value
from hatchery.errors import EvaluationError
from hatchery.settings.fields import hints_of, markers_of, metadata
from hatchery.settings.problems import problem_lines

if TYPE_CHECKING:
    from pydantic import TypeAdapter


class Record:
    """Base of the dataclasses that define a file's content. Other columns are ignored; numbers are finite."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"allow_inf_nan": False}


Read = TypeVar("Read", bound=Record)


@dataclasses.dataclass(frozen=True)
class Infinite:
    """A number that may be infinite."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return {**handler(source), "allow_inf_nan": True}


@dataclasses.dataclass(frozen=True)
class Strict:
    """Strict validation: no conversion, so `true` is no number and a number is no text."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return {**handler(source), "strict": True}


@dataclasses.dataclass(frozen=True)
class Derived:
    """A field that is no column: its value is derived from the text of a column."""

    column: str
    function: Callable[[str], Any]


def read_records(
    path: str | Path,
    schema: type[Read],
    key: Sequence[str] = (),
    may_be_empty: bool = False,
    alike: Mapping[str, str] | None = None,
) -> list[Read]:
    """Read a CSV file whose columns are the fields of `schema`; an empty field, or `nan`, is None if None is allowed.

    The column of a field with a default may be missing, so that files from before the column was added stay readable.
    No two rows agree in all of `key`, if it is given, and all have the texts of `alike`. Raises EvaluationError like
    `read_rows`, and naming line and column of an invalid field.
    """
    fields: Any = schema
    hints = hints_of(fields)
    derived = {name: rule for name, hint in hints.items() for rule in markers_of(hint, Derived)}
    optional = [name for name, hint in hints.items() if any(member is NoneType for member, _ in metadata(hint))]
    absent = {part.name for part in dataclasses.fields(fields) if part.default is not dataclasses.MISSING}
    columns = [name for name in hints if name not in derived and name not in absent]
    records = []
    for where, texts in read_rows(path, columns, key, may_be_empty):
        for column, text in (alike or {}).items():
            if texts[column] != text:
                raise EvaluationError(f"{where}: {column}: got {texts[column]!r}, expected {text}")
        cells = {**texts, **{name: rule.function(texts[rule.column]) for name, rule in derived.items()}}
        cells |= {name: None for name in optional if cells.get(name) in ("", "nan")}
        records.append(record(schema, cells, where))
    return records


def json_records(path: str | Path, schema: type[Read], key: str = "") -> list[Read]:
    """Read a file with a JSON object on each line, with the fields of `schema` and unique values of `key`.

    Raises EvaluationError naming file and line, and the key of an invalid value.
    """
    found: dict[Any, tuple[str, Read]] = {}
    for number, line in enumerate(_text(path).splitlines(), start=1):
        if line.strip():
            where = f"{path}, line {number}"
            made = record(schema, _json(line, where), where)
            identity = getattr(made, key) if key else number
            if identity in found:
                raise EvaluationError(f"{where}: the {key} {identity} is already in {found[identity][0]}")
            found[identity] = f"line {number}", made
    return [made for _, made in found.values()]


def json_record(path: str | Path, schema: type[Read]) -> Read:
    """Read a file with one JSON object of the fields of `schema`. Raises EvaluationError like `json_records`."""
    return record(schema, _json(_text(path), str(path)), str(path))


def record(schema: type[Read], value: Any, where: str) -> Read:
    """Convert a value to an object of `schema`; `where` is its place. Raises EvaluationError naming the invalid key."""
    from pydantic import ValidationError

    made: Any = schema
    try:
        built: Read = _adapter(made).validate_python(value)
    except ValidationError as error:
        name, problem = problem_lines(error, schema, value)[0]
        raise EvaluationError(": ".join(part for part in (where, name, problem) if part)) from error
    return built


def read_rows(
    path: str | Path, columns: Sequence[str], key: Sequence[str] = (), may_be_empty: bool = False
) -> list[tuple[str, dict[str, str]]]:
    """Read a CSV file with at least `columns`, in which no two rows agree in all of `key`, if it is given.

    Return for each row its place for messages, and its texts by column. Raises EvaluationError naming the file if it
    is missing, not UTF-8, empty, lacks a column, has a row of the wrong length, or repeats a row. `may_be_empty`
    allows a header without rows.
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
    rows: list[tuple[str, dict[str, str]]] = []
    seen: dict[tuple[str, ...], int] = {}
    for number, fields in lines[1:]:
        where = f"{path}, line {number}"
        if len(fields) != len(header):
            raise EvaluationError(f"{where}: {len(fields)} fields, the header has {len(header)}")
        cells = dict(zip(header, fields, strict=True))
        identity = tuple(cells[column] for column in key)
        if key and identity in seen:
            raise EvaluationError(f"{where}: the row {', '.join(identity)} is already in line {seen[identity]}")
        seen[identity] = number
        rows.append((where, cells))
    return rows


def _text(path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise EvaluationError(f"{path}: the file cannot be read: {error}") from error


def _json(text: str, where: str) -> Any:
    try:
        return json_value(text)
    except json.JSONDecodeError as error:
        raise EvaluationError(f"{where}: not JSON: {error}") from error


@cache
def _adapter(schema: Any) -> "TypeAdapter[Any]":
    from pydantic import TypeAdapter

    return TypeAdapter(schema)
