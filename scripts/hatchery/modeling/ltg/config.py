"""Configuration of LTG-BERT with its ablations, and of ELC-BERT.

Source: LTG-BERT, Section 4 and Tables 2 and 9, ELC-BERT, Table 4, and the configuration files published with these two
papers. The defaults describe LTG-BERT's final model. An architectural ablation of LTG-BERT's Table 2 changes one field;
the ablation with a GELU (`gelu`) also changes `intermediate_size`.

Models with equal configurations have equal names and shapes of parameters. This module does not import torch, so that
FLOPs can be counted during planning without loading torch.
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
    """With relative positions: the number of tokens from which on all distances share the last position bucket; longer
    inputs are allowed. With absolute positions: the maximum number of tokens in an input.
    """

    position_bucket_size: Annotated[int, Range(ge=2)] = 32
    """Number of position buckets per direction. Each distance up to half of this number has its own bucket; larger
    distances share buckets of logarithmically growing width. The relative embedding has 2 * `position_bucket_size` - 1
    rows.
    """

    layer_norm_eps: Positive = 1e-7
    """Number added to the variance in every layer norm: 1e-7 in the published configurations, 1e-5 in LTG-BERT, Table
    9."""

    position_head_layout: PositionHeadLayout = "babylm"
    """Order of queries and keys in the projection of relative positions. `babylm`: the queries of all heads, then the
    keys of all heads. `bnc`: query and key of one head after another; this order is only needed for the published BNC
    checkpoints.
    """

    position_embedding: Literal["relative", "absolute"] = "relative"
    """`relative`: log-bucketed relative positions in every layer. `absolute`: learned vectors added to the word
    embeddings (LTG-BERT, Table 2).
    """

    position_to_content_index: Literal["query_minus_key", "key_minus_query"] = "query_minus_key"
    """Position-to-content term: distance whose position vector is multiplied with the key. `query_minus_key`: as in
    LTG-BERT's code, which uses one distance for both position terms. `key_minus_query`: as in LTG-BERT's paper.
    """

    normalisation: Normalisation = "normformer"
    """Position of a layer's norms (LTG-BERT, Table 2). `normformer`: before and inside both blocks. `pre_norm`: before
    both blocks. `post_norm`: after the residual sums.
    """

    block_norm_affine: bool | None = None
    """With `normalisation: pre_norm` or `normalisation: post_norm`: true if the layer norms have parameters. `null`
    means false for `pre_norm`, and true for `post_norm`.
    """

    feed_forward_activation: Literal["geglu", "gelu"] = "geglu"
    """Activation of the feed-forward block: gated GELU (`geglu`) or plain GELU (`gelu`). With `gelu`, the number of
    parameters is the same as with `geglu` if `intermediate_size` is 3/2 times as large (LTG-BERT, Table 2).
    """

    feed_forward_bias: bool = False
    """True if both projections of the feed-forward block have biases."""

    feed_forward_initial_scaling: bool = True
    """Scale the initial feed-forward weights of layer l (from 0) by 1 / sqrt(2 (l + 1))."""

    head_scaling: bool = False
    """Multiply the output of every attention head by a learned factor that starts at 1 (NormFormer; LTG-BERT, footnote
    5)."""

    residual_scaling: bool = False
    """Multiply the residual of the feed-forward block by a learned factor per dimension that starts at 1 (NormFormer;
    LTG-BERT, footnote 5)."""

    head_dropout: Literal["after_norm", "before_norm"] = "after_norm"
    """Position of dropout in the language-model head: after the second norm, as in LTG-BERT's BabyLM code, or before
    the second norm, as in LTG-BERT's BNC training code.
    """

    family: Literal["ltg"] = "ltg"
    """Family of the model."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.normalisation == "normformer":
            # Refuse a value for NormFormer models, whose norms are fixed: the value would have no effect, but the run
            # would look like an ablation.
            expected = "null, because `normalisation: normformer` determines the parameters of the norms"
            require(self.block_norm_affine is None, "block_norm_affine", self.block_norm_affine, expected)
        if self.layer_weighting != "none":
            expected = f"false, because layers with the layer_weighting {self.layer_weighting} have no residual sum"
            require(not self.residual_scaling, "residual_scaling", self.residual_scaling, expected)

    @property
    def position_limit(self) -> int | None:
        """Return the maximum number of tokens of an input, including special tokens; None if positions are relative,
        because relative positions do not limit the input.
        """
        return None if self.position_embedding == "relative" else self.max_position_embeddings

    @property
    def affine_block_norms(self) -> bool:
        """Return `block_norm_affine`, or its default if it is None.

        In LTG-BERT's final model, the norm after a block has parameters, and the norm before a block has none. The
        paper does not specify the norms of the ablations. By default, they follow the final model: only norms after
        blocks have parameters.
        """
        return self.normalisation == "post_norm" if self.block_norm_affine is None else self.block_norm_affine


@dataclass(frozen=True, kw_only=True)
class LtgBertConfig(LtgBertSizes, ModelConfig):
    """Configuration of an LTG-BERT or ELC-BERT model. Raises ConfigError, naming the key, for an invalid value."""


@dataclass(frozen=True, kw_only=True)
class LtgBertFile(LtgBertSizes):
    """Architecture of LTG-BERT, its ablations, and ELC-BERT. The vocabulary size comes from the tokenizer."""

    description: str = ""
    """Description of the architecture for human readers."""
