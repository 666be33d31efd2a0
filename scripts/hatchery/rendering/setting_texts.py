"""Settings as words: nested values as dotted keys, long ones shortened, and what differs between two of them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hatchery.artifacts.checksums import canonical_json
from hatchery.typed import stage_body

VALUE_LENGTH = 60
GROUP_LENGTH = 480
_EMPTY: tuple[Any, ...] = (None, "", [], {})


@dataclass(frozen=True)
class Difference:
    """A setting that changed; None on a side that does not have it."""

    key: str
    old: str | None
    new: str | None

    def __str__(self) -> str:
        old, new = ("(none)" if value is None else shorten(value) for value in (self.old, self.new))
        return f"{self.key.replace('stage_version', 'stage version')}: {old} -> {new}"


def flatten(settings: Mapping[str, Any]) -> dict[str, str]:
    """Every value under its dotted key, as text; entries of lists of objects are called by their `name` or number."""
    return {key: text if isinstance(text, str) else canonical_json(text) for key, text in _leaves("", settings)}


def _leaves(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _leaves(f"{prefix}.{key}" if prefix else str(key), inner)
    elif _listed(value):
        names = [str(entry.get("name", number)) for number, entry in enumerate(value)]
        unique = len(set(names)) == len(names)
        for number, entry in enumerate(value):
            yield from _leaves(f"{prefix}[{names[number] if unique else number}]", entry)
    else:
        yield prefix, value


def shorten(text: str, length: int = VALUE_LENGTH) -> str:
    """`text` in one line of at most `length` characters."""
    text = " ".join(text.split())
    return text if len(text) <= length else text[: length - 3].rstrip() + "..."


def described(settings: Mapping[str, Any]) -> list[str]:
    """`key: value` for every single setting under its dotted key, complete, without stage and version."""
    return [f"{key}: {value}" for key, value in flatten(stage_body(settings)).items()]


def brief(settings: Mapping[str, Any]) -> list[str]:
    """The same for a quick look: single values together, then a text for each group; empty and long ones cut short.

    Of a list of named things only the names are told.
    """
    single: list[str] = []
    groups: list[str] = []
    for key, value in stage_body(settings).items():
        if value in _EMPTY:
            continue
        (groups if isinstance(value, Mapping) or _listed(value) else single).append(f"{key}: {_flow(value)}")
    return [*(["; ".join(single)] if single else []), *(shorten(group, GROUP_LENGTH) for group in groups)]


def _listed(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(entry, Mapping) for entry in value)


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_inner(inner)}" for key, inner in value.items() if inner not in _EMPTY)
    if _listed(value):
        names = [str(entry.get("name", "")) for entry in value]
        return ", ".join(names) if all(names) else f"{len(value)} entries"
    return shorten(value if isinstance(value, str) else canonical_json(value))


def _inner(value: Any) -> str:
    text = _flow(value)
    return f"({text})" if isinstance(value, Mapping) else text


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Difference]:
    """What changed from `old` to `new`: the stage's version, then other values, then keys that came or went."""
    before, after = flatten(old), flatten(new)
    keys = [key for key in sorted(before.keys() | after.keys()) if before.get(key) != after.get(key)]
    keys.sort(key=lambda key: (key != "stage_version", key not in before or key not in after, after.get(key) == "null"))
    return [Difference(key, before.get(key), after.get(key)) for key in keys]
