"""Converts validation errors of settings into messages for users: one line per problem.

Only this module depends on pydantic's errors. Messages never show regular expressions; `Text` describes each pattern in
words. One error lists the problems of all files, so that users can fix all problems at once.
"""

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args, get_origin

from annotated_types import MinLen

from hatchery.errors import ConfigError, HatcheryError
from hatchery.settings.base import BOUNDS, Range, RefusedError, shortened
from hatchery.settings.fields import (
    ABSENT,
    ChosenBy,
    PartOf,
    ShortNumber,
    Text,
    hints_of,
    key_paths,
    markers_of,
    members_of,
    metadata,
)

if TYPE_CHECKING:
    from pydantic import ValidationError

_TYPES = {int: "a whole number", float: "a number", str: "text", bool: "true or false", type(None): "null"}
_BROKEN_BOUNDS = {"greater_than_equal": "ge", "greater_than": "gt", "less_than_equal": "le", "less_than": "lt"}
ALLOWED = ", allowed are"
# Minimum similarity (1: equal) of an unknown key and a known key of the same mapping, at which a message suggests the
# known key. Below this similarity, the message names other mappings that contain the unknown key.
ONLY_MISSPELT = 0.8
OTHER_WORDS = {"type": "kind", "lr": "learning_rate"}
"""Names of keys in other programs, with the names of these keys in Hatchery."""
MOST_HOMES = 3
"""Maximum number of mappings that a message suggests for a misplaced key."""
_UNKNOWN = ("unexpected_keyword_argument", "extra_forbidden")
_LENGTHS = {"too_short": ("at least", "min_length"), "too_long": ("at most", "max_length")}


