"""The parameter names of the published LTG-BERT and ELC-BERT code, and ours for the same tensors.

For users with weights in the authors' format. Covers the BNC and BabyLM models with the basic head and the ELC-BERT
variants with layer weights per layer; not the next-sentence head.
"""

import re
from collections.abc import Mapping

from torch import Tensor

from hatchery.errors import ModelError

# The integer tables that every published layer stores, and the output matrix, which is the word embedding again.
_REDUNDANT = re.compile(r"transformer\.layers\.\d+\.attention\.position_indices|classifier\.nonlinearity\.5\.weight")

_PATTERNS = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"embedding\.(word_embedding\.weight|relative_embedding|relative_layer_norm\.\w+)", r"encoder.embedding.\1"),
        (
            r"transformer\.layers\.(\d+)\.attention\.in_proj_qk\.(\w+)",
            r"encoder.layers.\1.attention.query_key_projection.\2",
        ),
        (
            r"transformer\.layers\.(\d+)\.attention\.in_proj_v\.(\w+)",
            r"encoder.layers.\1.attention.value_projection.\2",
        ),
        (
            r"transformer\.layers\.(\d+)\.attention\.out_proj\.(\w+)",
            r"encoder.layers.\1.attention.output_projection.\2",
        ),
        (
            r"transformer\.layers\.(\d+)\.attention\.post_layer_norm\.(\w+)",
            r"encoder.layers.\1.attention.post_layer_norm.\2",
        ),
        (r"transformer\.layers\.(\d+)\.mlp\.mlp\.1\.weight", r"encoder.layers.\1.feed_forward.input_projection.weight"),
        (
            r"transformer\.layers\.(\d+)\.mlp\.mlp\.4\.weight",
            r"encoder.layers.\1.feed_forward.output_projection.weight",
        ),
        (r"transformer\.layers\.(\d+)\.prev_layer_weights", r"encoder.mixture.layer_weights.\1"),
        (r"classifier\.nonlinearity\.1\.(\w+)", r"head.linear.\1"),
        (r"classifier\.nonlinearity\.5\.bias", r"head.vocabulary_bias"),
    )
)


def our_name(published_name: str) -> str | None:
    """Our name of a published parameter; None for one that repeats another. Raises ModelError for an unknown name."""
    if _REDUNDANT.fullmatch(published_name):
        return None
    for pattern, replacement in _PATTERNS:
        match = pattern.fullmatch(published_name)
        if match:
            return match.expand(replacement)
    raise ModelError(f"{published_name}: not a parameter of the published LTG-BERT or ELC-BERT models that fits here")


def from_published(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A state dict of the published code as one for `MaskedLanguageModel`. Raises ModelError for an unknown name."""
    renamed = {our_name(name): tensor for name, tensor in state.items()}
    return {name: tensor for name, tensor in renamed.items() if name is not None}
