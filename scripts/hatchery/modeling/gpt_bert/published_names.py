"""Conversion between Hatchery's parameter names and the names in the published GPT-BERT code.

Three published versions have equal tensors: the training code, and two wrappers for `transformers`. The wrapper of
BabyLM's organisers uses different names; the other wrapper uses the names of the training code
(docs/papers/gpt-bert.md, "Names of tensors").
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
}

_NUMBERED = {
    "attention_layers.{}.in_proj_qk.weight": "encoder.layers.{}.attention.query_key_projection.weight",
    "attention_layers.{}.in_proj_qk.bias": "encoder.layers.{}.attention.query_key_projection.bias",
    "attention_layers.{}.in_proj_vg.weight": "encoder.layers.{}.attention.value_projection.weight",
    "attention_layers.{}.in_proj_vg.bias": "encoder.layers.{}.attention.value_projection.bias",
    "attention_layers.{}.in_proj_v.weight": "encoder.layers.{}.attention.value_projection.weight",
    "attention_layers.{}.in_proj_v.bias": "encoder.layers.{}.attention.value_projection.bias",
    "attention_layers.{}.out_proj.weight": "encoder.layers.{}.attention.output_projection.weight",
    "attention_layers.{}.out_proj.bias": "encoder.layers.{}.attention.output_projection.bias",
    "mlp_layers.{}.mlp.1.weight": "encoder.layers.{}.feed_forward.input_projection.weight",
    "mlp_layers.{}.mlp.4.weight": "encoder.layers.{}.feed_forward.output_projection.weight",
    "dwa_modules.alphas.{}": "encoder.mixture.layer_weights.{}",
}

OUTPUT_MATRIX = "classifier.nonlinearity.5.weight"
"""Published name of the output matrix, a copy of the word embedding."""
POSITION_TABLE = "position_indices"
"""Published name of the table of position buckets, which is stored in every layer. Hatchery's models compute this table
instead of storing it.
"""
GATE = "in_proj_vg"
"""Published name of the joint projection to values and gates."""
MIXING = "dwa_modules"
"""Published name of the weights between blocks."""


def in_training(name: str) -> str:
    """Return the name of a tensor in GPT-BERT's training code, given its name in any published version."""
    name = re.sub(r"^lm_head\.", "classifier.", name.removeprefix("model."))
    return re.sub(r"^(attention_layers|mlp_layers|dwa_modules)\.", r"transformer.\1.", name)


def our_name(published_name: str) -> str | None:
    """Return Hatchery's name of a published tensor; None for a copy of another tensor and for the position table.

    Raises ModelError for an unknown name.
    """
    name = in_training(published_name)
    if name == OUTPUT_MATRIX or name.endswith(f".{POSITION_TABLE}"):
        return None
    if name in _WHOLE_MODEL:
        return _WHOLE_MODEL[name]
    number = re.search(r"\.(\d+)(?:\.|$)", name)
    key = name.removeprefix("transformer.")
    if number:
        key = key.replace(f".{number[1]}", ".{}", 1)
    if not number or key not in _NUMBERED:
        raise ModelError(
            f"{published_name}: no tensor of Hatchery's model has this published name, expected the name of a tensor "
            "in the published GPT-BERT code"
        )
    return _NUMBERED[key].format(number[1])


def published_name(name: str, gated: bool = True) -> str:
    """Return the name that GPT-BERT's training code gives to Hatchery's tensor `name`; `gated` is True if the model has
    the attention gate.

    Raises ModelError for a tensor that no published model has.
    """
    number = re.search(r"\.(\d+)(?:\.|$)", name)
    key = name.replace(f".{number[1]}", ".{}", 1) if number else name
    for theirs, ours in (*_WHOLE_MODEL.items(), *_NUMBERED.items()):
        if key == ours and (f"{GATE}." in theirs) <= gated:
            return f"transformer.{theirs.format(number[1])}" if number else theirs
    raise ModelError(f"{name}: no tensor of the published code corresponds to this tensor")


def from_published(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Convert a published state dict to a state dict of `LanguageModel`. Raises ModelError for an unknown name."""
    renamed = {our_name(name): tensor for name, tensor in state.items()}
    return {name: tensor for name, tensor in renamed.items() if name is not None}
