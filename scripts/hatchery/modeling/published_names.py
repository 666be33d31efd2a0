"""The parameter names of the published LTG-BERT and ELC-BERT code, and ours for the same tensors.

For users with weights in the authors' format. Covers the BNC and BabyLM models with the basic head and the ELC-BERT
variants with layer weights per layer; not the next-sentence head.
"""

import re
from collections.abc import Mapping

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
    # The output matrix is the word embedding again.
    "classifier.nonlinearity.5.weight": None,
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
    # The table of position buckets, which we compute.
    "attention.position_indices": None,
}


def our_name(published_name: str) -> str | None:
    """Our name of a published tensor; None for one that repeats another. Raises ModelError for an unknown name."""
    layer = re.fullmatch(r"transformer\.layers\.(\d+)\.(.+)", published_name)
    names, key = (_ONE_LAYER, layer[2]) if layer else (_WHOLE_MODEL, published_name)
    if key not in names:
        raise ModelError(f"{published_name}: not a tensor of the published LTG-BERT or ELC-BERT models that fits here")
    name = names[key]
    return name.format(layer[1]) if name is not None and layer else name


def from_published(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A state dict of the published code as one for `MaskedLanguageModel`. Raises ModelError for an unknown name."""
    renamed = {our_name(name): tensor for name, tensor in state.items()}
    return {name: tensor for name, tensor in renamed.items() if name is not None}
