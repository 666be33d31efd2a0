"""The sizes and choices that define LTG-BERT with its ablations, and ELC-BERT.

Source: LTG-BERT, Section 4 and Tables 2 and 9, ELC-BERT, Table 4, and the configuration files published with both. The
defaults are the final model; every ablation of LTG-BERT's Table 2 that concerns the architecture is a value of one
field. Two models with equal configurations have the same parameters under the same names. The module needs no torch, so
that planning can count a model's FLOPs without loading it.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from hatchery.modeling.configuration import EncoderSizes, ModelConfig
from hatchery.settings.base import Positive, Range, require

PositionHeadLayout = Literal["bnc", "babylm"]


Normalisation = Literal["normformer", "pre_norm", "post_norm"]


@dataclass(frozen=True, kw_only=True)
class LtgBertSizes(EncoderSizes):
    """Architecture of LTG-BERT, its ablations, and ELC-BERT; the vocabulary size comes from the tokenizer."""

    max_position_embeddings: Annotated[int, Range(ge=2)] = 512
    """Distance in tokens from which all positions share the last bucket; longer inputs are allowed. With absolute
    positions: maximum input length."""

    position_bucket_size: Annotated[int, Range(ge=2)] = 32
    """Number of position buckets per direction: exact distances up to half of it, logarithmic beyond (2 * size - 1 rows
    in all)."""

    layer_norm_eps: Positive = 1e-7
    """Number added to the variance in every layer norm (1e-7 in the published configurations; 1e-5 in LTG-BERT, Table
    9)."""

    position_head_layout: PositionHeadLayout = "babylm"
    """Division of the projected relative positions among the heads; use bnc only to reproduce the BNC checkpoints."""

    position_embedding: Literal["relative", "absolute"] = "relative"
    """relative: log-bucketed relative positions in every layer. absolute: learned vectors added to the word embeddings
    (Table 2)."""

    position_to_content_index: Literal["query_minus_key", "key_minus_query"] = "query_minus_key"
    """Distance used to look up the position query for a key: query_minus_key is the code's, with one index for both
    terms; key_minus_query is the printed distance."""

    normalisation: Normalisation = "normformer"
    """Position of a layer's norms: normformer before and inside both blocks, pre_norm only before them, post_norm only
    after the residual sums (LTG-BERT, Table 2)."""

    block_norm_affine: bool | None = None
    """Whether the norms of pre_norm and post_norm layers have parameters; null: only those of post_norm layers."""

    feed_forward_activation: Literal["geglu", "gelu"] = "geglu"
    """Gated or plain GELU; for the same number of parameters, the plain version needs an `intermediate_size` 3/2 times
    as large (Table 2)."""

    feed_forward_bias: bool = False
    """Whether both projections of the feed-forward block have biases."""

    feed_forward_initial_scaling: bool = True
    """Scale the initial feed-forward weights of layer l (from 0) by 1 / sqrt(2 (l + 1))."""

    head_scaling: bool = False
    """Multiply every attention head by a learned factor that starts at 1 (NormFormer's; LTG-BERT, footnote 5)."""

    residual_scaling: bool = False
    """Multiply the residual input of the feed-forward block's sum by a learned factor per dimension that starts at 1
    (NormFormer's; LTG-BERT, footnote 5)."""

    head_dropout: Literal["after_norm", "before_norm"] = "after_norm"
    """Position of dropout in the language-model head: after the second norm as in the BabyLM code, or before it as in
    the BNC training code."""

    family: Literal["ltg"] = "ltg"
    """Family of the model."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.normalisation == "normformer":
            # The final model fixes the form of its norms; a value without effect would look like an ablation.
            expected = "null with normalisation normformer"
            require(self.block_norm_affine is None, "block_norm_affine", self.block_norm_affine, expected)
        if self.layer_weighting != "none":
            expected = "false with a layer_weighting, whose layers are added to nothing"
            require(not self.residual_scaling, "residual_scaling", self.residual_scaling, expected)

    @property
    def position_limit(self) -> int | None:
        """Return the maximum number of tokens of an input, including special tokens; None without a limit (relative
        positions).
        """
        return None if self.position_embedding == "relative" else self.max_position_embeddings

    @property
    def affine_block_norms(self) -> bool:
        """Return `block_norm_affine` with its default filled in.

        In the final model the norm after a block is affine and norms before blocks are not; each ablation keeps this
        property of its remaining norms (the paper does not specify it).
        """
        return self.normalisation == "post_norm" if self.block_norm_affine is None else self.block_norm_affine


@dataclass(frozen=True, kw_only=True)
class LtgBertConfig(LtgBertSizes, ModelConfig):
    """Configuration of a model. Raises ConfigError, naming key and value, if the values do not describe a model."""


@dataclass(frozen=True, kw_only=True)
class LtgBertFile(LtgBertSizes):
    """Architecture of LTG-BERT, its ablations, and ELC-BERT; the vocabulary size comes from the tokenizer."""

    description: str = ""
    """Description for readers."""
