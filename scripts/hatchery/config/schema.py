"""Validation against JSON Schema: all problems, one line each, and defaults filled in.

The schemas in `workflow/schemas/` are the single place where keys, types, ranges and defaults are written down;
editors read them too. A property marked `x-partial: true` holds overrides: it is checked, but not filled with
defaults.
"""

import copy
import math
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.validators import extend

from hatchery.config.schema_messages import nearest, problem_lines
from hatchery.errors import ConfigError
from hatchery.storage.yaml_files import read_yaml

__all__ = ["SCHEMAS", "nearest", "schema", "validate"]

SCHEMAS = Path(__file__).resolve().parents[3] / "workflow" / "schemas"
WITH_SWEEP = {"$ref": "#/$defs/with_sweep"}


def _is_finite_number(checker: Any, value: Any) -> bool:
    # `--config learning_rate=.inf` comes past our reader of YAML; no JSON could hold the value.
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and (isinstance(value, int) or math.isfinite(value))


_Validator = extend(
    Draft202012Validator, type_checker=Draft202012Validator.TYPE_CHECKER.redefine("number", _is_finite_number)
)


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
    errors = sorted(_Validator(rules).iter_errors(document), key=lambda e: [str(part) for part in e.absolute_path])
    if errors:
        raise ConfigError("\n".join(problem_lines(errors, where)))
    filled = copy.deepcopy(document)
    _fill(filled, rules, rules)
    return filled


def with_defaults(value: dict[str, Any], schema_name: str, definition: str) -> dict[str, Any]:
    """A deep copy of `value`, which is valid, with the defaults of a definition (`$defs`) of a schema filled in."""
    rules = schema(schema_name)
    filled = copy.deepcopy(value)
    _fill(filled, rules["$defs"][definition], rules)
    return filled


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
