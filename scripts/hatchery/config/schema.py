"""Validation against JSON Schema: all problems, one line each, and defaults filled in.

The schemas in `workflow/schemas/` are the single place where keys, types, ranges and defaults are written down;
editors read them too. A property marked `x-partial: true` holds overrides: it is checked, but not filled with
defaults.
"""

import copy
import difflib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from hatchery.config.yaml_files import read_yaml
from hatchery.errors import ConfigError

SCHEMAS = Path(__file__).resolve().parents[3] / "workflow" / "schemas"
WITH_SWEEP = {"$ref": "#/$defs/with_sweep"}
TYPE_NAMES = {
    "integer": "a whole number",
    "number": "a number",
    "string": "text",
    "boolean": "true or false",
    "array": "a list",
    "object": "keys with values",
    "null": "null",
}


@cache
def schema(name: str) -> dict[str, Any]:
    """The JSON Schema called `name`. Raises ConfigError when it is not a valid schema."""
    value = _without_sweeps(_with_other_files(read_yaml(SCHEMAS / f"{name}.schema.yaml")))
    Draft202012Validator.check_schema(value)
    return value


def _with_other_files(rules: Any) -> Any:
    """The rules with `$ref: <name>.schema.yaml` replaced by that schema; what stands beside the reference wins."""
    if isinstance(rules, list):
        return [_with_other_files(item) for item in rules]
    if not isinstance(rules, dict):
        return rules
    rules = {key: _with_other_files(value) for key, value in rules.items()}
    name, suffix, _ = str(rules.get("$ref", "")).partition(".schema.yaml")
    if not suffix:
        return rules
    own = {key: value for key, value in rules.items() if key != "$ref"}
    return {**{key: value for key, value in schema(name).items() if key != "$schema"}, **own}


def _without_sweeps(rules: Any) -> Any:
    """The rules without the choice of a sweep, which is there for editors: what is validated has none any more."""
    if isinstance(rules, list):
        return [_without_sweeps(item) for item in rules]
    if not isinstance(rules, dict):
        return rules
    rules = {key: _without_sweeps(value) for key, value in rules.items()}
    choices = rules.get("anyOf")
    if isinstance(choices, list) and WITH_SWEEP in choices:
        rest = [choice for choice in choices if choice != WITH_SWEEP]
        return {**{key: value for key, value in rules.items() if key != "anyOf"}, **rest[0]}
    return rules


def validate(document: dict[str, Any], schema_name: str, where: str) -> dict[str, Any]:
    """Check `document` and return a deep copy with all defaults filled in.

    Raises ConfigError with one line per problem: `where`, the key, what was given, what is allowed.
    """
    rules = schema(schema_name)
    errors = sorted(
        Draft202012Validator(rules).iter_errors(document), key=lambda e: [str(part) for part in e.absolute_path]
    )
    if errors:
        raise ConfigError("\n".join(line for error in errors for line in _explain(error, where)))
    filled = copy.deepcopy(document)
    _fill(filled, rules, rules)
    return filled


def with_defaults(value: dict[str, Any], schema_name: str, definition: str) -> dict[str, Any]:
    """A deep copy of `value`, which is valid, with the defaults of a definition (`$defs`) of a schema filled in."""
    rules = schema(schema_name)
    filled = copy.deepcopy(value)
    _fill(filled, rules["$defs"][definition], rules)
    return filled


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the known word nearest to `word`, or nothing when none is near."""
    matches = difflib.get_close_matches(str(word), sorted(known), n=1, cutoff=0.6)
    return f"; did you mean {matches[0]!r}?" if matches else ""


def _explain(error: ValidationError, where: str) -> list[str]:
    path = ".".join(str(part) for part in error.absolute_path)
    match error.validator:
        case "additionalProperties" if error.validator_value is False:
            known = _known_keys(error)
            unknown = sorted(set(error.instance) - set(known))
            return [
                f"{where}: {_key(path, key)}: unknown key; allowed are: {', '.join(known)}{nearest(key, known)}"
                for key in unknown
            ]
        case "required":
            missing = sorted(set(error.validator_value) - set(error.instance))
            return [f"{where}: {_key(path, key)}: the key is missing" for key in missing]
        case "enum":
            allowed = [str(value) for value in error.validator_value]
            hint = nearest(error.instance, allowed) if isinstance(error.instance, str) else ""
            return [f"{where}: {path}: got {_shown(error.instance)}, allowed are: {', '.join(allowed)}{hint}"]
        case "type":
            wanted = error.validator_value if isinstance(error.validator_value, list) else [error.validator_value]
            names = " or ".join(TYPE_NAMES[name] for name in wanted)
            return [f"{where}: {path or '(top level)'}: got {_shown(error.instance)}, expected {names}"]
        case "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum":
            words = {
                "minimum": "at least",
                "maximum": "at most",
                "exclusiveMinimum": "more than",
                "exclusiveMaximum": "less than",
            }
            bound = f"{words[error.validator]} {error.validator_value}"
            return [f"{where}: {path}: got {_shown(error.instance)}, expected {bound}"]
        case "pattern" | "propertyNames":
            return [f"{where}: {path}: {error.message}"]
        case "minItems" | "minProperties":
            return [f"{where}: {path}: expected at least {error.validator_value} entries, got {len(error.instance)}"]
        case "oneOf" | "anyOf" if all("required" in option for option in error.validator_value):
            choices = " or ".join(", ".join(option["required"]) for option in error.validator_value)
            return [f"{where}: {path}: expected exactly one of the keys {choices}"]
        case _:
            return [f"{where}: {path or '(top level)'}: {error.message.splitlines()[0]}"]


def _known_keys(error: ValidationError) -> list[str]:
    return sorted(error.schema.get("properties", {}))


def _key(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _resolve(rules: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    reference = rules.get("$ref")
    if reference is None:
        return rules
    target: Any = root
    for part in reference.removeprefix("#/").split("/"):
        target = target[part]
    return {**target, **{key: value for key, value in rules.items() if key != "$ref"}}


def _fill(value: Any, rules: dict[str, Any], root: dict[str, Any]) -> None:
    """Fill defaults into `value` in place; each default is copied, so that siblings never share one object."""
    rules = _resolve(rules, root)
    if rules.get("x-partial"):
        return
    if isinstance(value, dict):
        for key, sub in rules.get("properties", {}).items():
            resolved = _resolve(sub, root)
            if key not in value and "default" in resolved:
                value[key] = copy.deepcopy(resolved["default"])
            if key in value:
                _fill(value[key], sub, root)
        extra = rules.get("additionalProperties")
        if isinstance(extra, dict):
            for key in value.keys() - rules.get("properties", {}).keys():
                _fill(value[key], extra, root)
        for branch in rules.get("allOf", []):
            if "if" in branch and Draft202012Validator({**branch["if"], "$defs": root.get("$defs", {})}).is_valid(
                value
            ):
                _fill(value, branch.get("then", {}), root)
    elif isinstance(value, list) and isinstance(rules.get("items"), dict):
        for item in value:
            _fill(item, rules["items"], root)
