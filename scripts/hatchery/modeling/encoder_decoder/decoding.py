"""The modules of a translation model, and decoding: the source is encoded once, and the target is decoded token by
token.

Source: "Attention Is All You Need", Sections 3.1 to 3.5; "A Natural Bias for Language Generation Models", Section 2
(the output layer softmax(W phi + b)). Source and target share a vocabulary and an embedding matrix. Embeddings are
multiplied by sqrt(D), and sines and cosines of the positions are added. Encoder layers are `EncoderLayer`s. Decoder
layers also attend to the encoded source. The keys and values of earlier tokens are cached (`LayerCache`). Exported
models contain the same modules.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from hatchery.modeling.attention import (
    AttentionInputs,
    LayerCache,
    TokenCache,
    none_if_all_tokens,
)
from hatchery.modeling.encoder import LayeredEncoder
from hatchery.modeling.encoder_decoder.config import EncoderDecoderConfig
from hatchery.modeling.layer_weighting import LAYER_WEIGHTINGS, LayerWeighting
from hatchery.modeling.layers import EncoderLayer, FeedForward, MultiHeadAttention, VocabularyHead, word_vectors
from hatchery.modeling.norm_and_dropout import Dropout, LayerNorm

LONGEST_WAVE = 10_000


def positions(first: int, length: int, size: int, device: torch.device) -> Tensor:
    """Return sines and cosines fp32 [length, size] of the positions from `first` on, sines in the first half."""
    half = (size + 1) // 2
    rates = torch.exp(torch.arange(half, device=device, dtype=torch.float64) * (-math.log(LONGEST_WAVE) / half))
    angles = torch.arange(first, first + length, device=device, dtype=torch.float64)[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], dim=1)[:, :size].float()


def norm(config: EncoderDecoderConfig) -> LayerNorm:
    """Return a new layer norm with the model's width and epsilon."""
    return LayerNorm(config.hidden_size, config.layer_norm_eps, affine=True)


def norm_before(config: EncoderDecoderConfig) -> LayerNorm | None:
    """Return the norm before a block in pre-norm models; None in post-norm models."""
    return norm(config) if config.normalisation == "pre_norm" else None


def norm_behind(config: EncoderDecoderConfig) -> LayerNorm | None:
    """Return the norm after a residual sum in post-norm models; None in pre-norm models."""
    return norm(config) if config.normalisation == "post_norm" else None


def feed_forward(config: EncoderDecoderConfig) -> FeedForward:
    """Return a feed-forward block: two linear layers with a ReLU between them."""
    return FeedForward(
        config.hidden_size,
        config.intermediate_size,
        config.hidden_dropout_prob,
        gated=False,
        bias=True,
        relu=True,
        pre_layer_norm=norm_before(config),
    )


class DecoderProbabilities(NamedTuple):
    """Attention probabilities of all decoder layers; each layer appends one tensor to the list of self-attention and
    one to the list of cross-attention."""

    own: list[Tensor]
    """[B, H, T, T'] per layer: attention to the target's tokens so far."""
    source: list[Tensor]
    """[B, H, T, S] per layer: attention to the source."""


class DecoderLayer(nn.Module):
    """Decoder layer: attention to the target's tokens so far, attention to the source, and feed-forward block, each
    with a residual.
    """

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(config, norm_before(config))
        self.attention_norm = norm_behind(config)
        self.source_attention = MultiHeadAttention(config, norm_before(config))
        self.source_attention_norm = norm_behind(config)
        self.feed_forward = feed_forward(config)
        self.feed_forward_norm = norm_behind(config)

    def begun(self, memory: Tensor) -> LayerCache:
        """Return a cache that contains the encoded source `memory` [B, S, D] and no target tokens."""
        return LayerCache(self.source_attention.keys_and_values(memory), TokenCache())

    def forward(
        self,
        hidden: Tensor,
        cache: LayerCache,
        own_mask: Tensor | None,
        source_mask: Tensor | None,
        kept: "DecoderProbabilities | None" = None,
    ) -> Tensor:
        """Return the output [B, T, D] for the states `hidden` [B, T, D] of new target tokens, and append the tokens to
        the cache.

        `own_mask` and `source_mask` are the masks of the attention to the target and to the source (see `attend`).
        """
        own, of_source = (None, None) if kept is None else (kept.own, kept.source)
        attended = self.attention(hidden, AttentionInputs(mask=own_mask, cache=cache.own, probabilities=own))
        hidden = _summed(hidden, attended, self.attention_norm)
        queries = self.source_attention.queries(self.source_attention.normalised(hidden))
        attended = self.source_attention.attended(queries, *cache.source, source_mask, kept=of_source)
        hidden = _summed(hidden, attended, self.source_attention_norm)
        return _summed(hidden, self.feed_forward(hidden), self.feed_forward_norm)


def _summed(hidden: Tensor, added: Tensor, behind: LayerNorm | None) -> Tensor:
    return hidden + added if behind is None else behind(hidden + added)


