"""Annotations of settings fields, for example for text that matches a pattern, names of other files, and lists without
repetitions.

The annotations of a settings class define the allowed values. pydantic is only imported during validation, so that this
module loads fast. Ranges of numbers are in `base`.
"""

import ast
import inspect
import operator
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from functools import cache, reduce
from itertools import pairwise
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from annotated_types import MinLen

from hatchery.settings.base import RefusedError, Settings

Meta = TypeVar("Meta")

ABSENT: Any = type("Absent", (), {"__repr__": lambda self: "ABSENT", "__deepcopy__": lambda self, memo: self})()
"""Default of optional keys that exclude each other. ABSENT is the value of a key that a file does not contain."""


class OneOfKeys(Settings):
    """Base of settings classes with alternative groups of keys. A file must contain the keys of exactly one group."""

    ONE_OF: ClassVar[dict[tuple[str, ...], str]]
    """Groups of keys, each with an example of how to write its keys."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        check = {"type": "no-info", "function": _with_one_group}
        return {"type": "function-after", "function": check, "schema": handler(source)}


def _with_one_group(settings: Any) -> Any:
    cls: Any = type(settings)
    given = {key for key, value in vars(settings).items() if value is not ABSENT}
    if sum(given.issuperset(group) for group in cls.ONE_OF) == 1:
        return settings
    keys = dict.fromkeys(key for group in cls.ONE_OF for key in group)
    written = " and ".join(key for key in keys if key in given) or "none of these"
    meant = {group: re.split(r"[.;]\s|\.$", sentences(cls)[group[0]])[0] for group in cls.ONE_OF}
    ways = "; or ".join(f"`{way}` ({meant[group]})" for group, way in cls.ONE_OF.items())
    raise RefusedError("", f"got {written}, expected exactly one of: {ways}")


@dataclass(frozen=True)
class Text:
    """Type annotation for a text that must match a pattern; `expected` describes the pattern in messages."""

    pattern: str
    expected: str

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return {"type": "str", "pattern": self.pattern, "strict": True}

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> Any:
        return {**handler(schema), "x-expected": self.expected}


@dataclass(frozen=True)
class ShortNumber:
    """Annotation of an integer that may be written with a unit: 20K, 100M."""

    @staticmethod
    def is_short(text: str) -> bool:
        """Return True if the text is a number with a unit, such as 100M."""
        return _SHORT_NUMBER.match(text) is not None

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        read = {"type": "no-info", "function": _written_out}
        return {"type": "function-before", "function": read, "schema": handler(source)}

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> Any:
        return {
            "anyOf": [
                handler(schema["schema"]),
                {"type": "string", "pattern": _SHORT_NUMBER.pattern, "x-expected": "text such as 100M"},
            ]
        }


_SHORT_NUMBER = re.compile("^([1-9][0-9]*)([KM])$")


def _written_out(value: Any) -> Any:
    number = _SHORT_NUMBER.match(value) if isinstance(value, str) else None
    return value if number is None else int(number[1]) * {"K": 1_000, "M": 1_000_000}[number[2]]


@dataclass(frozen=True)
class Unique:
    """Annotation of a list without repeated entries."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        check = {"type": "no-info", "function": _without_repetitions}
        return {"type": "function-after", "function": check, "schema": handler(source)}

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> Any:
        return {**handler(schema), "uniqueItems": True}


def _without_repetitions(values: Any) -> Any:
    twice = next((value for value in values if values.count(value) > 1), None)
    if twice is not None:
        raise ValueError(f"got {twice!r} more than once, expected each entry once")
    return values


@dataclass(frozen=True)
class Reference:
    """Annotation of a field that contains the name of a configuration file of the kind `kind`. If `kind` is DATA, the
    field contains the name of a raw input in config.yaml.

    `inherited` is True for `base` keys: the named file only supplies defaults.
    """

    kind: str
    inherited: bool = False


@dataclass(frozen=True)
class PartOf:
    """Annotation of a mapping that overrides some keys of a settings class. No key is required, at any depth."""

    settings: type

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return handler.generate_schema(_partial(self.settings))


