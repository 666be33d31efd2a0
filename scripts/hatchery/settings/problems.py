"""What is wrong with settings, in words for the person who wrote them: a line for each problem, each once.

The one place that knows pydantic's errors. A pattern is never shown: `Text` says in words what it stands for. Mistakes
of several files are collected into one error: whoever mends one should not be told of the next a minute later.
"""

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from annotated_types import MinLen

from hatchery.errors import ConfigError, HatcheryError
from hatchery.settings.base import BOUNDS, Range, RefusedError, shown
from hatchery.settings.fields import ChosenBy, PartOf, Text, hints_of
from hatchery.settings.walk import along, members_at, members_of, metadata, said_about

if TYPE_CHECKING:
    from pydantic import ValidationError

_TYPES = {int: "a whole number", float: "a number", str: "text", bool: "true or false", type(None): "null"}
_BROKEN_BOUNDS = {"greater_than_equal": "ge", "greater_than": "gt", "less_than_equal": "le", "less_than": "lt"}
ALLOWED = ", allowed are"
_UNKNOWN = ("unexpected_keyword_argument", "extra_forbidden")
_LENGTHS = {"too_short": ("at least", "min_length"), "too_long": ("at most", "max_length")}


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the known word nearest to `word`, or nothing when none is near."""
    matches = difflib.get_close_matches(str(word), sorted(known), n=1, cutoff=0.6)
    return f"; did you mean {matches[0]!r}?" if matches else ""


def offered(word: str, known: Iterable[str], words: str = "; there are", also: Iterable[str] = ()) -> str:
    """What could have been meant: the nearest known word first, then all of them, behind `words`.

    `; did you mean 'x'? There are: x, y`, or `; there are: x, y` when none is near. Words of `also` may be meant, too,
    but are not listed.
    """
    known = list(known)
    listed = f"{', '.join(known) or 'none'}"
    if hint := nearest(word, [*known, *also]):
        return f"{hint} {words.lstrip(',; ').capitalize()}: {listed}"
    return f"{words}: {listed}"


def problem_lines(error: "ValidationError", hint: Any, document: Any) -> list[tuple[str, str]]:
    """Pairs of a key (`runs.a.model`, "" for the whole) and what is wrong with it, ordered by key, each once."""
    found: dict[tuple[str, str], None] = {}
    details = error.errors(include_url=False)
    for detail in sorted(details, key=_order):
        # pydantic counts only the entries that are right.
        if detail["type"] != "too_short" or len(detail["input"]) < detail["ctx"]["min_length"]:
            found.setdefault(_explained(detail, hint, document))
    return list(found)


def _order(detail: Mapping[str, Any]) -> tuple[list[str], bool, str]:
    """By place; of one place, unknown keys before missing ones, because one may be the other misspelt."""
    location = [str(part) for part in detail["loc"]]
    of_keys = detail["type"] in ("missing", *_UNKNOWN)
    place = location[:-1] if of_keys else location
    return place, detail["type"] == "missing", location[-1] if of_keys else ""


def _explained(detail: Mapping[str, Any], hint: Any, document: Any) -> tuple[str, str]:
    location, kind, context = detail["loc"], detail["type"], detail.get("ctx", {})
    if location and location[-1] == "[key]":
        *_, (parent, hint, _value) = along(hint, document, location[:-2])
        key_hint = get_args(members_of(hint)[0])[0]
        return _joined(parent), f"got the name {location[-2]!r}, expected {_wanted(key_hint)}"
    steps = list(along(hint, document, location))
    path, hint, value = steps[-1]
    place = _joined(path)
    match kind:
        case "missing":
            return place, "the key is missing"
        case _ if kind in _UNKNOWN:
            _, hint, value = steps[-2]
            known = sorted(hints_of(_class_of(hint, value)))
            return place, f"{_whose(path[-1], hint)}{offered(path[-1], known, '; allowed are')}"
        case "value_error" if isinstance(context.get("error"), RefusedError):
            refused = context["error"]
            return _joined((*path, refused.key) if refused.key else path), refused.problem
        case "value_error" | "json_invalid":
            return place, detail["msg"].removeprefix("Value error, ")
        case "union_tag_invalid" | "union_tag_not_found":
            return _wrong_tag(path, hint, value, detail)
    if len(members_of(hint)) > 1:
        return place, f"got {shown(value)}, expected {_wanted(hint)}"
    match kind:
        case "literal_error":
            allowed = [_word(item) for item in _choices(hint)]
            return place, f"got {shown(value)}{offered(value if isinstance(value, str) else '', allowed, ALLOWED)}"
        case _ if kind in _BROKEN_BOUNDS:
            bound = _BROKEN_BOUNDS[kind]
            return place, f"got {shown(value)}, expected {BOUNDS[bound][0]} {_number(context[bound])}"
        case _ if kind in _LENGTHS:
            words, key = _LENGTHS[kind]
            entries = "entry" if context[key] == 1 else "entries"
            return place, f"expected {words} {context[key]} {entries}, got {len(value)}"
        case "string_pattern_mismatch" | "string_too_short" | "string_too_long":
            return place, f"got {shown(value)}, expected {_wanted(hint)}"
    return place, f"got {shown(value)}, expected {_wanted(hint, bounds=False)}"


def _whose(key: str, hint: Any) -> str:
    """What is wrong with a key that a class of settings does not have: another one may."""
    for choice in said_about(hint, ChosenBy):
        for cls in _classes(hint):
            if key in hints_of(cls):
                return f"unknown key here: it belongs to {choice.key} {get_args(hints_of(cls)[choice.key])[0]}"
    return "unknown key"


def _wrong_tag(path: Sequence[str], hint: Any, value: Any, detail: Mapping[str, Any]) -> tuple[str, str]:
    key = said_about(hint, ChosenBy)[0].key
    place = _joined((*path, key))
    if detail["type"] == "union_tag_not_found":
        return place, "the key is missing"
    allowed = [word.strip("'") for word in detail["ctx"]["expected_tags"].split(", ")]
    given = value[key]
    return place, f"got {shown(given)}{offered(str(given), allowed, ALLOWED)}"


def _classes(hint: Any) -> list[type]:
    parts = [meta.settings for meta in said_about(hint, PartOf)]
    return parts or [member for member in members_of(hint) if isinstance(member, type) and is_dataclass(member)]


def _class_of(hint: Any, value: Any) -> type:
    """The class of settings that a value of a file is meant as."""
    meant = (member for member, _ in members_at(hint, value) if isinstance(member, type) and is_dataclass(member))
    return next(meant, _classes(hint)[0])


def _wanted(hint: Any, bounds: bool = True) -> str:
    """What a type asks for, in words; without its bounds where only the type was wrong."""
    return " or ".join(dict.fromkeys(_parts(hint, bounds)))


def _parts(hint: Any, with_bounds: bool) -> Iterator[str]:
    for member, about in metadata(hint):
        form = [meta.words for meta in about if isinstance(meta, Text)]
        bounds = {name: bound for meta in about if isinstance(meta, Range) for name, bound in meta.bounds.items()}
        limits = [f"{BOUNDS[name][0]} {_number(bound)}" for name, bound in bounds.items()]
        if get_origin(member) is Literal:
            yield from (_word(item) for item in get_args(member))
        elif form:
            yield form[0]
        elif member is str and any(isinstance(meta, MinLen) for meta in about):
            yield "text that is not empty"
        elif any(isinstance(meta, PartOf) for meta in about) or is_dataclass(member) or get_origin(member) is dict:
            yield "keys with values"
        elif get_origin(member) in (list, tuple):
            yield "a list"
        else:
            yield " ".join([_TYPES.get(member, "another value"), " and ".join(limits) if with_bounds else ""]).strip()


def _choices(hint: Any) -> list[Any]:
    return [
        item
        for member, _about in metadata(hint)
        for item in (get_args(member) if get_origin(member) is Literal else [None] if member is type(None) else [])
    ]


def _number(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _word(value: Any) -> str:
    """A value as YAML spells it."""
    return json.dumps(value) if value in (None, "") or isinstance(value, bool) else str(value)


def _joined(path: Iterable[Any]) -> str:
    return ".".join(str(part) for part in path)


class Problems:
    """Lines of errors in the order in which they were found, each once."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    @contextmanager
    def collecting(self, place: str = "") -> Iterator[None]:
        """Keep the error of the block, with `place` in front of its lines, and go on behind it."""
        try:
            yield
        except HatcheryError as error:
            for line in str(error).splitlines():
                self.add(f"{place}: {line}" if place else line)

    def add(self, line: str) -> None:
        """Add a line unless it is there."""
        if line not in self.lines:
            self.lines.append(line)

    def raise_any(self) -> None:
        """Raise ConfigError with all lines, if there are any."""
        if self.lines:
            raise ConfigError("\n".join(self.lines))
