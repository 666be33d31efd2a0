"""The parts of a model that translates, and how they work together: the source is read once, the target token by token.

Source: "Attention Is All You Need"; "A Natural Bias for Language Generation Models", Section 2, whose output layer is
softmax(W phi + b). One embedding serves source and target, which share a vocabulary; it is scaled by sqrt(D) and gets
sines and cosines of the positions. Exported models are of these parts, too.
"""

import math
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from hatchery.modeling.attention import AttentionInputs, none_if_all_tokens
from hatchery.modeling.encoder_decoder.configuration import EncoderDecoderConfig
from hatchery.modeling.encoder_decoder.layers import (
    Attention,
    DecoderLayer,
    LayerCache,
    feed_forward,
    norm_before,
    norm_behind,
    positions,
)
from hatchery.modeling.layer_weighting import LAYER_WEIGHTINGS, LayerWeighting
from hatchery.modeling.layered_encoder import EncoderLayer, LayeredEncoder
from hatchery.modeling.norm_and_dropout import Dropout, LayerNorm
from hatchery.modeling.pretraining_heads import VocabularyHead


class SourceEncoder(LayeredEncoder):
    """The encoder, with the embedding that the decoder shares."""

    def __init__(self, config: EncoderDecoderConfig, weighting: LayerWeighting | None = None) -> None:
        super().__init__(weighting or LAYER_WEIGHTINGS[config.layer_weighting])
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary_rows, config.hidden_size)
        self.dropout = Dropout(config.hidden_dropout_prob)
        self.final_norm = norm_before(config)
        self.add_layers(self._layer(config) for _ in range(config.num_hidden_layers))

    def _layer(self, config: EncoderDecoderConfig) -> EncoderLayer:
        size, eps = config.hidden_size, config.layer_norm_eps
        norms = (norm_behind(config), norm_behind(config))
        return EncoderLayer(Attention(config), feed_forward(config), self.weighting, size, eps, *norms)

    @property
    def word_embedding(self) -> nn.Embedding:
        """The word embedding [V, D]."""
        return self.embedding

    def embedded(self, ids: Tensor, first: int = 0) -> Tensor:
        """Tokens [B, T, D] of int64 [B, T] that stand at the positions from `first` on."""
        size = self.config.hidden_size
        words = self.embedding(ids) * math.sqrt(size)
        return self.dropout(words + positions(first, ids.shape[1], size, ids.device))

    def embed(self, input_ids: Tensor, attention_mask: Tensor | None) -> tuple[Tensor, AttentionInputs]:
        """Embedded tokens [B, T, D] of int64 [B, T], and the mask for the layers."""
        return self.embedded(input_ids), AttentionInputs(mask=attention_mask)


class OutputLayer(VocabularyHead):
    """softmax(W phi + b) without the softmax; phi is the last hidden state itself."""

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__()
        self.add_output_layer(config)

    def features(self, hidden: Tensor) -> Tensor:
        """What the output matrix is multiplied with: `hidden` [..., D] as it is."""
        return hidden


@dataclass
class DecoderState:
    """Where the decoding of a batch of sentences stands: what every layer keeps, and how many tokens were read."""

    layers: list[LayerCache]
    source_mask: Tensor | None
    """bool [B, S], True at tokens."""
    length: int = 0

    def rows(self, chosen: Tensor) -> "DecoderState":
        """The rows `chosen` int64 [B'] of the batch, which may repeat and leave out."""
        mask = None if self.source_mask is None else self.source_mask.index_select(0, chosen)
        return DecoderState([layer.rows(chosen) for layer in self.layers], mask, self.length)


class Decoding:
    """What a module that has these parts can do: read a source, and give the states of next tokens behind others."""

    encoder: SourceEncoder
    decoder: nn.ModuleList
    decoder_norm: LayerNorm | None

    @property
    def decoder_layers(self) -> list[DecoderLayer]:
        """The layers of the decoder."""
        return cast("list[DecoderLayer]", list(self.decoder))

    def begin(self, input_ids: Tensor, attention_mask: Tensor | None) -> DecoderState:
        """Read the source: int64 [B, S], and bool [B, S] with True at tokens (None: all are)."""
        mask = none_if_all_tokens(attention_mask)
        memory = self.remembered(self.encoder(input_ids, mask)[-1])
        return DecoderState([layer.begun(memory) for layer in self.decoder_layers], mask)

    def remembered(self, last: Tensor) -> Tensor:
        """What the decoder sees of the source, [B, S, D]: the encoder's `last` states, normalised if norms precede."""
        return last if self.encoder.final_norm is None else self.encoder.final_norm(last)

    def decode(self, target_ids: Tensor, state: DecoderState) -> Tensor:
        """Hidden states [B, T, D] of the next tokens int64 [B, T] of the targets; `state` goes on behind them."""
        length = target_ids.shape[1]
        hidden = self.encoder.embedded(target_ids, state.length)
        mask = None
        if length > 1:
            # Token i sees what was there before, itself, and the tokens before it.
            mask = torch.ones(1, length, state.length + length, dtype=torch.bool, device=target_ids.device)
            mask = mask.tril(diagonal=state.length)
        for layer, kept in zip(self.decoder_layers, state.layers, strict=True):
            hidden = layer(hidden, kept, mask, state.source_mask)
        state.length += length
        return hidden if self.decoder_norm is None else self.decoder_norm(hidden)