@dataclass(frozen=True)
class ChosenBy:
    """Annotation of a union of settings classes. The value of `key`, a field of all these classes, selects the class.

    If `key` is missing, `default` is used; if `default` is None, a missing `key` is an error. In a mapping that
    overrides another mapping (`PartOf`), a missing `key` selects the class that has the largest number of the given
    keys. Among classes with equal numbers, `default` is preferred, and then the first class.
    """

    key: str
    default: str | None = None

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic import Discriminator

        if self.default is None:
            return Discriminator(self.key).__get_pydantic_core_schema__(source, handler)
        members = get_args(source)
        hints = [hints_of(_settings_class(member)) for member in members]
        classes_by_value = {str(get_args(of_member[self.key])[0]): of_member for of_member in hints}
        are_whole = all(is_dataclass(member) for member in members)

        def chosen(value: Any) -> Any:
            given = value if isinstance(value, dict) else {}
            if are_whole or self.key in given:
                return given.get(self.key, self.default)
            return max(
                classes_by_value,
                key=lambda name: (len(classes_by_value[name].keys() & given.keys()), name == self.default),
            )

        choices = {
            value: handler.generate_schema(member) for value, member in zip(classes_by_value, members, strict=True)
        }
        return {"type": "tagged-union", "choices": choices, "discriminator": chosen}

    def among(self, classes: Iterable[Any]) -> Any:
        """Return the annotated union of `classes`, for unions whose classes are only known at run time."""
        return Annotated[reduce(operator.or_, classes), self]


@dataclass(frozen=True)
class NameOr:
    """Annotation of a value that is either the name of a configuration file or a mapping with the keys of such a
    file.
    """

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        name, block = (handler.generate_schema(member) for member in get_args(source))
        choices = {"<name>": name, "<keys>": block}
        return {"type": "tagged-union", "choices": choices, "discriminator": _name_or_keys}


def _name_or_keys(value: Any) -> str:
    return "<keys>" if isinstance(value, Mapping) else "<name>"


def _settings_class(member: Any) -> Any:
    parts = [meta.settings for meta in getattr(member, "__metadata__", ()) if isinstance(meta, PartOf)]
    return parts[0] if parts else member


@dataclass(frozen=True)
class Sweepable:
    """Annotation of a type whose keys may have the value `{sweep: [...]}` in a file. Before validation, each value of a
    sweep becomes a run.
    """

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> Any:
        return {**handler(schema), "x-sweepable": True}


@cache
def _partial(cls: type) -> Any:
    """Return a TypedDict with the fields of a settings class. No field is required, and no field has a default."""
    from typing_extensions import TypedDict

    fields = {name: partial_hint(hint) for name, hint in hints_of(cls).items()}
    partial_type: Any = TypedDict(f"Partial{cls.__name__}", fields, total=False)  # type: ignore[misc]
    attributes = {"__pydantic_config__": Settings.__pydantic_config__, "__doc__": cls.__doc__, "settings": cls}
    for name, value in attributes.items():
        setattr(partial_type, name, value)
    return partial_type


def partial_hint(hint: Any) -> Any:
    """Return the type `hint` with its settings classes replaced by mappings in which no key is required."""
    if isinstance(hint, type) and is_dataclass(hint):
        return Annotated[dict[str, Any], PartOf(hint)]
    members = get_args(hint)
    if get_origin(hint) is Annotated:
        return Annotated[(partial_hint(members[0]), *members[1:])]
    if get_origin(hint) in (Union, UnionType):
        parts = tuple(partial_hint(member) for member in members if member is not type(None))
        return Union[(*parts, *(member for member in members if member is type(None)))]
    return hint


@cache
def hints_of(cls: Any) -> Mapping[str, Any]:
    """Return the types of the fields of a settings class, including the fields' annotations."""
    fields = cls.__dataclass_fields__ if is_dataclass(cls) else cls.__annotations__
    hints = get_type_hints(cls, include_extras=True)
    return {name: hints[name] for name in fields if get_origin(hints[name]) is not ClassVar}


def metadata(hint: Any, about: tuple[Any, ...] = ()) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Yield (member, metadata) for each member of a union; the metadata are `about`, followed by the member's
    `Annotated` metadata. If the type is not a union, yield only the type itself with its metadata.
    """
    if get_origin(hint) is Annotated:
        inner, *more = get_args(hint)
        yield from metadata(inner, (*about, *more))
    elif get_origin(hint) in (Union, UnionType):
        for member in get_args(hint):
            yield from metadata(member, about)
    else:
        yield hint, about


def members_of(hint: Any) -> list[Any]:
    """Return the members of a union, without None. If the type is not a union, return only the type itself."""
    return [member for member, _ in metadata(hint) if member is not NoneType]


@cache
def markers_of(hint: Any, kind: type[Meta]) -> tuple[Meta, ...]:
    """Return those annotations of a type that are objects of the class `kind`."""
    return tuple(meta for _, about in metadata(hint) for meta in about if isinstance(meta, kind))


def key_paths(cls: type, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the paths of all keys of a settings class, at every depth."""
    for key, hint in hints_of(cls).items():
        yield (*path, key)
        for member in members_of(hint):
            if is_dataclass(member):
                yield from key_paths(member, (*path, key))  # type: ignore[arg-type]


