"""Strict construction of settings dataclasses from plain dictionaries.

The JSON Schema of the configuration checks what users write; this is the second gate, at the seam between a rule
and a command: a stage gets exactly the keys that its dataclass declares, so a slice can neither rot nor carry
keys that nobody reads.
"""

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from hatchery.errors import ConfigError

Settings = TypeVar("Settings")


def stage_body(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a stage without the keys that only identify it (`stage`, `stage_version`)."""
    return {key: value for key, value in settings.items() if key not in ("stage", "stage_version")}


def build(cls: type[Settings], mapping: Mapping[str, Any], where: str = "") -> Settings:
    """Build the dataclass `cls` from `mapping`, recursively.

    Fields may be scalars, `Literal`, `X | None`, `tuple[X, ...]`, `list[X]`, `dict[str, X]`, `Any` or dataclasses.
    An integer is accepted for a float. Raises ConfigError naming the key for an unknown or missing key or a value
    of the wrong type.
    """
    if not isinstance(mapping, Mapping):
        raise ConfigError(f"{where or cls.__name__}: expected a mapping, got {mapping!r}")
    fields = {field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    hints = typing.get_type_hints(cls)
    values: dict[str, Any] = {}
    for key, value in mapping.items():
        if key not in fields:
            raise ConfigError(f"{_join(where, key)}: unknown key; allowed are: {', '.join(sorted(fields))}")
        values[key] = _convert(hints[key], value, _join(where, key))
    for name, field in fields.items():
        has_default = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
        if name not in values and not has_default:
            raise ConfigError(f"{_join(where, name)}: the key is missing")
    return cls(**values)


def _join(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key


def _convert(hint: Any, value: Any, where: str) -> Any:
    origin = typing.get_origin(hint)
    arguments = typing.get_args(hint)
    if hint is Any:
        return value
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        candidates = [argument for argument in arguments if argument is not type(None)]
        for candidate in candidates[:-1]:
            try:
                return _convert(candidate, value, where)
            except ConfigError:
                continue
        return _convert(candidates[-1], value, where)
    if origin is typing.Literal:
        if value not in arguments:
            raise ConfigError(f"{where}: got {value!r}, allowed are: {', '.join(map(str, arguments))}")
        return value
    if origin in (tuple, list):
        if not isinstance(value, list | tuple):
            raise ConfigError(f"{where}: expected a list, got {value!r}")
        return origin(_convert(arguments[0], item, f"{where}[{index}]") for index, item in enumerate(value))
    if origin is dict:
        if not isinstance(value, Mapping):
            raise ConfigError(f"{where}: expected a mapping, got {value!r}")
        return {str(key): _convert(arguments[1], item, _join(where, str(key))) for key, item in value.items()}
    if dataclasses.is_dataclass(hint):
        return build(typing.cast(type, hint), value, where)
    return _scalar(hint, value, where)


def _scalar(hint: type, value: Any, where: str) -> Any:
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        raise ConfigError(f"{where}: expected {hint.__name__}, got {value!r}")
    return value