class SourceEncoder(LayeredEncoder):
    """The encoder of source sentences, with the embedding that the decoder also uses."""

    def __init__(self, config: EncoderDecoderConfig, weighting: LayerWeighting | None = None) -> None:
        super().__init__(weighting or LAYER_WEIGHTINGS[config.layer_weighting])
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary_rows, config.hidden_size)
        self.dropout = Dropout(config.hidden_dropout_prob)
        self.final_norm = norm_before(config)
        self.add_layers(self._layer(config) for _ in range(config.num_hidden_layers))

    def _layer(self, config: EncoderDecoderConfig) -> EncoderLayer:
        size, eps = config.hidden_size, config.layer_norm_eps
        attention, norms = MultiHeadAttention(config, norm_before(config)), (norm_behind(config), norm_behind(config))
        return EncoderLayer(attention, feed_forward(config), self.weighting, size, eps, *norms)

    @property
    def word_embedding(self) -> nn.Embedding:
        """Return the word embedding [V, D]."""
        return self.embedding

    def embedded(self, ids: Tensor, first: int = 0) -> Tensor:
        """Return embedded tokens [B, T, D] at the positions from `first` on; `ids` are ids or word vectors
        (`word_vectors`).
        """
        size = self.config.hidden_size
        words = word_vectors(self.embedding, ids) * math.sqrt(size)
        return self.dropout(words + positions(first, ids.shape[1], size, ids.device))

    def embed(self, input_ids: Tensor, attention_mask: Tensor | None) -> tuple[Tensor, AttentionInputs]:
        """Return embedded tokens [B, T, D] of `input_ids` int64 [B, T], and the attention mask for the layers."""
        return self.embedded(input_ids), AttentionInputs(mask=attention_mask)


class OutputLayer(VocabularyHead):
    """Output layer of a translation model. The logits are W phi + b, where phi is the hidden state of the decoder's
    last layer.
    """

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__()
        self.add_output_layer(config)

    def features(self, hidden: Tensor) -> Tensor:
        """Return `hidden` [..., D] unchanged: the vectors that the output matrix multiplies."""
        return hidden


@dataclass
class DecoderState:
    """State of the decoding of a batch: the cache of every layer, and the number of target tokens so far (`length`)."""

    layers: list[LayerCache]
    source_mask: Tensor | None
    """Mask of the source: bool [B, S], True at tokens."""
    length: int = 0

    def rows(self, chosen: Tensor) -> "DecoderState":
        """Return the state of the sentences with indices `chosen` int64 [B'], which may repeat and omit sentences."""
        mask = None if self.source_mask is None else self.source_mask.index_select(0, chosen)
        return DecoderState([layer.rows(chosen) for layer in self.layers], mask, self.length)


class Decoding:
    """Methods of a module with an encoder and a decoder. They encode sources, and compute states of target tokens."""

    encoder: SourceEncoder
    decoder: nn.ModuleList
    decoder_norm: LayerNorm | None

    @property
    def decoder_layers(self) -> list[DecoderLayer]:
        """Return the layers of the decoder."""
        return cast("list[DecoderLayer]", list(self.decoder))

    def begin(self, input_ids: Tensor, attention_mask: Tensor | None) -> DecoderState:
        """Encode the source int64 [B, S] with mask bool [B, S] (None: all positions are tokens), and return the state
        of the decoding before the first target token.
        """
        mask = none_if_all_tokens(attention_mask)
        memory = self.remembered(self.encoder(input_ids, mask)[-1])
        return DecoderState([layer.begun(memory) for layer in self.decoder_layers], mask)

    def remembered(self, last: Tensor) -> Tensor:
        """Return the encoded source [B, S, D] for the decoder, given `last`, the output of the encoder's last layer. In
        pre-norm models, the result is the final layer norm of `last`.
        """
        return last if self.encoder.final_norm is None else self.encoder.final_norm(last)

    def decode(self, target_ids: Tensor, state: DecoderState, kept: DecoderProbabilities | None = None) -> Tensor:
        """Return the hidden states [B, T, D] of the next target tokens int64 [B, T], and append the tokens to `state`.

        If `kept` is given, each layer appends its attention probabilities to `kept`.
        """
        length = target_ids.shape[1]
        hidden = self.encoder.embedded(target_ids, state.length)
        mask = None
        if length > 1:
            # Token i attends to the earlier tokens in the cache, to itself, and to the new tokens before it.
            mask = torch.ones(1, length, state.length + length, dtype=torch.bool, device=target_ids.device)
            mask = mask.tril(diagonal=state.length)
        for layer, layer_cache in zip(self.decoder_layers, state.layers, strict=True):
            hidden = layer(hidden, layer_cache, mask, state.source_mask, kept)
        state.length += length
        return hidden if self.decoder_norm is None else self.decoder_norm(hidden)
