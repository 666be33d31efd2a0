"""Overrides: a run states only what differs from its experiment."""

import copy
from collections.abc import Mapping
from typing import Any


def merged(base: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `overrides` laid over it, key by key at every depth; lists are replaced whole."""
    result = copy.deepcopy(dict(base))
    for key, value in overrides.items():
        if isinstance(value, Mapping) and isinstance(result.get(key), Mapping):
            result[key] = merged(result[key], value)
        else:
            result[key] = copy.deepcopy(value)
    return result


def pretraining_of(experiment: Mapping[str, Any], run: str) -> dict[str, Any]:
    """Pretraining settings of a run: the experiment's, with what the run changes."""
    return merged(experiment["pretraining"], experiment["runs"][run]["pretraining"])
