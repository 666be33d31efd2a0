"""What a schema finds wrong, in words for the person who wrote the file: one line for each problem, each once.

A pattern is never shown: the schema says in words, under `x-expected` beside it, what it stands for.
"""

import difflib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from jsonschema.exceptions import ValidationError

TYPE_NAMES = {
    "integer": "a whole number",
    "number": "a number",
    "string": "text",
    "boolean": "true or false",
    "array": "a list",
    "object": "keys with values",
    "null": "null",
}
_BOUNDS = {
    "minimum": "at least",
    "maximum": "at most",
    "exclusiveMinimum": "more than",
    "exclusiveMaximum": "less than",
}
_MOST = {"minItems": "at least", "minProperties": "at least", "maxItems": "at most", "maxProperties": "at most"}


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the known word nearest to `word`, or nothing when none is near."""
    matches = difflib.get_close_matches(str(word), sorted(known), n=1, cutoff=0.6)
    return f"; did you mean {matches[0]!r}?" if matches else ""


def problem_lines(errors: Iterable[ValidationError], where: str) -> list[str]:
    """One line for each problem, in the order of the errors: the file, the key, what was given, what is expected."""
    found: dict[str, None] = {}
    for error in errors:
        path = ".".join(str(part) for part in error.absolute_path)
        for key, words in _explain(error):
            place = ".".join(part for part in (path, key) if part)
            found.setdefault(": ".join(part for part in (where, place, words) if part))
    return list(found)


def _explain(error: ValidationError) -> list[tuple[str, str]]:
    """Pairs of a key below the error's place ("" for the place itself) and what is wrong with it."""
    value, wanted = error.instance, error.validator_value
    match error.validator:
        case "additionalProperties" if wanted is False:
            known = sorted(error.schema.get("properties", {}))
            unknown = sorted(set(value) - set(known), key=str)
            return [(key, f"unknown key; allowed are: {', '.join(known)}{nearest(key, known)}") for key in unknown]
        case "required":
            return [(key, "the key is missing") for key in sorted(set(wanted) - set(value))]
        case "enum":
            allowed = [_word(item) for item in wanted]
            hint = nearest(value, allowed) if isinstance(value, str) else ""
            return [("", f"got {shown(value)}, allowed are: {', '.join(allowed)}{hint}")]
        case "minItems" | "minProperties" | "maxItems" | "maxProperties":
            entries = "entry" if wanted == 1 else "entries"
            return [("", f"expected {_MOST[error.validator]} {wanted} {entries}, got {len(value)}")]
        case "uniqueItems":
            twice = next((item for item in value if value.count(item) > 1), value)
            return [("", f"got {shown(twice)} more than once, expected each entry once")]
        case "oneOf" | "anyOf" if all("required" in option for option in wanted):
            choices = " or ".join(", ".join(option["required"]) for option in wanted)
            return [("", f"expected exactly one of the keys {choices}")]
        case "pattern" if "propertyNames" in error.absolute_schema_path:
            return [("", f"got the name {shown(value)}, expected {_expected(error.schema)}")]
    return [("", f"got {shown(value)}, expected {_expected({error.validator: wanted}, error.schema)}")]


def _expected(rules: Mapping[str, Any], around: Mapping[str, Any] | None = None) -> str:
    """What a schema asks for, in words; `around` is the schema whose rule was broken, if `rules` is that rule alone."""
    if "pattern" in rules:
        return str((around or rules).get("x-expected", "text of another form"))
    if "enum" in rules:
        return " or ".join(_word(item) for item in rules["enum"])
    if "const" in rules:
        return _word(rules["const"])
    if "minLength" in rules:
        return "text that is not empty"
    kinds = rules.get("type", [])
    types = " or ".join(TYPE_NAMES[kind] for kind in (kinds if isinstance(kinds, list) else [kinds]))
    bounds = " and ".join(f"{words} {rules[bound]}" for bound, words in _BOUNDS.items() if bound in rules)
    if types or bounds:
        return " ".join(part for part in (types, bounds) if part)
    options = [option for key in ("anyOf", "oneOf") for option in rules.get(key, ())]
    return " or ".join(_expected(option) for option in options) or "another value"


def _word(value: Any) -> str:
    """A value as YAML spells it."""
    return json.dumps(value) if value is None or isinstance(value, bool) else str(value)


def shown(value: Any) -> str:
    """A value of a file, cut so that a message stays one readable line."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