def nearest(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` with the most similar known word, or an empty text if no word is similar."""
    matches = difflib.get_close_matches(str(word), sorted(known), n=1, cutoff=0.6)
    return f"; did you mean {matches[0]!r}?" if matches else ""


def alternatives(word: str, known: Iterable[str], introduction: str = "; there are", also: Iterable[str] = ()) -> str:
    """Return `; did you mean 'x'? There are: x, y`, or `; there are: x, y` if no known word is similar.

    `introduction` is the text before the list of known words. Words in `also` may be suggested, but are not listed.
    """
    known = list(known)
    listed = f"{', '.join(known) or 'none'}"
    if hint := nearest(word, [*known, *also]):
        return f"{hint} {introduction.lstrip(',; ').capitalize()}: {listed}"
    return f"{introduction}: {listed}"


def problem_lines(error: "ValidationError", hint: Any, document: Any) -> list[tuple[str, str]]:
    """Return the problems that `error` reports, as distinct pairs (key, problem), ordered by key. A key such as
    `runs.a.model` is a path; "" is the key of the complete document.

    `hint` is the type against which `document` was validated.
    """
    lines: dict[tuple[str, str], None] = {}
    for detail in sorted(error.errors(include_url=False), key=_order):
        # Drop pydantic's error about a too short list if the list is long enough: pydantic counts only valid entries.
        if detail["type"] != "too_short" or len(detail["input"]) < detail["ctx"]["min_length"]:
            position = Position((), hint, document)
            for part in detail["loc"]:
                position = position.at(part)
            if not _is_other_member(detail, position):
                lines.setdefault(_explained(detail, position))
    return list(lines)


def _is_other_member(detail: Mapping[str, Any], position: "Position") -> bool:
    """Return True if the value is a list or mapping, the error only states that the value is not one of the allowed
    words, and the type also allows a list or mapping.

    Such an error is not shown, because pydantic reports the problems inside the list or mapping separately.
    """
    origins: tuple[Any, ...] = (list, tuple) if isinstance(detail["input"], list) else ()
    if isinstance(detail["input"], dict):
        origins = (dict,)
    return detail["type"] == "literal_error" and any(
        get_origin(member) in origins for member in members_of(position.hint)
    )


def _order(detail: Mapping[str, Any]) -> tuple[list[str], bool, str]:
    """Return a sort key of an error: its position in the file. Among the keys of one mapping, unknown keys precede
    missing keys, because an unknown key may be a misspelt missing key.
    """
    location = [str(part) for part in detail["loc"]]
    of_keys = detail["type"] in ("missing", *_UNKNOWN)
    position = location[:-1] if of_keys else location
    return position, detail["type"] == "missing", location[-1] if of_keys else ""


class Position(NamedTuple):
    """A position in a file: the path of keys, the allowed type (`hint`), the value, and the enclosing position
    (`above`).

    `meant` is the settings class that the value of a `ChosenBy` key selected; None if no class was selected.
    """

    keys: tuple[str, ...]
    hint: Any
    value: Any
    above: Any = None
    meant: type | None = None

    def __str__(self) -> str:
        return ".".join(self.keys)

    def at(self, key: Any) -> "Position":
        """Return the position at the key `key` below this position.

        In the paths of pydantic's errors, some keys are names of union members. If `key` is the name of a union member,
        return this position with `meant` set to the settings class that this name selects.
        """
        try:
            value = self.value[key]
        except (KeyError, IndexError, TypeError):
            value = ABSENT
        hints = [hints_of(cls)[key] for cls in self.classes() if key in hints_of(cls)]
        if value is ABSENT and not hints:
            return self._replace(meant=_chosen(str(key), self.hint) or self.meant)
        for member in members_of(self.hint):
            if get_origin(member) is dict and isinstance(self.value, Mapping):
                hints.append(get_args(member)[1])
            if get_origin(member) in (list, tuple) and isinstance(self.value, list):
                hints.append(get_args(member)[0])
        return Position((*self.keys, str(key)), [*hints, Any][0], value, self)

    def classes(self) -> list[type]:
        """Return the settings classes that the value may have. If a key such as `kind` selected a class (`meant`),
        return only this class. Otherwise, return all classes of the allowed type, or an empty list if the value is not
        a mapping.
        """
        if self.meant is not None:
            return [self.meant]
        return _classes(self.hint) if isinstance(self.value, Mapping) else []


def _classes(hint: Any) -> list[type]:
    """Return the settings classes among the members of a type, and the class of a partial mapping (`PartOf`)."""
    parts = [meta.settings for meta in markers_of(hint, PartOf)]
    return parts or [member for member in members_of(hint) if isinstance(member, type) and is_dataclass(member)]


def _chosen(value: str, hint: Any) -> type | None:
    """Return the settings class that `value`, the value of a `ChosenBy` key, selects; None if it selects no class."""
    for choice in markers_of(hint, ChosenBy):
        for cls in _classes(hint):
            if get_args(hints_of(cls)[choice.key])[0] == value:
                return cls
    return None


def _explained(detail: Mapping[str, Any], position: Position) -> tuple[str, str]:
    """Return the key to show in a message about an error of pydantic, and the message. This key may differ from the key
    in the error.
    """
    key, error = str(position), detail.get("ctx", {}).get("error")
    if isinstance(error, RefusedError):
        return ".".join(filter(None, [key, error.key])), error.problem
    if detail["type"] in ("union_tag_invalid", "union_tag_not_found"):
        tag = markers_of(position.hint, ChosenBy)[0].key
        key, given = ".".join([*position.keys, tag]), position.value.get(tag)
        if detail["type"] == "union_tag_not_found":
            return key, "the key is missing"
        allowed = [word.strip("'") for word in detail["ctx"]["expected_tags"].split(", ")]
        return key, f"got {shortened(given)}{alternatives(str(given), allowed, ALLOWED)}"
    if detail["loc"][-1:] == ("[key]",):
        names = get_args(members_of(position.above.hint)[0])[0]
        return str(position.above), f"got the name {position.keys[-1]!r}, expected {_expected(names)}"
    return key, _problem(detail, position)


def _problem(detail: Mapping[str, Any], position: Position) -> str:
    kind, context, (keys, hint, value, above, _) = detail["type"], detail.get("ctx", {}), position
    match kind:
        case "missing":
            return "the key is missing"
        case _ if kind in _UNKNOWN:
            cls = above.classes()[0]
            if home := _home(keys[-1], cls, above):
                return f"unknown key here: it {home}; allowed are: {', '.join(sorted(hints_of(cls)))}"
            allowed = sorted(hints_of(cls))
            if (other := OTHER_WORDS.get(keys[-1])) in allowed:
                return f"unknown key; did you mean {other!r}? Allowed are: {', '.join(allowed)}"
            return f"unknown key{alternatives(keys[-1], allowed, '; allowed are')}"
        case "value_error" | "json_invalid":
            return str(detail["msg"]).removeprefix("Value error, ")
    got = f"got {shortened(value)}"
    if isinstance(value, str) and markers_of(hint, ShortNumber) and ShortNumber.is_short(value.upper()):
        return f"{got}, expected {_expected(hint)}; did you mean {value.upper()}?"
    if len(members_of(hint)) > 1:
        return f"{got}, expected {_expected(hint)}"
    match kind:
        case "literal_error":
            word = value if isinstance(value, str) else ""
            return f"{got}{alternatives(word, _parts(hint, with_bounds=False), ALLOWED)}"
        case _ if kind in _BROKEN_BOUNDS:
            bound = _BROKEN_BOUNDS[kind]
            return f"{got}, expected {BOUNDS[bound][0]} {_number(context[bound])}"
        case _ if kind in _LENGTHS:
            least, key = _LENGTHS[kind]
            entries = "entry" if context[key] == 1 else "entries"
            return f"expected {least} {context[key]} {entries}, got {len(value)}"
        case "string_pattern_mismatch" | "string_too_short" | "string_too_long":
            return f"{got}, expected {_expected(hint)}"
    return f"{got}, expected {_expected(hint, bounds=False)}"


def _home(key: str, own: type, above: Position) -> str:
    """Return the mapping to which the unknown key `key` belongs, as the end of a sentence: "belongs under `x`".

    The key was found at the position `above`, whose settings class `own` does not have this key. Return an empty text
    if no known mapping has this key, or if the key is a misspelt key of `own`.
    """
    if origin := getattr(own, "DECIDED_BY", {}).get(key):
        return f"follows from {origin}"
    for choice in markers_of(above.hint, ChosenBy):
        for cls in _classes(above.hint):
            if key in hints_of(cls):
                return f"belongs to {choice.key} {get_args(hints_of(cls)[choice.key])[0]}"
    if difflib.get_close_matches(key, hints_of(own), n=1, cutoff=ONLY_MISSPELT):
        return ""
    for name, hint in hints_of(own).items():
        if any(key in hints_of(cls) for cls in _classes(hint)):
            return f"belongs under `{name}`"
    outer, root = above.above, above
    while outer is not None:
        if any(key in hints_of(cls) for cls in outer.classes()):
            return f"belongs under `{outer.keys[-1]}`" if outer.keys else "belongs to the top level"
        outer, root = outer.above, outer
    for cls in root.classes():
        files: Mapping[str, type] = getattr(cls, "other_files", dict)()
        for file, other in {"": cls, **files}.items():
            of_file = f" of {file}" if file else ""
            positions = [path[:-1] for path in key_paths(other) if path[-1] == key]
            if () in positions and file:
                return f"belongs to the top level{of_file}"
            if places := " or ".join(f"`{'.'.join(path)}`" for path in positions[:MOST_HOMES] if path):
                return f"belongs under {places}{of_file}"
    return ""


def _expected(hint: Any, bounds: bool = True) -> str:
    """Return the allowed values of a type in words. The bounds of numbers are included if `bounds` is True."""
    return " or ".join(dict.fromkeys(_parts(hint, bounds)))


def _parts(hint: Any, with_bounds: bool) -> Iterator[str]:
    for member, about in metadata(hint):
        form = [meta.expected for meta in about if isinstance(meta, Text)]
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
        elif any(isinstance(meta, ShortNumber) for meta in about):
            yield f"{_TYPES[member]}, or a number such as 100K or 100M"
        elif get_origin(member) in (list, tuple):
            yield "a list"
        else:
            yield " ".join([_TYPES.get(member, "another value"), " and ".join(limits) if with_bounds else ""]).strip()


def _number(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _word(value: Any) -> str:
    """Return a value as written in YAML."""
    return json.dumps(value) if value in (None, "") or isinstance(value, bool) else str(value)


class Problems:
    """Collects the lines of errors in the order in which they occur. Repeated lines are collected once."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    @contextmanager
    def collecting(self, place: str = "") -> Iterator[None]:
        """Collect a HatcheryError raised in the `with` block, with `place` before each line, and continue after the
        block.
        """
        try:
            yield
        except HatcheryError as error:
            for line in str(error).splitlines():
                self.add(f"{place}: {line}" if place else line)

    def add(self, line: str) -> None:
        """Add a line unless it was already added."""
        if line not in self.lines:
            self.lines.append(line)

    def raise_any(self) -> None:
        """Raise ConfigError with all collected lines. Without lines, do nothing."""
        if self.lines:
            raise ConfigError("\n".join(self.lines))
