"""Settings as text: values by dotted key, shortened values, and the differences between the settings of two runs of a
stage.
"""

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
    """A setting that has changed: its dotted key, its old value and its new value.

    A value is None if the old or new settings lack the key. If entries of a list or mapping were added or removed and
    are only counted, both values are None, and `counts` is a text with the numbers of added and removed entries.
    """

    key: str
    old: str | None
    new: str | None
    counts: str = ""

    def __str__(self) -> str:
        if self.counts:
            return f"{self.key}: {self.counts}"
        old, new = ("(none)" if value is None else shorten(value) for value in (self.old, self.new))
        return f"{self.key.replace('stage_version', 'stage version')}: {old} -> {new}"


def flatten(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return all values of nested settings as text, by dotted key.

    If a value is a list of mappings, the dotted key identifies an entry of the list by its `name` or index.
    """
    return {key: _text(value) for key, value in _leaves("", settings)}


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
    """Return `text` on one line, truncated to `length` characters."""
    text = " ".join(text.split())
    return text if len(text) <= length else text[: length - 3].rstrip() + "..."


def described(settings: Mapping[str, Any]) -> list[str]:
    """Return a text `key: value` for each setting, with dotted keys; the name and version of the stage are left out."""
    return [f"{key}: {value}" for key, value in flatten(stage_body(settings)).items()]


def brief(settings: Mapping[str, Any]) -> list[str]:
    """Return a summary of settings: one text with all values that are neither mappings nor lists of mappings, and one
    text for each mapping or list of mappings.

    Empty values are left out, and long texts are shortened. If the entries of a list have names, only the names are
    listed.
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
    """Return the changes from the old to the new settings of a stage, in this order: the stage's version, other changed
    values, added or removed keys.

    Added and removed entries are only counted, not listed, in two cases: in a list whose entries have different names
    (key `name`), and in a nested mapping with more than `_FEW` added or removed values.
    """
    found = list(_compared("", old, new))
    found.sort(key=lambda one: (one.key != "stage_version", None in (one.old, one.new), one.new == "null"))
    return found


_FEW = 6
"""If at most this number of values of a mapping were added or removed, each value is listed."""


def _compared(prefix: str, old: Any, new: Any) -> Iterator[Difference]:
    before, after, named = _entries(old), _entries(new), _named(old) or _named(new)
    in_list = isinstance(old, list)
    if before is None or after is None or isinstance(old, list) != isinstance(new, list):
        values = [dict(_leaves(prefix, value)) for value in (old, new)]
        yield from _one_by_one(*values)
        return
    came, went = ([name for name in one if name not in other] for one, other in ((after, before), (before, after)))
    alone = [
        {key: text for name in names for key, text in _leaves(_key(prefix, name, in_list), entries[name])}
        for names, entries in ((went, before), (came, after))
    ]
    for name in sorted(before.keys() & after.keys()):
        yield from _compared(_key(prefix, name, in_list), before[name], after[name])
    if named or (prefix and sum(map(len, alone)) > _FEW):
        counts = [f"{len(names)} {what}" for names, what in ((came, "new"), (went, "gone")) if names]
        if counts:
            yield Difference(prefix, None, None, ", ".join(counts))
    else:
        yield from _one_by_one(*alone)


def _one_by_one(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    for key in sorted(before.keys() | after.keys()):
        was, now = (_text(side[key]) if key in side else None for side in (before, after))
        if was != now:
            yield Difference(key, was, now)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else canonical_json(value)


def _named(value: Any) -> bool:
    """Return True if a value is a list of mappings whose key `name` differs in all entries."""
    names = [entry.get("name") for entry in value] if _listed(value) else []
    return bool(names) and None not in names and len(set(names)) == len(names)


def _entries(value: Any) -> dict[str, Any] | None:
    """Return the entries of a mapping by key, or the entries of a list by name or index; None if the value is not
    nested.
    """
    if _named(value):
        return {str(entry["name"]): entry for entry in value}
    if _listed(value):
        return {str(number): entry for number, entry in enumerate(value)}
    if isinstance(value, Mapping):
        return dict(value)
    return {} if value == [] else None


def _key(prefix: str, name: str, in_list: bool) -> str:
    return f"{prefix}[{name}]" if in_list else f"{prefix}.{name}" if prefix else name
