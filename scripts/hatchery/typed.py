"""Settings from plain dictionaries, and back: the same class validates a file and reads the settings of a job.

A stage gets exactly the keys that its class declares, so a slice can neither rot nor carry keys that nobody reads. An
integer is accepted for a float, and is one then; nothing else is taken for what it is not. All problems are told at
once.
"""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from hatchery.errors import ConfigError
from hatchery.settings.base import Settings, is_said, shown
from hatchery.settings.fields import ABSENT
from hatchery.settings.problems import problem_lines
from hatchery.settings.walk import missing_choices

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Built = TypeVar("Built")


def stage_body(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings of a stage without the keys that only identify it (`stage`, `stage_version`)."""
    return {key: value for key, value in settings.items() if key not in ("stage", "stage_version")}


def build(cls: type[Built], mapping: Mapping[str, Any], where: str = "") -> Built:
    """The settings of this class in `mapping`; `where` is the key that it stands at.

    Raises ConfigError with a line for each problem: the key, what was given, what is allowed.
    """
    return _built(cls, mapping, where, ".")


def validated(cls: type[Built], document: Mapping[str, Any], where: str) -> Built:
    """The settings in the keys of the file `where`, or of a part of it. Raises ConfigError like `build`."""
    return _built(cls, document, where, ": ")


def _built(cls: Any, mapping: Any, where: str, separator: str) -> Any:
    from pydantic import ValidationError

    if not isinstance(mapping, Mapping):
        raise ConfigError(f"{where or cls.__name__}: got {shown(mapping)}, expected keys with values")
    problems: list[tuple[str, str]] = []
    built, text = None, json.dumps(mapping, default=plain)
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


def keys_of(settings: Any, *without: str, of: type | None = None) -> dict[str, Any]:
    """The keys that settings have, with their values, apart from some; only those that the class `of` has, too."""
    known = {field.name for field in fields(settings if of is None else of)} - set(without)
    said = (field for field in fields(settings) if field.name in known and is_said(settings, field))
    named = ((field.name, getattr(settings, field.name)) for field in said)
    return {key: value for key, value in named if value is not ABSENT}


def plain(value: Any) -> Any:
    """A value of settings as JSON has it: keys instead of classes."""
    if is_dataclass(value):
        return {key: plain(item) for key, item in keys_of(value).items()}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
