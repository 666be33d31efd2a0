"""Strict reading of JSON lines from a raw source, for minimal pairs and for task files alike.

Every record comes with its place (file and line), so whatever is wrong with it later can be named. Broken JSON,
broken UTF-8, repeated keys and values that are no objects end in one EvaluationError.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hatchery.errors import EvaluationError
from hatchery.raw.registration import RawSource


@dataclass(slots=True)
class Record:
    """One object of a file; `where` is its place for messages, `line` counts from 1.

    `left_out` names the fields of the file that were not read, because nobody asked for them.
    """

    values: Mapping[str, Any]
    where: str
    line: int
    left_out: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """The names of all fields, sorted."""
        return sorted({*self.values, *self.left_out})

    def has(self, name: str) -> bool:
        """Whether there is a field `name`; dots reach into nested objects."""
        return self._find(name) is not _MISSING

    def value(self, name: str) -> Any:
        """The value of the field `name`; dots reach into nested objects. Raises EvaluationError when it is missing."""
        found = self.values.get(name, _MISSING)
        if found is _MISSING:
            found = self._find(name)
        if found is _MISSING:
            raise EvaluationError(
                f"{self.where}: the field {name!r} is missing; the record has: {', '.join(self.names)}"
            )
        return found

    def text(self, name: str) -> str:
        """The non-empty string called `name`. Raises EvaluationError when it is missing, empty or no string."""
        value = self.value(name)
        if not isinstance(value, str) or not value.strip():
            raise EvaluationError(f"{self.where}: the field {name!r} must be a non-empty text, got {shorten(value)}")
        return value if value.isascii() else checked_text(value, f"{self.where}: the field {name!r}")

    def string(self, name: str) -> str:
        """The string called `name`, which may be empty. Raises EvaluationError when it is missing or no string."""
        value = self.value(name)
        if not isinstance(value, str):
            raise EvaluationError(f"{self.where}: the field {name!r} must be a text, got {shorten(value)}")
        return value if value.isascii() else checked_text(value, f"{self.where}: the field {name!r}")

    def _find(self, name: str) -> Any:
        found: Any = self.values
        if name in found:
            return found[name]
        for part in name.split("."):
            if not isinstance(found, Mapping) or part not in found:
                return _MISSING
            found = found[part]
        return found


_MISSING = object()


def shorten(value: object) -> str:
    """`repr` of a value from a file, cut so that an error stays one readable line."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def checked_text(text: str, where: str) -> str:
    """Return `text`. Raises EvaluationError when it holds half a surrogate pair, which no tokenizer can encode."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise EvaluationError(f"{where} holds half a surrogate pair at character {error.start}") from error
    return text


def decode_lines(source: RawSource, name: str) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, text without the line end) of a UTF-8 file; blank lines are left out.

    Lines end at newline characters only: JSON and plain text may hold other Unicode separators inside a line.
    Raises EvaluationError naming file and line for bytes that are not UTF-8.
    """
    for line, raw in enumerate(source.read_bytes(name).split(b"\n"), start=1):
        try:
            text = raw.decode("utf-8-sig" if line == 1 else "utf-8").rstrip("\r")
        except UnicodeDecodeError as error:
            raise EvaluationError(f"{name}:{line}: not UTF-8 at byte {error.start} of the line") from error
        if text.strip():
            yield line, text


def read_json_lines(source: RawSource, name: str) -> Iterator[Record]:
    """Yield the objects of a JSON-lines file in order.

    Raises EvaluationError naming file and line for broken JSON, a repeated key or a value that is no object, and
    naming the file when it holds no record at all.
    """
    empty = True
    for line, text in decode_lines(source, name):
        where = f"{name}:{line}"
        try:
            values = json.loads(text)
            if not isinstance(values, dict):
                raise EvaluationError(f"{where}: expected a JSON object, got {shorten(values)}")
            if not _surely_unique(values, text):
                values = json.loads(text, object_pairs_hook=_unique_keys)
        except (ValueError, RecursionError) as error:
            raise EvaluationError(f"{where}: not one JSON object per line: {error}") from error
        empty = False
        yield Record(values, where, line)
    if empty:
        raise EvaluationError(f"{name}: the file holds no records")


_KEY_END = re.compile(r'"[ \t\r\n]*:')


def _surely_unique(values: dict[str, Any], text: str) -> bool:
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


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        names = [key for key, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {repeated!r} stands twice in one object")
    return values
