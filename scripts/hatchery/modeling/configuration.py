"""What the configurations of all families of models have in common: sizes, positions, rows of the vocabulary, checks.

A family's own configuration is a frozen dataclass with these fields and its own. Nothing here needs torch, so that
planning can count a model's operations without loading it.
"""

import dataclasses
import math
from typing import Any, Literal

from hatchery.errors import ModelError

LayerWeightingName = Literal["none", "biased", "zero", "normalized", "normalized_unit_vector", "weighted_output"]


class ModelConfig:
    """A model. Raises ModelError, naming key and value, when the values do not describe one."""

    # The fields that every family has; each says them again, with its defaults.
    family: Any
    """Tells the families of models apart in stored configurations."""
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    max_position_embeddings: int
    hidden_dropout_prob: float
    attention_probs_dropout_prob: float
    layer_norm_eps: float
    layer_weighting: LayerWeightingName
    tie_word_embeddings: bool
    vocabulary_bias: bool
    sentence_pair_head: bool

    @property
    def head_size(self) -> int:
        """Width of one attention head."""
        return self.hidden_size // self.num_attention_heads

    @property
    def embedding_width(self) -> int:
        """Width of the embeddings."""
        return self.hidden_size

    @property
    def vocabulary_rows(self) -> int:
        """Rows of the word embedding and of the output layer: the number of logits."""
        return self.vocab_size

    @property
    def position_limit(self) -> int | None:
        """Most tokens of an input, special ones included; None where there is no limit (relative positions)."""
        return self.max_position_embeddings

    def to_dict(self) -> dict[str, Any]:
        """All fields, ready for JSON."""
        return dataclasses.asdict(self)  # type: ignore[call-overload]

    def check_sizes(self) -> None:
        """Raise ModelError unless the common fields describe a model."""
        for name in ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "1 or more")
        expected = f"a multiple of num_attention_heads ({self.num_attention_heads})"
        require(self.hidden_size % self.num_attention_heads == 0, "hidden_size", self.hidden_size, expected)
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
            require(0 <= getattr(self, name) < 1, name, getattr(self, name), "0 <= probability < 1")
        require(0 < self.layer_norm_eps < math.inf, "layer_norm_eps", self.layer_norm_eps, "a number above 0")


def require(condition: bool, key: str, value: object, expected: str) -> None:
    """Raise ModelError, naming the key of a model, unless `condition`."""
    if not condition:
        raise ModelError(f"model.{key}: got {value!r}, expected {expected}")
