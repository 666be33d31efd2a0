"""The attention of all families, between the projections: its inputs and its computation.

Padding costs as much as text in every matrix product. A `Packing` keeps only the tokens of a batch, concatenated; only
the attention itself arranges them as sequences again. A `TokenCache` keeps the keys and values of a text that grows, so
that each of its tokens is computed once. It is exact if a token's states depend only on the token and the tokens before
it: in every causal model here. Relative positions are allowed, because they enter the scores and not the keys, and so
is a layer that reads all earlier layers, because it reads their states of the same token.

Every model family calls `attend`. It uses torch's fused kernel where that was measured to be faster, and otherwise
separate operations (benchmarks/attention.py). Rows that may attend to no key stay finite.
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
    """Keys and values [B, H, S, d] of one layer, of the tokens so far; None before the first token."""

    kept: tuple[Tensor, Tensor] | None = None

    def extended(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Append keys and values of the next tokens; store and return the result."""
        if self.kept is not None:
            keys, values = torch.cat([self.kept[0], keys], dim=2), torch.cat([self.kept[1], values], dim=2)
        self.kept = (keys, values)
        return self.kept

    def rows(self, chosen: Tensor) -> "TokenCache":
        """Return the cache of the rows `chosen` int64 [B'] of the batch."""
        if self.kept is None:
            return TokenCache()
        return TokenCache((self.kept[0].index_select(0, chosen), self.kept[1].index_select(0, chosen)))


@dataclass
class LayerCache:
    """Keys and values [B, H, ., d] of one layer of a decoder: of the source, and of the target's tokens so far."""

    source: tuple[Tensor, Tensor]
    own: TokenCache

    def rows(self, chosen: Tensor) -> "LayerCache":
        """Return the cache of the rows `chosen` int64 [B'] of the batch."""
        source = (self.source[0].index_select(0, chosen), self.source[1].index_select(0, chosen))
        return LayerCache(source, self.own.rows(chosen))


class Packing(NamedTuple):
    """The positions of a batch [B, T] that are computed; all others are left out."""

    rows: Tensor
    """int64 [N]: flat positions b * T + t, ascending."""
    batch: int
    """Number of sequences, B."""
    length: int
    """Number of positions of a sequence, T."""

    def pack(self, values: Tensor) -> Tensor:
        """Return the kept positions [N, ...] of `values` [B, T, ...]."""
        return values.flatten(0, 1).index_select(0, self.rows)

    def unpack(self, values: Tensor) -> Tensor:
        """Return `values` [N, ...] arranged as [B, T, ...], with zeros at the positions that were left out."""
        laid_out = values.new_zeros((self.batch * self.length, *values.shape[1:]))
        return laid_out.index_copy(0, self.rows, values).view(self.batch, self.length, *values.shape[1:])


class AttentionInputs(NamedTuple):
    """Inputs of the attention that all layers of one forward pass share."""

    relative_embedding: Tensor | None = None
    """The normalised table [2 * bucket_size - 1, D]; None without relative positions."""
    positions: PositionIndices | None = None
    """Indices of the pairs of tokens in the score tables; None without relative positions."""
    mask: Tensor | None = None
    """bool [B, T], True at keys that are tokens, or [B, T, T], True where query i may attend to key j; None hides no
    key.

    [1, T, T] applies to all sequences.
    """
    packing: Packing | None = None
    """If given, hidden states are [N, D] instead of [B, T, D]."""
    query_rows: Tensor | None = None
    """int64 [B]: the flat position b * T + t of each sequence's only query; a layer computes only its output, [B, D].

    None computes all queries. In evaluation mode only, and never with a packing.
    """
    cache: TokenCache | None = None
    """If given, hidden states are those of new tokens, which follow the tokens in this cache of the layer and are added
    to it.

    `positions` and `mask` are then those of these queries and all keys: [1, T, S] or [B, T, S].
    """
    probabilities: list[Tensor] | None = None
    """If given, every layer appends its attention probabilities [B, H, T, S], which requires the slow path of `attend`.

    Never with a packing or with `query_rows`.
    """
    rotary: Tensor | None = None
    """Cosines and sines [2, T, d] that rotate queries and keys; None without rotary positions."""
    first_values: Tensor | None = None
    """The values [B, T, D] of the first layer, if later layers mix their values with these."""


def with_causal_mask(mask: Tensor | None, causal: bool | Tensor, length: int, device: torch.device) -> Tensor | None:
    """Return `mask` for the attention, in which the tokens of causal sequences see no later token.

    `causal` is a flag for all sequences, or bool [B] for each. Returns bool [B, T, T], or [1, T, T] if the mask is None
    and all sequences are causal, or the unchanged mask if no sequence is known to be causal.
    """
    if isinstance(causal, Tensor) and causal.device.type == "cpu" and not torch.compiler.is_compiling():
        # Usually all sequences are causal or none is, and then they share one triangle; on a GPU the check would
        # synchronise with the device.
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
    """Return `mask`, or None if it is known to hide no token.

    On the CPU reading the mask is cheaper than applying it to all scores; on a GPU reading it would synchronise with
    the device, and under torch.compile it would break the graph.
    """
    if mask is None or mask.device.type != "cpu" or torch.compiler.is_compiling():
        return mask
    return None if bool(mask.all()) else mask


def split_heads(projected: Tensor, n_heads: int, packing: Packing | None = None) -> Tensor:
    """Return [B, H, T, d] of `projected` [B, T, D], or of [N, D] with a packing (zeros at positions that were left
    out).
    """
    if packing is not None:
        projected = packing.unpack(projected)
    return projected.unflatten(-1, (n_heads, -1)).transpose(1, 2)


def join_heads(context: Tensor, packing: Packing | None = None) -> Tensor:
    """Return [B, T, D] of `context` [B, H, T, d], or [N, D] with a packing: the inverse of `split_heads`."""
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
    """Return softmax(scale * query @ key^T + position_scores) @ value, [B, H, T, d] like its inputs.

    `mask` is bool, [B, T] with True at keys that are tokens or [B, T, T] with True where query i may attend to key j;
    None hides no key. `dropout` is applied to the probabilities. `position_scores` [B, H, T, T] are added unscaled, so
    they must be scaled already. A query to which a mask [B, T, T] leaves no key gets a context of zeros, as in
    GPT-BERT; a query in a sequence without any token gets a finite context without meaning. If `kept` is given, the
    probabilities [B, H, T, T], before dropout, are added to it; those of a query without any key are 0.
    """
    blind = None if mask is None or mask.dim() == 2 else ~mask.any(dim=-1)[:, None, :, None]
    # Hidden pairs get the lowest finite score instead of -inf: their probability is still exactly 0, and a row without
    # any token stays finite instead of spreading NaN through the gradients.
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
    """Return whether the fused kernel can be used and was measured to be faster.

    On the CPU it supports neither dropout nor gradients of the position scores, and then uses slower steps than ours.
    If it can be used, it takes 0.4 to 1.0 of the time in fp32, but up to 5 times as long in bf16. On a GPU, where no
    time was measured, it supports both and is the only kernel that stores no T x T probabilities.
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
    """Compute `attend` with torch's fused kernel; `mask` can be broadcast to [B, H, T, T]."""
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
    """Compute `attend` in separate operations; `mask` can be broadcast to [B, H, T, T]."""
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
    # Apply dropout in the precision of the following product: half the memory traffic under autocast.
    probabilities = torch.softmax(full_precision(scores), dim=-1).to(value.dtype)
    if kept is not None:
        kept.append(probabilities)
    return torch.bmm(dropout(probabilities).flatten(0, 1), value).unflatten(0, batch_and_heads)
