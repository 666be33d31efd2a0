"""What the tidy tables and a run card read from a pretraining run: its curve of losses and its layer weights.

Both are outputs of the `pretrain` stage. Nothing is read that the run's manifest does not vouch for.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hatchery.errors import EvaluationError
from hatchery.storage.manifests import Manifest

METRICS_FILE = "metrics.jsonl"
LAYER_WEIGHTS_FILE = "layer_weights.json"
CONFIG_FILE = "config.json"


@dataclass(frozen=True)
class CurvePoint:
    """Losses (natural logarithm, per masked token) after `step` optimiser steps and `tokens` tokens."""

    step: int
    tokens: int
    loss: float | None
    development_loss: float | None
    development_perplexity: float | None


@dataclass(frozen=True)
class LayerWeights:
    """Scaled weights n x alpha by (consuming layer n, producing layer i), n from 1 and i from 0, the embedding.

    `plain` says that the model has no layer weighting: every layer reads the sum of all outputs below it, each with
    weight 1. Consumer `layers` + 1, where there is one, is what the heads read.
    """

    layers: int
    plain: bool
    scaled: dict[tuple[int, int], float]


def metric_rows(manifest: Manifest) -> list[dict[str, Any]]:
    """The rows of `metrics.jsonl`; none when the model was not trained (0 steps).

    Raises EvaluationError naming file and line for a row that is not an object of finite numbers, or whose step does
    not come after the one before.
    """
    path = manifest.file(METRICS_FILE)
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(_read_text(path).splitlines(), start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise EvaluationError(f"{where}: not JSON: {error}") from error
        if not isinstance(row, dict):
            raise EvaluationError(f"{where}: expected an object, got {type(row).__name__}")
        for key in ("step", "tokens"):
            _number(row, key, where)
        for key in row:
            _optional(row, key, where)
        if rows and row["step"] <= rows[-1]["step"]:
            raise EvaluationError(f"{where}: step {row['step']} does not come after step {rows[-1]['step']}")
        rows.append(row)
    return rows


def read_layer_weights(manifest: Manifest) -> LayerWeights:
    """The layer weights of a model, from `config.json` and, where it has layer weighting, `layer_weights.json`.

    Raises EvaluationError naming the file when it is not such a table, or repeats or lacks a pair of layers.
    """
    path = manifest.file(CONFIG_FILE)
    try:
        config = json.loads(_read_text(path))
        layers, plain = int(config["num_hidden_layers"]), config["layer_weighting"] == "none"
    except (ValueError, KeyError, TypeError) as error:
        raise EvaluationError(f"{path}: not the configuration of a model: {type(error).__name__}: {error}") from error
    if plain:
        return LayerWeights(layers, True, {(n, i): 1.0 for n in range(1, layers + 1) for i in range(n)})
    path = manifest.file(LAYER_WEIGHTS_FILE)
    scaled = _scaled_weights(path)
    consumers = max(max(scaled)[0], layers)
    if missing := sorted({(n, i) for n in range(1, consumers + 1) for i in range(n)} - set(scaled)):
        raise EvaluationError(f"{path}: the weight of layer {missing[0][1]} for layer {missing[0][0]} is missing")
    if consumers > layers + 1:
        raise EvaluationError(f"{path}: layer {consumers} consumes, but the model has {layers} layers")
    return LayerWeights(layers, False, scaled)


def _scaled_weights(path: Path) -> dict[tuple[int, int], float]:
    try:
        rows = json.loads(_read_text(path))["rows"]
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise EvaluationError(f'{path}: expected an object with "rows": {type(error).__name__}: {error}') from error
    if not isinstance(rows, list) or not rows:
        raise EvaluationError(f"{path}: there are no rows of layer weights")
    weights: dict[tuple[int, int], float] = {}
    for index, row in enumerate(rows):
        where = f"{path}, row {index}"
        if not isinstance(row, dict):
            raise EvaluationError(f"{where}: expected an object, got {type(row).__name__}")
        pair = (int(_number(row, "consuming_layer", where)), int(_number(row, "producing_layer", where)))
        if not 0 <= pair[1] < pair[0]:
            raise EvaluationError(f"{where}: layer {pair[0]} cannot consume the output of layer {pair[1]}")
        if pair in weights:
            raise EvaluationError(f"{where}: the weight of layer {pair[1]} for layer {pair[0]} is given twice")
        weights[pair] = _number(row, "scaled_weight", where)
    return weights


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise EvaluationError(f"{path}: the file cannot be read: {error}") from error


def _number(row: dict[str, Any], key: str, where: str) -> float:
    value = row.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise EvaluationError(f"{where}: {key} is {value!r}, expected a finite number")
    return float(value)


def _optional(row: dict[str, Any], key: str, where: str) -> float | None:
    return None if row.get(key) is None else _number(row, key, where)
