"""What the tidy tables read from a pretraining run: its curve of losses and its layer weights.

Both are outputs of the `pretrain` stage. Nothing is read that the run's manifest does not vouch for.
"""

from dataclasses import dataclass, make_dataclass
from typing import Annotated, Any

from annotated_types import MinLen

from hatchery.analysis.tidy_tables import CURVES
from hatchery.artifacts.manifests import Manifest
from hatchery.artifacts.records import Record, json_record, json_records
from hatchery.errors import EvaluationError

METRICS_FILE = "metrics.jsonl"
LAYER_WEIGHTS_FILE = "layer_weights.json"
CONFIG_FILE = "config.json"


@dataclass(frozen=True)
class CurvePoint:
    """Losses (natural logarithm, per predicted token) after `step` optimiser steps and `tokens` tokens."""

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


_MEASURED = [column for column in CURVES.columns if column.kind in ("integer", "number") and column.name != "seed"]
# A row of `metrics.jsonl` has the columns of the table of curves, of which only these two are always measured.
_MetricRow: type[Record] = make_dataclass(
    "_MetricRow",
    [
        *((name, int) for name in ("step", "tokens")),
        *((column.name, float | None, None) for column in _MEASURED if column.name not in ("step", "tokens")),
    ],
    bases=(Record,),
    frozen=True,
)


@dataclass(frozen=True)
class _Weight(Record):
    consuming_layer: int
    producing_layer: int
    scaled_weight: float


@dataclass(frozen=True)
class _Weights(Record):
    rows: Annotated[tuple[_Weight, ...], MinLen(1)]


@dataclass(frozen=True)
class _Config(Record):
    num_hidden_layers: int
    layer_weighting: str


def metric_rows(manifest: Manifest) -> list[dict[str, Any]]:
    """The rows of `metrics.jsonl` by the columns of `CURVES`; none when the model was not trained (0 steps).

    Raises EvaluationError naming file and line for a row that is not an object of finite numbers, or whose step stood
    in an earlier one.
    """
    return [dict(vars(row)) for row in json_records(manifest.file(METRICS_FILE), _MetricRow, "step")]


def read_layer_weights(manifest: Manifest) -> LayerWeights:
    """The layer weights of a model, from `config.json` and, where it has layer weighting, `layer_weights.json`.

    Raises EvaluationError naming the file when it is not such a table, or lacks a pair of layers.
    """
    config = json_record(manifest.file(CONFIG_FILE), _Config)
    layers = config.num_hidden_layers
    if config.layer_weighting == "none":
        return LayerWeights(layers, True, dict.fromkeys(_pairs(layers), 1.0))
    path = manifest.file(LAYER_WEIGHTS_FILE)
    scaled = {(row.consuming_layer, row.producing_layer): row.scaled_weight for row in json_record(path, _Weights).rows}
    expected = _pairs(layers + 1 if (layers + 1, 0) in scaled else layers)
    for consumer, producer in sorted(scaled.keys() ^ set(expected)):
        fault = "is one too many" if (consumer, producer) in scaled else "is missing"
        raise EvaluationError(f"{path}: the weight of layer {producer} for layer {consumer} {fault}")
    return LayerWeights(layers, False, scaled)


def _pairs(consumers: int) -> list[tuple[int, int]]:
    """All (consumer, layer below it), in order."""
    return [(n, i) for n in range(1, consumers + 1) for i in range(n)]
