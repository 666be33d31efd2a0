"""Configuration of GPT-BERT and its ablations.

Source: GPT-BERT ("GPT or BERT: why not both?"), Table 2, after the published code (docs/papers/gpt-bert.md, "Model").
Embedding, positions, feed-forward block and head are the same as in LTG-BERT. In GPT-BERT's attention block, the second
norm is before the output projection; in LTG-BERT's, it is after the projection. GPT-BERT adds two parts, which can be
disabled separately: the gate of the attention, and the weights between all blocks. This module does not import torch.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from hatchery.modeling.configuration import EncoderSizes, LayerWeightingName, ModelConfig
from hatchery.settings.base import Positive, Range


@dataclass(frozen=True, kw_only=True)
class GptBertSizes(EncoderSizes):
    """Architecture of GPT-BERT and its ablations; the vocabulary size comes from the tokenizer."""

    layer_weighting: LayerWeightingName = "unrestricted"
    """Combination of earlier blocks' outputs into the input of a block. `unrestricted`: GPT-BERT's learned weights.
    `none`: the plain residual stream (the ablation without layer weights in GPT-BERT, Table 2).
    """

    attention_gate: bool = True
    """Multiply the weighted sum of values by a gate: the GELU of a linear projection of the block's normalised input
    (GPT-BERT, Table 2)."""

    max_position_embeddings: Annotated[int, Range(ge=2)] = 512
    """All distances of at least this number of tokens share the last position bucket; longer inputs are allowed."""

    position_bucket_size: Annotated[int, Range(ge=2)] = 32
    """Number of position buckets per direction. Each distance up to half of this number has its own bucket; larger
    distances share buckets of logarithmically growing width. The relative embedding has 2 * `position_bucket_size` - 1
    rows.
    """

    layer_norm_eps: Positive = 1e-5
    """Number added to the variance in every layer norm."""

    family: Literal["gpt_bert"] = "gpt_bert"
    """Family of the model."""

    # LTG-BERT's modules read these keys. They are constants here, because only LTG-BERT's ablations vary them.
    position_embedding: ClassVar[str] = "relative"
    position_head_layout: ClassVar[str] = "babylm"
    position_to_content_index: ClassVar[str] = "query_minus_key"
    normalisation: ClassVar[str] = "normformer"
    affine_block_norms: ClassVar[bool] = False
    feed_forward_activation: ClassVar[str] = "geglu"
    feed_forward_bias: ClassVar[bool] = False
    feed_forward_initial_scaling: ClassVar[bool] = True
    head_scaling: ClassVar[bool] = False
    residual_scaling: ClassVar[bool] = False
    head_dropout: ClassVar[str] = "after_norm"

    @property
    def position_limit(self) -> int | None:
        """Return None, because relative positions do not limit the input."""
        return None


@dataclass(frozen=True, kw_only=True)
class GptBertConfig(GptBertSizes, ModelConfig):
    """Configuration of a GPT-BERT model. Raises ConfigError, naming key and value, for an invalid value."""


@dataclass(frozen=True, kw_only=True)
class GptBertFile(GptBertSizes):
    """Architecture of GPT-BERT and its ablations. The vocabulary size comes from the tokenizer."""

    description: str = ""
    """Description of the architecture for human readers."""
