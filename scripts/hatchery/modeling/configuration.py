"""Configuration classes that all model families extend: sizes, positions, size of the vocabulary, and checks.

Each family has two classes. The class of sizes defines the keys of a file in config/models/. The configuration class
adds values that follow from the tokenizer and the objective. This module does not import torch, so that FLOPs can be
counted during planning without loading torch. It imports no third-party package, so that exported models can contain a
copy of it.
"""

import dataclasses
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from hatchery.settings.base import Count, Positive, Range, Settings, ShareBelowOne, check_ranges, dumped_values, require

LayerWeightingName = Literal[
    "none", "biased", "zero", "normalized", "normalized_unit_vector", "weighted_output", "unrestricted"
]
UNRESTRICTED: LayerWeightingName = "unrestricted"
"""The layer weighting of GPT-BERT. Its weights combine blocks instead of layers, and need not sum to 1."""


@dataclass(frozen=True, kw_only=True)
class EncoderSizes(Settings):
    """Sizes and options of the architecture that the models of every family have."""

    DECIDED_BY: ClassVar[dict[str, str]] = {
        "vocab_size": "the tokenizer (its vocabulary_size)",
        "vocabulary_bias": "pretraining.output_bias.kind",
        "sentence_pair_head": "pretraining.objective.sentence_pairs",
    }
    """Keys of the configuration that files must not set, each with the setting that determines its value."""

    hidden_size: Annotated[int, Range(ge=2)]
    """Width of the hidden states; a multiple of `num_attention_heads`."""

    intermediate_size: Count
    """Width of the feed-forward block; the input projection of a gated block is twice as wide."""

    num_hidden_layers: Count
    """Number of transformer layers, without the embedding."""

    num_attention_heads: Count
    """Number of attention heads; each is `hidden_size / num_attention_heads` wide."""

    hidden_dropout_prob: ShareBelowOne = 0.1
    """Dropout probability of the embedding output, the feed-forward output, the heads of pretraining that have dropout,
    and the task heads of exported models. The attention output also has this dropout probability, except in the
    families `ltg` and `gpt_bert`, where its dropout probability is `attention_probs_dropout_prob`.
    """

    attention_probs_dropout_prob: ShareBelowOne = 0.1
    """Dropout probability of the attention probabilities; in the families `ltg` and `gpt_bert`, also of the relative
    embedding and of the attention output.
    """

    layer_weighting: LayerWeightingName = "none"
    """Combination of the earlier layers' outputs into a layer's input. `none`: the previous layer's output (LTG-BERT
    and the reduced-vocabulary study). `unrestricted`: the combination of GPT-BERT. All other values are variants of
    ELC-BERT (Sections 3 and 5.2 of its paper): `normalized` is the version of ELC-BERT's code, and
    `normalized_unit_vector` is the version that ELC-BERT's paper describes.
    """

    tie_word_embeddings: bool = True
    """Use the word embedding as output matrix."""

    max_position_embeddings: Annotated[int, Range(ge=2)] = 512
    """Maximum number of tokens in an input, including [CLS] and [SEP]. The family `encoder_decoder` has no maximum and
    ignores this value.
    """

    layer_norm_eps: Positive = 1e-7
    """Number added to the variance in every layer norm."""

    family: str
    """Family of the model."""

    def __post_init__(self) -> None:
        check_ranges(self)
        require(
            self.hidden_size % self.num_attention_heads == 0,
            "num_attention_heads",
            self.num_attention_heads,
            f"a divisor of hidden_size ({self.hidden_size})",
        )

    @property
    def position_limit(self) -> int | None:
        """Return the maximum number of tokens of an input, including special tokens; None if there is no limit, for
        example in models with relative positions.
        """
        return self.max_position_embeddings

    @property
    def head_size(self) -> int:
        """Return the width of one attention head."""
        return self.hidden_size // self.num_attention_heads

    @property
    def embedding_width(self) -> int:
        """Return the width of the word embedding, which is the hidden size unless a subclass defines another width."""
        return self.hidden_size


@dataclass(frozen=True, kw_only=True)
class ModelConfig(EncoderSizes):
    """Configuration of a model of any family. Raises ConfigError, naming key and value, for an invalid value."""

    vocab_size: Count
    """Number of subwords, special tokens included."""

    vocabulary_bias: bool = True
    """True if the output layer has a bias."""

    sentence_pair_head: bool = False
    """True if the model predicts whether two texts belong together; set by the objective."""

    @property
    def vocabulary_rows(self) -> int:
        """Return the number of rows of the word embedding and of the output layer: the number of logits."""
        return self.vocab_size

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration as a dictionary for JSON. Fields that are marked `omitted_at_default` are left out
        if they have their default value.
        """
        values = dataclasses.asdict(self)
        return {key: values[key] for key in dumped_values(self)}
