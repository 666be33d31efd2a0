"""Conversion between Hatchery's parameter names and the names in the published LTG-BERT and ELC-BERT code.

The names cover the BNC and BabyLM models and all four ELC-BERT variants. Two published names are inferred:
`transformer.prev_layer_weights`, the output weights of the variant "weighted_output", and
`nsp_classifier.nonlinearity.{1,5}`, the sentence-pair head. A sentence-pair head with other names is recognised by the
shapes of its parameters.
"""

import re
from collections.abc import Mapping

import torch
from torch import Tensor

from hatchery.errors import ModelError

_WHOLE_MODEL = {
    "embedding.word_embedding.weight": "encoder.embedding.word_embedding.weight",
    "embedding.relative_embedding": "encoder.embedding.relative_embedding",
    "embedding.relative_layer_norm.weight": "encoder.embedding.relative_layer_norm.weight",
    "embedding.relative_layer_norm.bias": "encoder.embedding.relative_layer_norm.bias",
    "classifier.nonlinearity.1.weight": "head.linear.weight",
    "classifier.nonlinearity.1.bias": "head.linear.bias",
    "classifier.nonlinearity.5.bias": "head.vocabulary_bias",
    "nsp_classifier.nonlinearity.1.weight": "pair_head.linear.weight",
    "nsp_classifier.nonlinearity.1.bias": "pair_head.linear.bias",
    "nsp_classifier.nonlinearity.5.weight": "pair_head.output.weight",
    "nsp_classifier.nonlinearity.5.bias": "pair_head.output.bias",
}

_ONE_LAYER = {
    "attention.in_proj_qk.weight": "encoder.layers.{}.attention.query_key_projection.weight",
    "attention.in_proj_qk.bias": "encoder.layers.{}.attention.query_key_projection.bias",
    "attention.in_proj_v.weight": "encoder.layers.{}.attention.value_projection.weight",
    "attention.in_proj_v.bias": "encoder.layers.{}.attention.value_projection.bias",
    "attention.out_proj.weight": "encoder.layers.{}.attention.output_projection.weight",
    "attention.out_proj.bias": "encoder.layers.{}.attention.output_projection.bias",
    "attention.post_layer_norm.weight": "encoder.layers.{}.attention.post_layer_norm.weight",
    "attention.post_layer_norm.bias": "encoder.layers.{}.attention.post_layer_norm.bias",
    "mlp.mlp.1.weight": "encoder.layers.{}.feed_forward.input_projection.weight",
    "mlp.mlp.4.weight": "encoder.layers.{}.feed_forward.output_projection.weight",
    "prev_layer_weights": "encoder.mixture.layer_weights.{}",
}

WORD_EMBEDDING = "embedding.word_embedding.weight"
OUTPUT_MATRIX = "classifier.nonlinearity.5.weight"
"""Published name of the output matrix, a copy of the word embedding."""
OUTPUT_MIXTURE = "transformer.prev_layer_weights"
"""Published name of the weights that combine the heads' input in the variant "weighted_output"."""
POSITION_TABLE = "attention.position_indices"
"""Published name of the table of position buckets, which is stored in every layer. Hatchery's models compute this table
instead of storing it.
"""


def our_name(published_name: str, n_layers: int | None = None) -> str | None:
    """Return Hatchery's name of a published tensor; None for a copy of another tensor and for the position table.

    `n_layers` is only needed for the output weights of the variant "weighted_output" (OUTPUT_MIXTURE). Raises
    ModelError for an unknown name.
    """
    if published_name == OUTPUT_MATRIX:
        return None
    if published_name == OUTPUT_MIXTURE and n_layers is not None:
        return f"encoder.mixture.layer_weights.{n_layers}"
    layer = re.fullmatch(r"transformer\.layers\.(\d+)\.(.+)", published_name)
    if layer and layer[2] == POSITION_TABLE:
        return None
    names, key = (_ONE_LAYER, layer[2]) if layer else (_WHOLE_MODEL, published_name)
    if key not in names:
        raise ModelError(
            f"{published_name}: no tensor of Hatchery's model has this published name, expected the name of a tensor "
            "in the published code of LTG-BERT or ELC-BERT"
        )
    return names[key].format(layer[1]) if layer else names[key]


def published_name(name: str, n_layers: int) -> str:
    """Return the published name of Hatchery's tensor `name`. Raises ModelError for a tensor that no published model
    has.
    """
    if name == f"encoder.mixture.layer_weights.{n_layers}":
        return OUTPUT_MIXTURE
    for theirs, ours in _WHOLE_MODEL.items():
        if name == ours:
            return theirs
    layer = re.fullmatch(r"(encoder\.(?:layers|mixture\.layer_weights)\.)(\d+)(.*)", name)
    for theirs, ours in _ONE_LAYER.items():
        if layer and f"{layer[1]}{{}}{layer[3]}" == ours:
            return f"transformer.layers.{layer[2]}.{theirs}"
    raise ModelError(f"{name}: no tensor of the published code corresponds to this tensor")


def from_published(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Convert a published state dict to a state dict of `LanguageModel`. Raises ModelError for an unknown name."""
    n_layers = count_layers(state)
    pair_head = _pair_head(state)
    renamed = {pair_head.get(name) or our_name(name, n_layers): tensor for name, tensor in state.items()}
    return {name: tensor for name, tensor in renamed.items() if name is not None}


def to_published(state: Mapping[str, Tensor], position_table: Tensor) -> dict[str, Tensor]:
    """Convert the state dict of a Hatchery model to the published form, which includes copies of some tensors.

    `position_table` int64 [P, P] is the table of position buckets for P positions. Raises ModelError for a tensor that
    no published model has, such as the output matrix of an untied model.
    """
    layers = [int(match[1]) for name in state if (match := re.match(r"encoder\.layers\.(\d+)\.", name))]
    n_layers = 1 + max(layers, default=-1)
    renamed = {published_name(name, n_layers): tensor for name, tensor in state.items()}
    if WORD_EMBEDDING in renamed:
        renamed[OUTPUT_MATRIX] = renamed[WORD_EMBEDDING]
    return renamed | {f"transformer.layers.{layer}.{POSITION_TABLE}": position_table for layer in range(n_layers)}


def count_layers(state: Mapping[str, Tensor]) -> int:
    """Return the number of layers in a published state dict."""
    layers = [int(match[1]) for name in state if (match := re.match(r"transformer\.layers\.(\d+)\.", name))]
    return 1 + max(layers, default=-1)


def _pair_head(state: Mapping[str, Tensor]) -> dict[str, str]:
    """Return a mapping from the names in `state` to Hatchery's names, for the parameters of a sentence-pair head whose
    names in `state` are not in the lists of this module. The head is recognised by the shapes of its four parameters.

    The mapping is empty if there is no such head.
    """
    layers = re.compile(r"transformer\.layers\.\d+\.")
    known_names = {*_WHOLE_MODEL, OUTPUT_MATRIX, OUTPUT_MIXTURE}
    unknown = [name for name in state if name not in known_names and not layers.match(name)]
    size = state[WORD_EMBEDDING].shape[-1] if WORD_EMBEDDING in state else 0
    shapes = {
        torch.Size((size, size)): "pair_head.linear.weight",
        torch.Size((size,)): "pair_head.linear.bias",
        torch.Size((1, size)): "pair_head.output.weight",
        torch.Size((1,)): "pair_head.output.bias",
    }
    if sorted(shapes) != sorted(state[name].shape for name in unknown):
        return {}
    return {name: shapes[state[name].shape] for name in unknown}
