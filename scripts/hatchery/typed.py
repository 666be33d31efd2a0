"""Converts dictionaries to settings objects and back. The same class validates a configuration file and reads the
settings of a job.

A stage receives exactly the keys that its settings class declares, so every key in the settings is used. If the class
declares floats, integers are converted to floats. If the class declares tuples, lists are converted to tuples. If the
class declares a `ShortNumber`, texts such as `100M` are converted to integers. There are no other conversions. All
problems of keys and types are reported at once. Combinations of values are only checked if each single value is valid.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_args, get_origin

from hatchery.errors import ConfigError
from hatchery.settings.base import Settings, dumped_values, omitted_defaults, shortened
from hatchery.settings.fields import ABSENT, PartOf, Reference, hints_of, markers_of, members_of
from hatchery.settings.problems import problem_lines

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Built = TypeVar("Built")


def stage_body(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings of a stage without the keys `stage` and `stage_version`, which only identify the stage."""
    return {key: value for key, value in settings.items() if key not in ("stage", "stage_version")}


def build(cls: type[Built], mapping: Mapping[str, Any], where: str = "") -> Built:
    """Return settings of the class `cls` with the values of `mapping`. For messages, `where` is the key at which
    `mapping` is in the configuration.

    Raises ConfigError with one line per problem, which states the key, the value and the allowed values.
    """
    return _built(cls, mapping, where, ".")


def validated(cls: type[Built], document: Mapping[str, Any], where: str | Callable[[str], str]) -> Built:
    """Return settings of the class `cls` with the values of `document`, which is the content of a file or a part of it.

    For messages, `where` is the file, or a function that returns file and key path for a key such as `compute.device`.
    Raises ConfigError as `build` does.
    """
    return _built(cls, document, where, ": ")


def _built(cls: Any, mapping: Any, where: str | Callable[[str], str], separator: str) -> Any:
    from pydantic import ValidationError

    place = where if callable(where) else lambda key: where
    if not isinstance(mapping, Mapping):
        raise ConfigError(f"{place('') or cls.__name__}: got {shortened(mapping)}, expected keys with values")
    text = json.dumps(mapping, default=plain)
    try:
        return adapter(cls).validate_json(text)
    except ValidationError as error:
        problems = problem_lines(error, cls, json.loads(text))
    lines = (f"{separator.join(part for part in (place(key), key) if part)}: {problem}" for key, problem in problems)
    raise ConfigError("\n".join(line.removeprefix(": ") for line in lines))


@cache
def adapter(cls: Any) -> "TypeAdapter[Any]":
    """Return pydantic's validator of a settings class. The first call imports pydantic."""
    from pydantic import TypeAdapter

    if isinstance(cls, type) and not issubclass(cls, Settings):
        raise TypeError(f"{cls.__name__}: expected a subclass of Settings, because other classes accept unknown keys")
    return TypeAdapter(cls)


def keys_of(settings: Any, *without: str, only: type | None = None) -> dict[str, Any]:
    """Return the keys and values of a settings object, without optional keys that are not set.

    The keys `without`, and `omitted_at_default` keys with their default value, are also left out. If `only` is a
    settings class, only keys of this class are returned.
    """
    known = {field.name for field in fields(settings if only is None else only)} - set(without)
    return {key: value for key, value in dumped_values(settings).items() if key in known and value is not ABSENT}


def without_defaults(cls: type, mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings in `mapping` without those `omitted_at_default` keys of the class `cls` that have their
    default value.
    """
    omitted = plain(omitted_defaults(cls))
    return {key: value for key, value in mapping.items() if key not in omitted or plain(value) != omitted[key]}


def plain(value: Any) -> Any:
    """Return a settings value as a JSON value: objects become dictionaries, and absent keys are left out."""
    if is_dataclass(value):
        return {key: plain(item) for key, item in keys_of(value).items()}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items() if item is not ABSENT}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


class Named(NamedTuple):
    """A name that occurs in settings, and the key at which it occurs.

    `name` is the name of a configuration file, and `kind` is the kind of the file; or `name` is the name of a raw input
    in config.yaml, and `kind` is DATA. `inherited` is True if the key is `base`: then the named file only supplies
    defaults.
    """

    kind: str
    name: str
    key: str
    inherited: bool = False


def references(value: Any, hint: Any = None, path: tuple[str, ...] = ()) -> Iterator[Named]:
    """Yield the names of configuration files and raw inputs that occur in settings, in the order of the keys.

    If a name is in a list, or is a key of a mapping, the field `key` of the yielded `Named` is the key of the list or
    mapping.
    """
    if isinstance(value, str):
        for meta in markers_of(hint, Reference):
            yield Named(meta.kind, value, ".".join(path), meta.inherited)
    elif is_dataclass(value):
        for key, inner in hints_of(type(value)).items():  # type: ignore[arg-type]
            yield from references(getattr(value, key), inner, (*path, key))
    elif isinstance(value, Mapping):
        parts = [hints_of(meta.settings) for meta in markers_of(hint, PartOf)]
        named, inner = _arguments(hint, dict)
        for key in value:
            yield from references(key, named, path)
        for key, item in value.items():
            yield from references(item, parts[0][key] if parts else inner, (*path, key))
    elif isinstance(value, tuple):
        inner = _arguments(hint, tuple)[0]
        for index, item in enumerate(value):
            yield from references(item, inner, path if markers_of(inner, Reference) else (*path, str(index)))


@cache
def _arguments(hint: Any, origin: type) -> tuple[Any, ...]:
    """Return the type arguments of a dict type or tuple type in the union `hint`; `origin` is `dict` or `tuple`."""
    return next((get_args(member) for member in members_of(hint) if get_origin(member) is origin), (Any, Any))