@cache
def sentences(cls: type) -> dict[str, str]:
    """Return the docstrings of the fields of a settings class, including inherited fields."""
    docstrings: dict[str, str] = {}
    for base in reversed(cls.__mro__[:-1]):
        body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0].body  # type: ignore[attr-defined]
        for field, below in pairwise(body):
            is_text = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and is_text:
                docstrings[field.target.id] = inspect.cleandoc(str(below.value.value).strip()).replace("\n", " ")
    return docstrings


# Functions for settings that override other settings.


def hint_below(hint: Any, key: str) -> Any:
    """Return the type of the value at `key` in a value of the type `hint`; Any if the type is not known."""
    hints_at_key = []
    for member in _settings_members(hint):
        hints: Mapping[str, Any] = hints_of(member) if is_dataclass(member) else {}  # type: ignore[arg-type]
        if key in hints:
            hints_at_key.append(hints[key])
        elif get_origin(member) is dict:
            hints_at_key.append(get_args(member)[1])
    return reduce(operator.or_, hints_at_key) if hints_at_key else Any


def other_ways(hint: Any, key: str) -> set[str]:
    """Return the keys that must not occur next to `key` in a value of the type `hint` (`OneOfKeys`)."""
    excluded: set[str] = set()
    for member in _settings_members(hint):
        groups = list(member.ONE_OF) if isinstance(member, type) and issubclass(member, OneOfKeys) else []
        own = {other for group in groups if key in group for other in group}
        if own:
            excluded |= {other for group in groups for other in group} - own
    return excluded


def may_be_null(hint: Any) -> bool:
    """Return True if None is a valid value of the type `hint`, or if the type is unknown."""
    return any(member in (NoneType, Any) for member, _ in metadata(hint))


def _settings_members(hint: Any) -> list[Any]:
    """Return the members of a type. For a partial mapping (`PartOf`), return its settings class."""
    members = metadata(hint)
    return [next((m.settings for m in about if isinstance(m, PartOf)), member) for member, about in members]


# Types of text.

NAME = "[A-Za-z0-9][A-Za-z0-9_]*"
# Names are limited, because they are parts of file names, and a file name may have at most 255 characters.
LONGEST_NAME = 150
NAME_IN_WORDS = f"letters a-z and A-Z, digits and _, beginning with a letter or digit, {LONGEST_NAME} at most"
BlockName = Annotated[str, Text(f"^[A-Za-z0-9][A-Za-z0-9_]{{0,{LONGEST_NAME - 1}}}$", NAME_IN_WORDS)]
NotEmpty = Annotated[str, MinLen(1)]
Names = Annotated[tuple[str, ...], Unique()]
SomeNames = Annotated[tuple[str, ...], MinLen(1), Unique()]

# Types of values that name a configuration file or a raw input.

DATA = "data"
"""Kind of a reference to a raw input of config.yaml."""

DataName = Annotated[str, Reference(DATA)]
CorpusName = Annotated[str, Reference("corpus")]
TokenizerName = Annotated[str, Reference("tokenizer")]
ModelName = Annotated[str, Reference("model")]
SuiteName = Annotated[str, Reference("suite")]
TaskName = Annotated[str, Reference("task")]
ReadingTableName = Annotated[str, Reference("reading_table")]
VocabularyName = Annotated[str, Reference("vocabulary")]
SelectionName = Annotated[str, Reference("selection")]
BaselineName = Annotated[str, Reference("baseline")]
SegmentsName = Literal["babylm", "bnc", "packed", "documents"]
"""Methods to divide documents into sequences (`hatchery.objectives.segments`)."""
ShiftedSegmentsName = Literal["babylm", "bnc", "packed", "documents", "blocks"]
"""Methods to divide documents if each token is predicted at the previous position (`hatchery.objectives.blocks`)."""
