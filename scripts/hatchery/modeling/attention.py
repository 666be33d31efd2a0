"""Multi-head attention of all model families: its inputs, and its computation without projections (`attend`).

A `Packing` keeps only the tokens of a batch, concatenated without padding, because padding costs as much as text in
every matrix product. Only the attention itself arranges the tokens as sequences.

A `TokenCache` stores the keys and values of earlier tokens, so that a growing text is computed token by token. The
results with a cache are exact if the state of a token depends only on this token and earlier tokens, as in every causal
model here. Relative positions do not invalidate the cache, because they change the scores but not the keys. Layers that
read several earlier layers do not invalidate it either, because they read the states of the same token.

On a GPU, `attend` uses torch's fused kernel. On the CPU, `attend` uses the kernel only for inputs for which the kernel
was measured to be faster (benchmarks/attention.py). In all other cases, and whenever the attention probabilities are
requested, `attend` uses separate operations. The output of a query that may attend to no key is finite.
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
    """Keys and values [B, H, S, d] of the tokens so far, in one layer; None before the first token."""

    kept: tuple[Tensor, Tensor] | None = None

    def extended(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Append keys and values of the next tokens to the cache, and return the keys and values of all tokens."""
        if self.kept is not None:
            keys, values = torch.cat([self.kept[0], keys], dim=2), torch.cat([self.kept[1], values], dim=2)
        self.kept = (keys, values)
        return self.kept

    def rows(self, chosen: Tensor) -> "TokenCache":
        """Return the cache of the sequences with indices `chosen` int64 [B'] in the batch."""
        if self.kept is None:
            return TokenCache()
        return TokenCache((self.kept[0].index_select(0, chosen), self.kept[1].index_select(0, chosen)))


@dataclass
class LayerCache:
    """Keys and values [B, H, length, d] in one decoder layer: of the source, and of the target's tokens so far."""

    source: tuple[Tensor, Tensor]
    own: TokenCache

    def rows(self, chosen: Tensor) -> "LayerCache":
        """Return the cache of the sequences with indices `chosen` int64 [B'] in the batch."""
        source = (self.source[0].index_select(0, chosen), self.source[1].index_select(0, chosen))
        return LayerCache(source, self.own.rows(chosen))


class Packing(NamedTuple):
    """The positions that the layers compute in a batch [B, T]. The layers omit all other positions."""

    rows: Tensor
    """int64 [N]: flat positions b * T + t of the computed positions, ascending."""
    batch: int
    """Number of sequences, B."""
    length: int
    """Number of positions of a sequence, T."""

    def pack(self, values: Tensor) -> Tensor:
        """Return the vectors [N, ...] of `values` [B, T, ...] at the N computed positions."""
        return values.flatten(0, 1).index_select(0, self.rows)

    def unpack(self, values: Tensor) -> Tensor:
        """Return `values` [N, ...], the vectors at the N computed positions, arranged as [B, T, ...]. Vectors at the
        omitted positions are zeros.
        """
        laid_out = values.new_zeros((self.batch * self.length, *values.shape[1:]))
        return laid_out.index_copy(0, self.rows, values).view(self.batch, self.length, *values.shape[1:])


class AttentionInputs(NamedTuple):
    """Inputs of a layer's attention in addition to the hidden states. Most of these inputs are the same in all layers
    of a forward pass.
    """

    relative_embedding: Tensor | None = None
    """The relative embedding after its layer norm, [2 * bucket_size - 1, D]; None without relative positions."""
    positions: PositionIndices | None = None
    """Indices of query-key pairs in the tables of position scores; None without relative positions."""
    mask: Tensor | None = None
    """Keys that each query may attend to; None allows all keys.

    The mask is bool [B, T], True at keys that are tokens, or bool [B, T, T], True where query i may attend to key j. A
    mask [1, T, T] applies to all sequences.
    """
    packing: Packing | None = None
    """Positions that the layers compute. If a packing is given, hidden states are [N, D] instead of [B, T, D]."""
    query_rows: Tensor | None = None
    """Flat position b * T + t of one query per sequence, int64 [B]. A layer then returns only the states of these
    queries, [B, D].

    If None, the layers compute all queries. Query rows require evaluation mode and cannot be combined with a packing.
    """
    cache: TokenCache | None = None
    """Keys and values of the layer's earlier tokens. If a cache is given, hidden states are those of the new tokens,
    and the layer appends the keys and values of the new tokens to the cache.

    `positions` and `mask` then relate the queries of the new tokens to the keys of all S tokens: [1, T, S] or [B, T,
    S].
    """
    probabilities: list[Tensor] | None = None
    """List to which every layer appends its attention probabilities [B, H, T, S]. If a list is given, the fused kernel
    is not used, because it returns no probabilities.

    A list cannot be combined with a packing or with `query_rows`.
    """
    rotary: Tensor | None = None
    """Cosines and sines [2, T, d] that rotate queries and keys; None without rotary positions."""
    first_values: Tensor | None = None
    """The values [B, T, D] of the first layer, for models whose later layers mix their own values with the first
    layer's."""


