"""Configuration of translation models.

Source: "Attention Is All You Need", as used in "A Natural Bias for Language Generation Models" (Appendix A). The second
paper specifies neither the width of the hidden states nor the tying of weights; both are settings
(docs/papers/natural-bias.md, "Differences").
"""

from dataclasses import dataclass
from typing import Literal

from hatchery.modeling.configuration import EncoderSizes, ModelConfig
from hatchery.settings.base import Count, Natural, Positive, require


@dataclass(frozen=True, kw_only=True)
class EncoderDecoderSizes(EncoderSizes):
    """Architecture of a translation model; the vocabulary size comes from the joint tokenizer."""

    num_decoder_layers: Count | None = None
    """Number of decoder layers; if `null`, the number of encoder layers (`num_hidden_layers`)."""

    normalisation: Literal["pre_norm", "post_norm"] = "pre_norm"
    """Position of the norms. `pre_norm`: before every block and after the last layer. `post_norm`: after every residual
    sum, as in the original transformer of 2017.
    """

    tie_word_embeddings: bool = False
    """Use the embedding shared by source and target as output matrix."""

    layer_norm_eps: Positive = 1e-5
    """Number added to the variance in every layer norm."""

    family: Literal["encoder_decoder"] = "encoder_decoder"
    """Family of the model."""

    def __post_init__(self) -> None:
        super().__post_init__()
        expected = "none, because only a residual stream connects the decoder's layers"
        require(self.layer_weighting == "none", "layer_weighting", self.layer_weighting, expected)

    @property
    def decoder_layers(self) -> int:
        """Return the number of layers of the decoder."""
        return self.num_hidden_layers if self.num_decoder_layers is None else self.num_decoder_layers

    @property
    def position_limit(self) -> int | None:
        """Return None, because sines and cosines represent any position."""
        return None


@dataclass(frozen=True, kw_only=True)
class EncoderDecoderConfig(EncoderDecoderSizes, ModelConfig):
    """Configuration of a translation model. Raises ConfigError, naming key and value, for an invalid value."""

    pad_token_id: Natural = 1
    """Id of the padding token of the tokenizer; no token attends to it."""

    cls_token_id: Natural = 0
    """Id of the token that begins every target; the decoder reads it first and never writes it."""

    sep_token_id: Natural = 2
    """Id of the token that ends every sentence; a translation is finished when the decoder writes it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("pad_token_id", "cls_token_id", "sep_token_id"):
            value = getattr(self, key)
            require(value < self.vocab_size, key, value, f"an id below vocab_size ({self.vocab_size})")


@dataclass(frozen=True, kw_only=True)
class EncoderDecoderFile(EncoderDecoderSizes):
    """Architecture of a translation model. The vocabulary size comes from the tokenizer."""

    description: str = ""
    """Description of the architecture for human readers."""
