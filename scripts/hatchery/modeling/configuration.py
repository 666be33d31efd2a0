"""The sizes and choices that define an encoder, with the checks that refuse impossible ones.

Source: LTG-BERT section 3 and Table 9, ELC-BERT Table 4, and the configuration files published with both. Two models
with equal configurations have the same parameters under the same names.
"""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from hatchery.errors import ModelError
from hatchery.typed import build

LayerWeightingName = Literal["none", "biased", "zero", "normalized", "weighted_output"]
PositionHeadLayout = Literal["bnc", "babylm"]


@dataclass(frozen=True)
class EncoderConfig:
    """An encoder. Raises ModelError, naming key and value, when the values do not describe one."""

    vocab_size: int
    """Number of subwords, special tokens included."""

    hidden_size: int
    """Width of the hidden states; a multiple of `num_attention_heads`."""

    intermediate_size: int
    """Width inside the feed-forward block after gating; its input projection is twice as wide."""

    num_hidden_layers: int
    """Number of transformer layers, the embedding not counted."""

    num_attention_heads: int
    """Number of attention heads, each `hidden_size / num_attention_heads` wide."""

    max_position_embeddings: int = 512
    """Distances of this many tokens and more share the last position bucket; longer inputs are allowed."""

    position_bucket_size: int = 32
    """Position buckets per direction: exact up to half of it, logarithmic beyond (2 * size - 1 rows in all)."""

    hidden_dropout_prob: float = 0.1
    """Dropout of the embedding output, the feed-forward output and the heads."""

    attention_probs_dropout_prob: float = 0.1
    """Dropout of the attention probabilities, the relative embedding and the attention output."""

    layer_norm_eps: float = 1e-7
    """Added to the variance in every layer norm (1e-7 in the published configurations; LTG-BERT Table 9 says 1e-5)."""

    layer_weighting: LayerWeightingName = "none"
    """How a layer's input is made of the earlier layers' outputs: "none" is LTG-BERT, the others are ELC-BERT's."""

    position_head_layout: PositionHeadLayout = "babylm"
    """Which rows of the query-key projection a head uses for positions; "bnc" only to load LTG-BERT's BNC weights."""

    def __post_init__(self) -> None:
        for name in ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"):
            _require(getattr(self, name) >= 1, name, getattr(self, name), "1 or more")
        _require(self.max_position_embeddings >= 2, "max_position_embeddings", self.max_position_embeddings, ">= 2")
        _require(self.position_bucket_size >= 2, "position_bucket_size", self.position_bucket_size, "2 or more")
        heads = self.num_attention_heads
        expected = f"a multiple of num_attention_heads ({heads})"
        _require(self.hidden_size % heads == 0, "hidden_size", self.hidden_size, expected)
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
            _require(0 <= getattr(self, name) < 1, name, getattr(self, name), "0 <= probability < 1")
        _require(0 < self.layer_norm_eps < math.inf, "layer_norm_eps", self.layer_norm_eps, "a number above 0")

    @property
    def head_size(self) -> int:
        """Width of one attention head."""
        return self.hidden_size // self.num_attention_heads

    def to_dict(self) -> dict[str, Any]:
        """All fields, ready for JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], where: str = "model") -> Self:
        """The configuration in `values`.

        Raises ConfigError for an unknown key, a missing key or a wrong type, and ModelError for an impossible value;
        `where` is the place that the former names.
        """
        return build(cls, values, where)


def _require(condition: bool, key: str, value: object, expected: str) -> None:
    if not condition:
        raise ModelError(f"model.{key}: got {value!r}, expected {expected}")
