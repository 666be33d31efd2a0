"""Configuration of plain modern transformers, which serve as baselines for claims about other architectures.

The common features of ModernBERT (Warner et al. 2024, arXiv:2412.13663) and Llama (Touvron et al. 2023,
arXiv:2302.13971) are rotary positions, pre-norm layers without biases, and gated feed-forward blocks. The default is
Llama's block with normalised queries and keys, as in Qwen3 (arXiv:2505.09388), for masked and causal models. All other
features are off by default.
"""

from dataclasses import dataclass
from typing import Literal

from hatchery.modeling.configuration import EncoderSizes, ModelConfig
from hatchery.settings.base import Positive, ShareBelowOne, omitted_at_default, require


@dataclass(frozen=True, kw_only=True)
class ModernSizes(EncoderSizes):
    """Architecture of modern transformers; the vocabulary size comes from the tokenizer."""

    layer_norm_eps: Positive = 1e-5
    """Number added, in every norm, to the mean square (`normalisation: rms_norm`) or to the variance (`layer_norm`)."""

    normalisation: Literal["rms_norm", "layer_norm"] = "rms_norm"
    """Norms before the blocks, with a gain and no bias: `rms_norm` as in Llama, `layer_norm` as in ModernBERT."""

    feed_forward_activation: Literal["swiglu", "geglu"] = "swiglu"
    """Activation of the feed-forward gate: SiLU as in Llama, or GELU as in ModernBERT."""

    rotary_base: Positive = 10_000.0
    """Base of the wavelengths of rotary positions."""

    query_key_norm: bool = True
    """Normalise the queries and keys of every head before rotation (Qwen3)."""

    embedding_norm: bool = False
    """Normalise the embeddings, as in ModernBERT."""

    output_transform: bool = False
    """Add a linear layer, an exact GELU and a norm before the output matrix, as in ModernBERT."""

    value_residual: bool = False
    """Mix the attention values of later layers with the values of the first layer (Zhou et al. 2024,
    arXiv:2410.17897)."""

    head_gate: bool = False
    """Scale the output of every head by the sigmoid of a linear projection of the block's normalised input (Qiu et al.
    2025, arXiv:2505.06708)."""

    unet_skips: bool = False
    """Connect the two halves of the n layers: for i up to n / 2, the output of layer i, multiplied by a learned scale
    per dimension, is added to the input of layer n + 1 - i. For odd n, the middle layer has no skip connection.
    """

    stochastic_depth: ShareBelowOne = omitted_at_default(0.0)
    """Probability that a training sequence skips the last layer. The probability decreases linearly towards the first
    layer. 0 disables skipping."""

    family: Literal["modern"] = "modern"
    """Family of the model."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.head_size % 2 == 0,
            "num_attention_heads",
            self.num_attention_heads,
            f"a number of heads of even width, because rotary positions rotate pairs of dimensions; these heads have "
            f"width {self.head_size}",
        )
        connected = self.layer_weighting == "none" or not (
            self.unet_skips or self.value_residual or self.stochastic_depth
        )
        require(
            connected,
            "layer_weighting",
            self.layer_weighting,
            "none with unet_skips, value_residual or stochastic_depth, because these need a plain residual stream",
        )


@dataclass(frozen=True, kw_only=True)
class ModernConfig(ModernSizes, ModelConfig):
    """Configuration of a plain modern transformer. Raises ConfigError, naming key and value, for an invalid value."""


@dataclass(frozen=True, kw_only=True)
class ModernFile(ModernSizes):
    """Architecture of modern transformers; the vocabulary size comes from the tokenizer."""

    description: str = ""
    """Description of the architecture for human readers."""
