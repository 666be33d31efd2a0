"""Settings from plain dictionaries: the same class validates a file of the configuration and reads a stage's settings.

A stage gets exactly the keys that its class declares, so a slice can neither rot nor carry keys that nobody reads. An
integer is accepted for a float; nothing else is taken for what it is not. All problems are told at once.
"""

import copy
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from hatchery.errors import ConfigError
from hatchery.settings.base import Settings, shown
from hatchery.settings.fields import ABSENT
from hatchery.settings.problems import problem_lines
from hatchery.settings.walk import missing_choices

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Built = TypeVar("Built")
_MISSING = object()


def stage_body(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a stage without the keys that only identify it (`stage`, `stage_version`)."""
    return {key: value for key, value in settings.items() if key not in ("stage", "stage_version")}


def build(cls: type[Built], mapping: Mapping[str, Any], where: str = "") -> Built:
    """The settings of this class in `mapping`; `where` is the key that it stands at.

    Raises ConfigError with a line for each problem: the key, what was given, what is allowed.
    """
    return _built(cls, mapping, where, ".")


def validated(cls: Any, document: Mapping[str, Any], where: str) -> dict[str, Any]:
    """A copy of the keys of the file `where`, as they are written, with all defaults of the class filled in.

    Raises ConfigError like `build`.
    """
    return filled(_built(cls, document, where, ": "), document)


def _built(cls: Any, mapping: Any, where: str, separator: str) -> Any:
    from pydantic import ValidationError

    if not isinstance(mapping, Mapping):
        raise ConfigError(f"{where or cls.__name__}: got {shown(mapping)}, expected keys with values")
    problems: list[tuple[str, str]] = []
    built, text = None, json.dumps(mapping, default=_plain)
    try:
        built = adapter(cls).validate_json(text)
    except ValidationError as error:
        problems = problem_lines(error, cls, json.loads(text))
    problems += missing_choices(cls, mapping)
    if problems:
        lines = (f"{separator.join(part for part in (where, key) if part)}: {words}" for key, words in problems)
        raise ConfigError("\n".join(line.removeprefix(": ") for line in lines))
    return built


@cache
def adapter(cls: Any) -> "TypeAdapter[Any]":
    """What validates a class of settings; importing pydantic waits for the first one."""
    from pydantic import TypeAdapter

    if isinstance(cls, type) and not issubclass(cls, Settings):
        raise TypeError(f"{cls.__name__} is no class of Settings: it would take what it does not know")
    return TypeAdapter(cls)


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"settings hold {type(value).__name__}, expected values of JSON")


def filled(value: Any, written: Any = _MISSING) -> Any:
    """A value of settings as plain dictionaries and lists, as it was written where it was: 1 is not made 1.0."""
    if is_dataclass(value):
        given = written if isinstance(written, Mapping) else {}
        named = {field.name: getattr(value, field.name) for field in fields(value)}
        return {key: filled(item, given.get(key, _MISSING)) for key, item in named.items() if item is not ABSENT}
    if isinstance(value, Mapping):
        given = written if isinstance(written, Mapping) else {}
        return {key: filled(item, given.get(key, _MISSING)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = written if isinstance(written, list | tuple) else [_MISSING] * len(value)
        return [filled(item, given) for item, given in zip(value, items, strict=True)]
    return copy.deepcopy(value if written is _MISSING else written)
