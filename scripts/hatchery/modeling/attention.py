"""The attention of all families, between the projections: what a layer's attention is given, and what it computes.

Padding costs as much as text in every matrix product. A `Packing` keeps the tokens of a batch alone, one behind the
other; only the attention itself lays them out as sequences again. A `TokenCache` keeps the keys and values of a text
that grows, so that each of its tokens is computed once. It is exact wherever a token's states depend on itself and the
tokens before it alone: in every causal model here. Relative positions do not disturb, since they enter the scores and
not the keys; nor does a layer that reads all earlier layers, since it reads their states of the same token.

Every model family goes through `attend`. It takes torch's fused kernel where that was measured to be faster and writes
the steps out elsewhere (benchmarks/attention.py). Rows that may attend to nothing stay finite.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from hatchery.modeling.norm_and_dropout import Dropout, full_precision
from hatchery.modeling.relative_positions import PositionIndices


@dataclass
class TokenCache:
    """Keys and values [B, H, S, d] of one layer, of the tokens so far; None before the first."""

    kept: tuple[Tensor, Tensor] | None = None

    def extended(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values with those of the next tokens behind them, which are kept."""
        if self.kept is not None:
            keys, values = torch.cat([self.kept[0], keys], dim=2), torch.cat([self.kept[1], values], dim=2)
        self.kept = (keys, values)
        return self.kept

    def rows(self, chosen: Tensor) -> "TokenCache":
        """The rows `chosen` int64 [B'] of the batch."""
        if self.kept is None:
            return TokenCache()
        return TokenCache((self.kept[0].index_select(0, chosen), self.kept[1].index_select(0, chosen)))


@dataclass
class LayerCache:
    """Keys and values [B, H, ., d] that one layer of a decoder has computed: of the source, and of its own tokens."""

    source: tuple[Tensor, Tensor]
    own: TokenCache

    def rows(self, chosen: Tensor) -> "LayerCache":
        """The rows `chosen` int64 [B'] of the batch."""
        source = (self.source[0].index_select(0, chosen), self.source[1].index_select(0, chosen))
        return LayerCache(source, self.own.rows(chosen))


class Packing(NamedTuple):
    """The positions of a batch [B, T] that are computed; everything else is left out."""

    rows: Tensor
    """int64 [N]: flat positions b * T + t, ascending."""
    batch: int
    """B"""
    length: int
    """T"""

    def pack(self, values: Tensor) -> Tensor:
        """The kept positions [N, ...] of `values` [B, T, ...]."""
        return values.flatten(0, 1).index_select(0, self.rows)

    def unpack(self, values: Tensor) -> Tensor:
        """`values` [N, ...] laid out as [B, T, ...], with zeros at the positions that were left out."""
        laid_out = values.new_zeros((self.batch * self.length, *values.shape[1:]))
        return laid_out.index_copy(0, self.rows, values).view(self.batch, self.length, *values.shape[1:])


class AttentionInputs(NamedTuple):
    """The same for all layers of one forward pass."""

    relative_embedding: Tensor | None = None
    """The normalised table [2 * bucket_size - 1, D]; None without relative positions."""
    positions: PositionIndices | None = None
    """Where the pairs of tokens stand in the score tables; None without relative positions."""
    mask: Tensor | None = None
    """bool [B, T], True at keys that are tokens, or [B, T, T], True where query i may attend to key j; None: all.

    [1, T, T] is the same for all sequences."""
    packing: Packing | None = None
    """If given, hidden states are [N, D] instead of [B, T, D]."""
    query_rows: Tensor | None = None
    """int64 [B]: the flat position b * T + t of each sequence's one query; a layer computes its output alone, [B, D].

    None: everywhere. In evaluation mode only, and never with a packing."""
    cache: TokenCache | None = None
    """If given, hidden states are those of the tokens that follow the ones in this cache of the layer, which grows.

    `positions` and `mask` are then those of these queries and all keys: [1, T, S] or [B, T, S]."""
    probabilities: list[Tensor] | None = None
    """If given, every layer adds those [B, H, T, S] with which it attends, which takes the slow path of `attend`.

    Never with a packing or with `query_rows`."""
    rotary: Tensor | None = None
    """Cosines and sines [2, T, d] by which queries and keys are turned; None without rotary positions."""
    first_values: Tensor | None = None
    """The values [B, T, D] of the first layer, where later layers mix theirs with them."""


def with_causal_mask(mask: Tensor | None, causal: bool | Tensor, length: int, device: torch.device) -> Tensor | None:
    """`mask`, as attention takes it, in which the tokens of causal sequences see nothing behind them.

    `causal` says it of all sequences, or bool [B] of each. Returns bool [B, T, T], [1, T, T] where the mask is None and
    all sequences are causal, and the mask as it is where none is known to be.
    """
    if isinstance(causal, Tensor) and causal.device.type == "cpu" and not torch.compiler.is_compiling():
        # All alike is the rule, and then the sequences share one triangle; on a GPU the look would be a wait.
        causal = bool(causal.all()) or (causal if bool(causal.any()) else False)
    if causal is False:
        return mask
    past = torch.ones((length, length), dtype=torch.bool, device=device).tril()[None]
    if isinstance(causal, Tensor):
        past = past | ~causal[:, None, None]
    if mask is None:
        return past
    return (mask[:, None, :] if mask.dim() == 2 else mask) & past


