"""Going through settings and their types together: what stands at which key, and what is said about it."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache
from itertools import pairwise
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

from hatchery.settings.base import Settings
from hatchery.settings.fields import ABSENT, PartOf, Reference, hints_of

Meta = TypeVar("Meta")
Path = tuple[str, ...]


class Named(NamedTuple):
    """A name under a key: a file of this kind, or a raw input where the kind is DATA."""

    kind: str
    name: str
    key: str
    inherited: bool = False


def metadata(hint: Any, about: tuple[Any, ...] = ()) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """The members of a type (one, unless it is a union), each with what `Annotated` says about it."""
    if get_origin(hint) is Annotated:
        inner, *more = get_args(hint)
        yield from metadata(inner, (*about, *more))
    elif get_origin(hint) in (Union, UnionType):
        for member in get_args(hint):
            yield from metadata(member, about)
    else:
        yield hint, about


def members_of(hint: Any) -> list[Any]:
    """The members of a type without null."""
    return [member for member, _ in metadata(hint) if member is not NoneType]


def said_about(hint: Any, kind: type[Meta]) -> list[Meta]:
    """What of this kind is said about a type."""
    return [meta for _, about in metadata(hint) for meta in about if isinstance(meta, kind)]


def members_at(hint: Any, value: Any) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """The members of a type that a value of a file can be meant as, with what is said about each."""
    for member, about in metadata(hint):
        parts = [meta.settings for meta in about if isinstance(meta, PartOf)]
        if parts:
            member = parts[0]
        if isinstance(member, type) and is_dataclass(member):
            if isinstance(value, Mapping) and _is_chosen(member, value):
                yield member, about
        elif get_origin(member) is dict:
            if isinstance(value, Mapping):
                yield member, about
        elif get_origin(member) in (list, tuple):
            if isinstance(value, list | tuple):
                yield member, about
        else:
            yield member, about


def _is_chosen(cls: type, value: Mapping[str, Any]) -> bool:
    """Whether a mapping is of this class, of several that differ in the one choice of a key."""
    for key, hint in hints_of(cls).items():
        choices = get_args(hint)
        if get_origin(hint) is Literal and len(choices) == 1 and value.get(key, choices[0]) != choices[0]:
            return False
    return True


def below(hint: Any, value: Any) -> Iterator[tuple[str, Any, Any]]:
    """Key, type and value of everything that stands directly below a value of a file."""
    for member, _about in members_at(hint, value):
        if isinstance(member, type) and is_dataclass(member):
            hints = hints_of(member)
            yield from ((key, hints[key], value[key]) for key in hints if key in value)
        elif get_origin(member) is dict:
            yield from ((str(key), get_args(member)[1], item) for key, item in value.items())
        elif get_origin(member) in (list, tuple):
            yield from ((str(index), get_args(member)[0], item) for index, item in enumerate(value))


def along(hint: Any, value: Any, location: Sequence[Any]) -> Iterator[tuple[Path, Any, Any]]:
    """Path, type and value at each step to a location of pydantic's, which names members of unions between the keys."""
    path: Path = ()
    yield path, hint, value
    for part in location:
        step = next((step for step in below(hint, value) if step[0] == str(part)), None)
        if step is None:
            # A key that is missing or unknown, or the name of a member.
            classes = [
                member for member, _ in members_at(hint, value) if isinstance(member, type) and is_dataclass(member)
            ]
            known = [hints_of(cls)[part] for cls in classes if part in hints_of(cls)]
            if not known and not (isinstance(value, Mapping) and part in value):
                continue
            step = (str(part), known[0] if known else Any, value.get(part, ABSENT))
        path, hint, value = (*path, step[0]), step[1], step[2]
        yield path, hint, value


def references(value: Any, hint: Any = None, path: Path = ()) -> Iterator[Named]:
    """Every name of another file or raw input in settings, in the order of the keys.

    Names in a list, and names that are keys, stand at its key.
    """
    if isinstance(value, str):
        for meta in said_about(hint, Reference):
            yield Named(meta.kind, value, ".".join(path), meta.inherited)
    elif is_dataclass(value):
        for key, inner in hints_of(type(value)).items():  # type: ignore[arg-type]
            yield from references(getattr(value, key), inner, (*path, key))
    elif isinstance(value, Mapping):
        parts = [hints_of(meta.settings) for meta in said_about(hint, PartOf)]
        named, inner = _arguments(hint, dict)
        for key in value:
            yield from references(key, named, path)
        for key, item in value.items():
            yield from references(item, parts[0][key] if parts else inner, (*path, key))
    elif isinstance(value, tuple):
        inner = _arguments(hint, tuple)[0]
        for index, item in enumerate(value):
            yield from references(item, inner, path if said_about(inner, Reference) else (*path, str(index)))


def _arguments(hint: Any, origin: type) -> tuple[Any, ...]:
    """What the member of a type that is a dictionary or a tuple says of what it holds."""
    return next((get_args(member) for member in members_of(hint) if get_origin(member) is origin), (Any, Any))


def missing_choices(hint: Any, value: Any, path: Path = ()) -> Iterator[tuple[str, str]]:
    """Pairs of a key and what is wrong with it, where not exactly one of the keys of a choice is there."""
    for member, about in members_at(hint, value):
        partial = any(isinstance(meta, PartOf) for meta in about)
        choice = member.ONE_OF if isinstance(member, type) and issubclass(member, Settings) and not partial else {}
        if choice and sum(all(key in value for key in group) for group in choice) != 1:
            yield ".".join(path), _not_one_of(member, value)
    for key, inner, item in below(hint, value):
        if _has_choices(inner):
            yield from missing_choices(inner, item, (*path, key))


def _not_one_of(cls: Any, value: Mapping[str, Any]) -> str:
    """What was written of a choice of keys, and each way of writing it with what it means."""
    keys = dict.fromkeys(key for group in cls.ONE_OF for key in group)
    given = " and ".join(key for key in keys if key in value) or "none of these"
    meant = {group: re.split(r"[.;,]\s|\.$", sentences(cls)[group[0]])[0] for group in cls.ONE_OF}
    ways = "; or ".join(f"`{written}` ({meant[group]})" for group, written in cls.ONE_OF.items())
    return f"got {given}, expected exactly one of: {ways}"


@cache
def _has_choices(hint: Any) -> bool:
    """Whether a class with a choice of keys can stand somewhere below this type."""
    for member, about in metadata(hint):
        classes = [*(meta.settings for meta in about if isinstance(meta, PartOf)), member]
        for cls in classes:
            inner = hints_of(cls).values() if isinstance(cls, type) and is_dataclass(cls) else get_args(cls)
            if getattr(cls, "ONE_OF", ()) or any(_has_choices(part) for part in inner):
                return True
    return False


def key_paths(cls: type, path: Path = ()) -> Iterator[Path]:
    """The paths of all keys of a class of settings, at every depth."""
    for key, hint in hints_of(cls).items():
        yield (*path, key)
        for member in members_of(hint):
            if is_dataclass(member):
                yield from key_paths(member, (*path, key))  # type: ignore[arg-type]


@cache
def sentences(cls: type) -> dict[str, str]:
    """What stands below each field of a class of settings, those that it inherits included."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__[:-1]):
        body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0].body  # type: ignore[attr-defined]
        for field, below in pairwise(body):
            is_text = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and is_text:
                found[field.target.id] = inspect.cleandoc(str(below.value.value)).replace("\n", " ")
    return found
