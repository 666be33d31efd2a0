"""The base class of all settings classes, the ranges of numbers, and the error for invalid values.

The annotation of a field defines the allowed range. pydantic checks the range (`hatchery.typed`). `check_ranges` makes
the same check without pydantic, so that exported models, which contain their configuration class, do not need pydantic.
"""

import dataclasses
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, get_args, get_origin, get_type_hints

from hatchery.errors import ConfigError


class Settings:
    """Base of all settings classes. Unknown keys and values of a wrong type are errors; only a float may also be given
    as an integer.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid", "strict": True, "allow_inf_nan": False}


class RefusedError(ConfigError, ValueError):
    """Error for an invalid value. pydantic collects this error, like its own errors, if a settings class raises it."""

    def __init__(self, key: str, problem: str) -> None:
        self.key, self.problem = key, problem
        super().__init__(f"{key}: {problem}" if key else problem)


def refused(key: str, value: object, expected: str) -> RefusedError:
    """Return an error with the message "got <value>, expected <expected>" for a key."""
    return RefusedError(key, f"got {shortened(value)}, expected {expected}")


def conflict(key: str, value: object, other: str, reason: str) -> RefusedError:
    """Return an error with the message "got <value>, which cannot be combined with <other>, because <reason>"."""
    return RefusedError(key, f"got {shortened(value)}, which cannot be combined with {other}, because {reason}")


def require(condition: bool, key: str, value: object, expected: str) -> None:
    """Raise RefusedError for the value of a key if the condition is false."""
    if not condition:
        raise refused(key, value, expected)


def omitted_at_default(default: Any) -> Any:
    """Return a dataclass field that is left out of a stage's settings while its value equals `default`.

    A new field of this type does not change the digests of results that were computed before the field existed.
    """
    metadata = {"omitted_at_default": default}
    if isinstance(default, dict):
        return dataclasses.field(default_factory=default.copy, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def omitted_defaults(settings: Any) -> dict[str, Any]:
    """Return the default of every `omitted_at_default` field of a settings object or class, by key."""
    metadata = {field.name: field.metadata for field in dataclasses.fields(settings)}
    return {name: of["omitted_at_default"] for name, of in metadata.items() if "omitted_at_default" in of}


def dumped_values(settings: Any) -> dict[str, Any]:
    """Return the values of settings by key. `omitted_at_default` fields are left out if they have their default
    value.
    """
    values = {field.name: getattr(settings, field.name) for field in dataclasses.fields(settings)}
    omitted = omitted_defaults(settings)
    return {name: value for name, value in values.items() if name not in omitted or value != omitted[name]}


def shortened(value: Any) -> str:
    """Return the text of a value for a message, spelled as in YAML and truncated to 60 characters."""
    text = _spelled(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _spelled(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case dict():
            return f"{{{', '.join(f'{key!r}: {_spelled(inner)}' for key, inner in value.items())}}}"
        case list() | tuple():
            return f"[{', '.join(map(_spelled, value))}]"
        case Settings():
            return _spelled(_given_values(value))
    return repr(value)


def _given_values(settings: Any) -> dict[str, Any]:
    """Return the values of a settings object that differ from the defaults, by key."""
    values = {field.name: (getattr(settings, field.name), field.default) for field in dataclasses.fields(settings)}
    return {name: value for name, (value, default) in values.items() if value != default}


BOUNDS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "ge": ("at least", operator.ge),
    "gt": ("more than", operator.gt),
    "le": ("at most", operator.le),
    "lt": ("less than", operator.lt),
}
"""Words for each kind of bound in messages, and the operator that compares a value with the bound."""


@dataclass(frozen=True)
class Range:
    """Bounds of a number: ge means >=, gt means >, le means <=, lt means <."""

    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None

    @property
    def bounds(self) -> dict[str, float]:
        """Return the bounds that are not None, by kind of bound (`ge`, `gt`, `le` or `lt`)."""
        return {name: bound for name in BOUNDS if (bound := getattr(self, name)) is not None}

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return {**handler(source), **self.bounds}


Count = Annotated[int, Range(ge=1)]
Natural = Annotated[int, Range(ge=0)]
Positive = Annotated[float, Range(gt=0)]
NonNegative = Annotated[float, Range(ge=0)]
Share = Annotated[float, Range(ge=0, le=1)]
ShareAboveZero = Annotated[float, Range(gt=0, le=1)]
ShareBelowOne = Annotated[float, Range(ge=0, lt=1)]

ReadingName = Literal["as_published", "corrected"]
"""Version of a computation: `as_published` reproduces the errors of published code, and `corrected` fixes these errors.
Each field of this type describes its errors.
"""

DeviceName = Literal["auto", "cpu", "cuda"]
"""Device of the models; `auto` uses a GPU if one is available."""

Compilation = Literal["layers", "off"]
CompilationChoice = Literal["auto", "layers", "off"]
"""Choice of compilation with torch.compile for the layers. `auto` compiles on a GPU if the job is long enough."""


@cache
def _ranges(cls: type) -> dict[str, Range]:
    hints = get_type_hints(cls, include_extras=True)
    members = [(name, member) for name, hint in hints.items() for member in (hint, *get_args(hint))]
    metas = [(name, meta) for name, member in members if get_origin(member) is Annotated for meta in get_args(member)]
    return {name: meta for name, meta in metas if isinstance(meta, Range)}


def check_ranges(settings: Any) -> None:
    """Raise RefusedError if a number in `settings` is outside of its range, or not finite; types are not checked."""
    cls: Any = type(settings)
    ranges = _ranges(cls)
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if field.name in ranges and value is not None:
            require(math.isfinite(value), field.name, value, "a number")
            for name, bound in ranges[field.name].bounds.items():
                text, holds = BOUNDS[name]
                require(holds(value, bound), field.name, value, f"{text} {bound:g}")