def with_causal_mask(mask: Tensor | None, causal: bool | Tensor, length: int, device: torch.device) -> Tensor | None:
    """Return `mask` with the restriction that no token of a causal sequence attends to a later token.

    `causal` is a flag for all sequences, or bool [B] with a flag for each sequence. The result is bool [B, T, T], with
    two exceptions. If no sequence is causal, the mask is returned unchanged. If all sequences are causal and the mask
    is None, the result is [1, T, T]. If `causal` is bool [B], the exceptions do not apply on a GPU and under
    torch.compile, because there the flags are not read.
    """
    if isinstance(causal, Tensor) and causal.device.type == "cpu" and not torch.compiler.is_compiling():
        # Usually all sequences of a batch are causal, or no sequence is causal; then one mask [1, T, T] or no causal
        # mask is sufficient. Check the flags only on the CPU, because on a GPU the check would synchronise with the
        # device.
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
    """Return `mask`, or None if the mask is known to hide no token.

    On the CPU, the mask is read, because reading it is cheaper than applying it to all scores. The mask is not read on
    a GPU, where reading would synchronise with the device, nor under torch.compile, where reading would break the
    graph.
    """
    if mask is None or mask.device.type != "cpu" or torch.compiler.is_compiling():
        return mask
    return None if bool(mask.all()) else mask


def split_heads(projected: Tensor, n_heads: int, packing: Packing | None = None) -> Tensor:
    """Return `projected` [B, T, D] divided into heads of width d = D / H: [B, H, T, d].

    If a packing is given, `projected` is [N, D], for the packing's N positions, and the result is 0 at the omitted
    positions.
    """
    if packing is not None:
        projected = packing.unpack(projected)
    return projected.unflatten(-1, (n_heads, -1)).transpose(1, 2)


def join_heads(context: Tensor, packing: Packing | None = None) -> Tensor:
    """Return the concatenated heads of `context` [B, H, T, d]: [B, T, D], or [N, D] for the N positions of a packing if
    a packing is given. This function is the inverse of `split_heads`.
    """
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
    """Return softmax(scale * query @ key^T + position_scores) @ value, [B, H, T, d] like `query`.

    With a cache, `key` and `value` are [B, H, S, d], and the last dimension of each shape below is S instead of T.
    `mask` is bool [B, T], True at keys that are tokens, or bool [B, T, T], True where query i may attend to key j; None
    hides no key. `dropout` is applied to the probabilities. `position_scores` [B, H, T, T] are not multiplied by
    `scale`. If the list `kept` is given, the probabilities [B, H, T, T] before dropout are appended to it.

    A query that may attend to no key under a mask [B, T, T] gets a context of zeros and probabilities of 0, as in
    GPT-BERT. In a sequence without any token, the context is finite but meaningless.
    """
    blind = None if mask is None or mask.dim() == 2 else ~mask.any(dim=-1)[:, None, :, None]
    # Give hidden query-key pairs the lowest finite score instead of -inf. The probability of a hidden pair is still
    # exactly 0. But if all keys of a query are hidden, a softmax over -inf would return NaN, which would spread through
    # the gradients. Torch's fused kernel without position scores reads the Boolean mask itself.
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
    """Return whether to use torch's fused kernel. On a GPU, the kernel is always used. On the CPU, the kernel is used
    if it supports the inputs and was measured to be faster than separate operations.

    On the CPU, the fused kernel supports neither dropout nor gradients of the position scores: torch would use
    operations slower than `attend_written_out`. On the CPU, the kernel takes 0.4 to 1.0 times as long as separate
    operations in fp32, and up to 5 times as long in bf16. On a GPU, the kernel supports dropout and gradients of the
    position scores. Unlike the separate operations, it stores no T x T probabilities. No times were measured on a GPU.
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
    # Apply dropout in the data type of the following matrix product, which halves the memory traffic under autocast.
    probabilities = torch.softmax(full_precision(scores), dim=-1).to(value.dtype)
    if kept is not None:
        kept.append(probabilities)
    return torch.bmm(dropout(probabilities).flatten(0, 1), value).unflatten(0, batch_and_heads)
