"""Reads small CSV and JSON files by a schema: a dataclass defines the columns of a table or the keys of a JSON object.

The schema consists of the types of the fields, which may have ranges (see `hatchery.settings`). The functions read
files that stages write, and files that users write. Each error message is one line that names the file, the line and
the column.
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
    """Base class of schemas, dataclasses that define the columns or keys of a file.

    Columns and keys that the schema does not define are ignored. Infinite numbers and NaN are errors.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = {"allow_inf_nan": False}


Read = TypeVar("Read", bound=Record)


@dataclasses.dataclass(frozen=True)
class Infinite:
    """Annotation of a field whose number may be infinite."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return {**handler(source), "allow_inf_nan": True}


@dataclasses.dataclass(frozen=True)
class Strict:
    """Annotation of a field whose value is not converted: `true` is not accepted as a number, and text is not accepted
    as a number.
    """

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return {**handler(source), "strict": True}


@dataclasses.dataclass(frozen=True)
class Derived:
    """Annotation of a field that is not in the file: `function` computes its value from the text in the column
    `column`.
    """

    column: str
    function: Callable[[str], Any]


def read_records(
    path: str | Path,
    schema: type[Read],
    key: Sequence[str] = (),
    may_be_empty: bool = False,
    alike: Mapping[str, str] | None = None,
) -> list[Read]:
    """Return the rows of a CSV file whose columns are the fields of `schema`.

    An empty cell or `nan` becomes None if the field allows None. If a field has a default, its column may be missing,
    so that files written before the column was added remain readable. `key` names columns; if given, any two rows must
    differ in at least one of these columns. `alike` maps columns to the value that all rows must have. If
    `may_be_empty` is true, a header without rows is allowed. Raises EvaluationError for a file that is not a CSV file
    in UTF-8, a missing column, and an invalid or repeated row.
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
    """Return the JSON objects of a file with one object per line; the keys of an object are the fields of `schema`.

    If `key` is given, two objects must not have the same value of this key. Raises EvaluationError, which names file,
    line and key.
    """
    found: dict[Any, tuple[str, Read]] = {}
    for number, line in enumerate(_text(path).splitlines(), start=1):
        if line.strip():
            where = f"{path}, line {number}"
            made = record(schema, _json(line, where), where)
            identity = getattr(made, key) if key else number
            if identity in found:
                raise EvaluationError(
                    f"{where}: got the {key} {identity} a second time, expected each {key} once; the first is in "
                    f"{found[identity][0]}"
                )
            found[identity] = f"line {number}", made
    return [made for _, made in found.values()]


def json_record(path: str | Path, schema: type[Read]) -> Read:
    """Return the JSON object in a file; the keys of the object are the fields of `schema`.

    Raises EvaluationError, which names file and key.
    """
    return record(schema, _json(_text(path), str(path)), str(path))


def record(schema: type[Read], value: Any, where: str) -> Read:
    """Return a JSON value as an object of `schema`. In messages, `where` states the position of the value (file and
    line).

    Raises EvaluationError, which names the invalid key.
    """
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
    """Return (file and line for messages, texts by column) for each row of a CSV file with the columns `columns`.

    The file may contain further columns. `key` names columns; if given, any two rows must differ in at least one of
    these columns. Raises EvaluationError, which names the file, if the file cannot be read as UTF-8, is empty, or lacks
    a column, and for a repeated row or a row of the wrong length. If `may_be_empty` is true, a header without rows is
    allowed.
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
            raise EvaluationError(f"{where}: got {len(fields)} cells, expected {len(header)} as in the header")
        cells = dict(zip(header, fields, strict=True))
        identity = tuple(cells[column] for column in key)
        if key and identity in seen:
            raise EvaluationError(
                f"{where}: got the row {', '.join(identity)} a second time, expected each row once; the first is in "
                f"line {seen[identity]}"
            )
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
