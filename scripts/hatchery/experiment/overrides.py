"""Overrides: a run states only what differs from its experiment."""

import copy
from collections.abc import Mapping
from typing import Any

from hatchery.objectives.settings import DEFAULT_TASK

_INSTEAD_OF = {"warmup_steps": ("warmup_fraction", "warmup_steps_limit"), "warmup_fraction": ("warmup_steps",)}
"""Keys that take the place of others, which the base may have."""


def merged(base: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `overrides` laid over it, key by key at every depth; lists are replaced whole.

    So is an objective by one of another task, to which its keys mean nothing.
    """
    replaced = {other for key in overrides for other in _INSTEAD_OF.get(key, ())}
    result = copy.deepcopy({key: value for key, value in base.items() if key not in replaced})
    for key, value in overrides.items():
        if isinstance(value, Mapping) and isinstance(result.get(key), Mapping) and not _is_other(result[key], value):
            result[key] = merged(result[key], value)
        else:
            result[key] = copy.deepcopy(value)
    return result


def _is_other(base: Mapping[str, Any], value: Mapping[str, Any]) -> bool:
    return "task" in value and value["task"] != base.get("task", DEFAULT_TASK)