def none_if_all_tokens(mask: Tensor | None) -> Tensor | None:
    """`mask`, or None where it is known that it hides nothing.

    On the CPU looking at the mask is cheaper than applying it to all scores; on a GPU the look would be a wait for
    the device, and under torch.compile a break of the graph.
    """
    if mask is None or mask.device.type != "cpu" or torch.compiler.is_compiling():
        return mask
    return None if bool(mask.all()) else mask


def split_heads(projected: Tensor, n_heads: int, packing: Packing | None = None) -> Tensor:
    """[B, H, T, d] of `projected` [B, T, D], or of [N, D] with a packing (zeros where nothing was kept)."""
    if packing is not None:
        projected = packing.unpack(projected)
    return projected.unflatten(-1, (n_heads, -1)).transpose(1, 2)


def join_heads(context: Tensor, packing: Packing | None = None) -> Tensor:
    """[B, T, D] of `context` [B, H, T, d], or [N, D] with a packing: the inverse of `split_heads`."""
    joined = context.transpose(1, 2).flatten(2)
    return joined if packing is None else packing.pack(joined)


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scale: float,
    mask: Tensor | None,
    dropout: Dropout,
    position_scores: Tensor | None = None,
    kept: list[Tensor] | None = None,
) -> Tensor:
    """softmax(scale * query @ key^T + position_scores) @ value, each [B, H, T, d]; returns [B, H, T, d].

    `mask` is bool, [B, T] with True at keys that are tokens or [B, T, T] with True where query i may attend to key j;
    None hides nothing. `dropout` is applied to the probabilities. `position_scores` [B, H, T, T] are added as they
    are, so they are scaled already. A query to which a mask [B, T, T] leaves no key gets a context of zeros, as in
    GPT-BERT; one in a sequence without any token a finite one without meaning. Where `kept` is given, the probabilities
    [B, H, T, T], before dropout, are added to it; those of a query without any key are 0.
    """
    blind = None if mask is None or mask.dim() == 2 else ~mask.any(dim=-1)[:, None, :, None]
    # Hidden pairs get the lowest finite score and not -inf: their probability is exactly 0 all the same, and a row
    # without any token stays finite instead of spreading NaN through the gradients.
    if mask is not None:
        mask = mask[:, None, None, :] if mask.dim() == 2 else mask[:, None]
    if kept is None and _fused_is_faster(query, position_scores, dropout):
        context = attend_fused(query, key, value, scale, mask, dropout, position_scores)
    else:
        context = attend_written_out(query, key, value, scale, mask, dropout, position_scores, kept)
    if kept is not None and blind is not None:
        kept[-1] = kept[-1].masked_fill(blind, 0.0)
    return context if blind is None else context.masked_fill(blind, 0.0)


def _fused_is_faster(query: Tensor, position_scores: Tensor | None, dropout: Dropout) -> bool:
    """Which path was measured to be faster, and where the fused kernel can serve at all.

    On the CPU it knows neither dropout nor gradients of the position scores, and falls back to slower steps than ours.
    Where it serves, it takes 0.4 to 1.0 of the time in fp32, but up to 5 times as long in bf16. On a GPU, where nothing
    was measured, it is the one kernel that keeps no T x T probabilities, and it knows both.
    """
    if query.device.type != "cpu":
        return True
    learns_positions = torch.is_grad_enabled() and position_scores is not None and position_scores.requires_grad
    return query.dtype != torch.bfloat16 and dropout.active_probability == 0 and not learns_positions


def attend_fused(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scale: float,
    mask: Tensor | None,
    dropout: Dropout,
    position_scores: Tensor | None,
) -> Tensor:
    """`attend` by torch's fused kernel; `mask` can be broadcast to [B, H, T, T]."""
    bias = mask
    if position_scores is not None:
        lowest = torch.finfo(query.dtype).min
        bias = position_scores.to(query.dtype)
        bias = bias if mask is None else bias.masked_fill(~mask, lowest)
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask=bias, dropout_p=dropout.active_probability, scale=scale
    )


def attend_written_out(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scale: float,
    mask: Tensor | None,
    dropout: Dropout,
    position_scores: Tensor | None,
    kept: list[Tensor] | None = None,
) -> Tensor:
    """`attend` step by step; `mask` can be broadcast to [B, H, T, T]."""
    batch_and_heads = query.shape[:2]
    query, key, value = (tensor.flatten(0, 1) for tensor in (query, key, value))
    if position_scores is None:
        scores = torch.bmm(query * scale, key.transpose(1, 2))
    elif position_scores.dtype == query.dtype:
        scores = torch.baddbmm(position_scores.flatten(0, 1), query, key.transpose(1, 2), alpha=scale)
    else:
        scores = torch.bmm(query * scale, key.transpose(1, 2)) + position_scores.flatten(0, 1)
    scores = scores.unflatten(0, batch_and_heads)
    if mask is not None:
        scores.masked_fill_(~mask, torch.finfo(scores.dtype).min)
    # Dropped in the precision of the product that reads them: half the memory traffic under autocast.
    probabilities = torch.softmax(full_precision(scores), dim=-1).to(value.dtype)
    if kept is not None:
        kept.append(probabilities)
    return torch.bmm(dropout(probabilities).flatten(0, 1), value).unflatten(0, batch_and_heads)
