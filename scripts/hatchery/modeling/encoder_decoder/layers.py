"""The blocks of an encoder with a decoder: attention to oneself or to the source, positions, and the decoder's layer.

Source: "Attention Is All You Need", Sections 3.1 to 3.5. The encoder's layer is the one of all families; the decoder's
has a third block, which attends to the encoded source. Keys and values are kept from step to step (`LayerCache`).
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from hatchery.modeling.attention import AttentionInputs, Packing, TokenCache, attend, join_heads, split_heads
from hatchery.modeling.encoder_decoder.configuration import EncoderDecoderConfig
from hatchery.modeling.feed_forward import FeedForward
from hatchery.modeling.norm_and_dropout import Dropout, LayerNorm

LONGEST_WAVE = 10_000


def positions(first: int, length: int, size: int, device: torch.device) -> Tensor:
    """Sines and cosines fp32 [length, size] of the positions from `first` on, sines in the first half."""
    half = (size + 1) // 2
    rates = torch.exp(torch.arange(half, device=device, dtype=torch.float64) * (-math.log(LONGEST_WAVE) / half))
    angles = torch.arange(first, first + length, device=device, dtype=torch.float64)[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], dim=1)[:, :size].float()


def norm(config: EncoderDecoderConfig) -> LayerNorm:
    """A layer norm of the model."""
    return LayerNorm(config.hidden_size, config.layer_norm_eps, affine=True)


def norm_before(config: EncoderDecoderConfig) -> LayerNorm | None:
    """The norm in front of a block; none where norms stand behind the sums."""
    return norm(config) if config.normalisation == "pre_norm" else None


def norm_behind(config: EncoderDecoderConfig) -> LayerNorm | None:
    """The norm behind a sum; none where norms stand in front of the blocks."""
    return norm(config) if config.normalisation == "post_norm" else None


def feed_forward(config: EncoderDecoderConfig) -> FeedForward:
    """The block of two linear layers with a ReLU between them."""
    return FeedForward(
        config.hidden_size,
        config.intermediate_size,
        config.hidden_dropout_prob,
        gated=False,
        bias=True,
        relu=True,
        pre_layer_norm=norm_before(config),
    )


class Attention(nn.Module):
    """[Norm,] multi-head attention, output projection, dropout. No residual inside."""

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__()
        size = config.hidden_size
        self.n_heads = config.num_attention_heads
        self.scale = 1 / math.sqrt(config.head_size)
        self.pre_layer_norm = norm_before(config)
        self.query_projection = nn.Linear(size, size)
        self.key_projection = nn.Linear(size, size)
        self.value_projection = nn.Linear(size, size)
        self.output_projection = nn.Linear(size, size)
        self.probability_dropout = Dropout(config.attention_probs_dropout_prob)
        self.output_dropout = Dropout(config.hidden_dropout_prob)

    def forward(self, hidden: Tensor, inputs: AttentionInputs) -> Tensor:
        """Attend within `hidden` [B, T, D], or [N, D] with a packing; as a layer of the encoder asks for it."""
        normalised = self.normalised(hidden)
        keys, values = self.keys_and_values(normalised, inputs.packing)
        return self.attended(normalised, keys, values, inputs.mask, inputs.packing)

    def normalised(self, hidden: Tensor) -> Tensor:
        """What queries, and within one text keys and values, are made of."""
        return hidden if self.pre_layer_norm is None else self.pre_layer_norm(hidden)

    def keys_and_values(self, states: Tensor, packing: Packing | None = None) -> tuple[Tensor, Tensor]:
        """Keys and values [B, H, S, d] of `states` [B, S, D]."""
        key, value = self.key_projection(states), self.value_projection(states)
        return split_heads(key, self.n_heads, packing), split_heads(value, self.n_heads, packing)

    def attended(
        self, normalised: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, packing: Packing | None = None
    ) -> Tensor:
        """The block's output [B, T, D] for queries from `normalised` [B, T, D]; the mask is that of `attend`."""
        query = split_heads(self.query_projection(normalised), self.n_heads, packing)
        context = attend(query, keys, values, self.scale, mask, self.probability_dropout)
        return self.output_dropout(self.output_projection(join_heads(context, packing)))


@dataclass
class LayerCache:
    """Keys and values [B, H, ., d] that one layer of the decoder has computed: of the source, and of its own tokens."""

    source: tuple[Tensor, Tensor]
    own: TokenCache

    def rows(self, chosen: Tensor) -> "LayerCache":
        """The rows `chosen` int64 [B'] of the batch."""
        source = (self.source[0].index_select(0, chosen), self.source[1].index_select(0, chosen))
        return LayerCache(source, self.own.rows(chosen))


class DecoderLayer(nn.Module):
    """Attention to the target's tokens so far, attention to the source, feed-forward block; a residual around each."""

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__()
        self.attention = Attention(config)
        self.attention_norm = norm_behind(config)
        self.source_attention = Attention(config)
        self.source_attention_norm = norm_behind(config)
        self.feed_forward = feed_forward(config)
        self.feed_forward_norm = norm_behind(config)

    def begun(self, memory: Tensor) -> LayerCache:
        """The cache before the first token, of the encoded source [B, S, D]."""
        return LayerCache(self.source_attention.keys_and_values(memory), TokenCache())

    def forward(self, hidden: Tensor, cache: LayerCache, own_mask: Tensor | None, source_mask: Tensor | None) -> Tensor:
        """Transform `hidden` [B, T, D], the states of the tokens that follow those in `cache`, which grows by them."""
        normalised = self.attention.normalised(hidden)
        keys, values = cache.own.extended(*self.attention.keys_and_values(normalised))
        attended = self.attention.attended(normalised, keys, values, own_mask)
        hidden = _summed(hidden, attended, self.attention_norm)
        of_source = self.source_attention.attended(self.source_attention.normalised(hidden), *cache.source, source_mask)
        hidden = _summed(hidden, of_source, self.source_attention_norm)
        return _summed(hidden, self.feed_forward(hidden), self.feed_forward_norm)


def _summed(hidden: Tensor, added: Tensor, behind: LayerNorm | None) -> Tensor:
    return hidden + added if behind is None else behind(hidden + added)
