"""Read the rows of raw files for minimal pairs and tasks as records, with typed access to their fields.

Every record stores its file and line for error messages. `corpora.rows` parses the files.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hatchery.corpora.rows import filled_lines, json_lines, json_rows
from hatchery.corpora.text_files import Lines
from hatchery.errors import EvaluationError
from hatchery.raw.registration import RawSource


@dataclass(slots=True)
class Record:
    """A record of a raw file, such as a JSON object.

    `where` is its file and line, for messages. `line` is the number of its line, counted from 1. If a record is not a
    line of its file, `line` is the number of the item or row.
    """

    values: Mapping[str, Any]
    where: str
    line: int

    @property
    def names(self) -> list[str]:
        """Names of all fields of the record, sorted."""
        return sorted(self.values)

    def has(self, name: str) -> bool:
        """Return True if the record has the field `name`; dots in `name` separate the names of nested objects."""
        return self._find(name) is not _MISSING

    def value(self, name: str) -> Any:
        """Return the value of the field `name`; dots in `name` separate the names of nested objects. Raises
        EvaluationError for a missing field.
        """
        value = self.values.get(name, _MISSING)
        if value is _MISSING:
            value = self._find(name)
        if value is _MISSING:
            raise EvaluationError(
                f"{self.where}: the field {name!r} is missing; the record has: {', '.join(self.names)}"
            )
        return value

    def text(self, name: str) -> str:
        """Return the non-empty string in the field `name`. Raises EvaluationError if the field is missing, blank or not
        a string, or contains half a surrogate pair."""
        value = self.value(name)
        if not isinstance(value, str) or not value.strip():
            raise EvaluationError(f"{self.where}: the field {name!r} must be a non-empty text, got {shorten(value)}")
        return value if value.isascii() else checked_text(value, f"{self.where}: the field {name!r}")

    def string(self, name: str) -> str:
        """Return the string in the field `name`, which may be empty. Raises EvaluationError if the field is missing or
        not a string, or contains half a surrogate pair."""
        value = self.value(name)
        if not isinstance(value, str):
            raise EvaluationError(f"{self.where}: the field {name!r} must be a text, got {shorten(value)}")
        return value if value.isascii() else checked_text(value, f"{self.where}: the field {name!r}")

    def _find(self, name: str) -> Any:
        value: Any = self.values
        if name in value:
            return value[name]
        for part in name.split("."):
            if not isinstance(value, Mapping) or part not in value:
                return _MISSING
            value = value[part]
        return value


_MISSING = object()


def shorten(value: object) -> str:
    """Return `repr` of a value from a file, shortened to at most 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def checked_text(text: str, where: str) -> str:
    """Return `text`. Raises EvaluationError if `text` contains half a surrogate pair, which no tokenizer can encode."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise EvaluationError(
            f"{where}: character {error.start} is half of a surrogate pair, expected valid Unicode text"
        ) from error
    return text


def task_lines(source: RawSource, name: str) -> Lines:
    """Return the lines of a file; messages and results cite the third line of train.jsonl as `train.jsonl:3`."""
    lines = json_lines(source, name)
    lines.has_options = False
    lines.where, lines.mark = name, ":"
    return lines


def decode_lines(source: RawSource, name: str) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, text without the line end) of a UTF-8 file; blank lines are skipped.

    Lines end at newline characters only, because JSON and plain text may contain other Unicode separators inside a
    line. Raises SourceError naming the file and the byte that is not UTF-8.
    """
    lines = task_lines(source, name)
    return ((lines.line, text) for text in filled_lines(lines))


def read_json_lines(source: RawSource, name: str) -> Iterator[Record]:
    """Yield the objects of a file of JSON lines, or of one JSON list, in order.

    Raises SourceError naming file and line for malformed JSON, a repeated key or a value that is not an object, and
    EvaluationError naming the file if the file has no objects.
    """
    lines = task_lines(source, name)
    return some((Record(values, where, lines.record_line) for where, values in json_rows(lines, strict=True)), name)


def some(records: Iterator[Record], name: str) -> Iterator[Record]:
    """Yield the records of a file. Raises EvaluationError naming the file if the file has no records."""
    empty = True
    for record in records:
        empty = False
        yield record
    if empty:
        raise EvaluationError(f"{name}: the file contains no records")
