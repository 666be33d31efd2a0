"""Disentangled attention read at one position of each sequence, for a last layer of which one prediction is asked.

Source: the definition of `attention`, with the products in another order. With one query per sequence, the key and
value projections are applied to one vector per head of it (`q . (W x_j) = (W^T q) . x_j`) instead of to every token, so
a token costs no more than its products with the positions. Promise: the same numbers up to rounding.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hatchery.modeling.ltg.relative_positions import PositionIndices


class PositionVectors(NamedTuple):
    """What the position scores of one layer are made of."""

    query: Tensor
    """Position queries [H, d, rows], unscaled."""
    key: Tensor
    """Position keys [H, d, rows], unscaled."""
    indices: PositionIndices


def context_at_one(
    hidden: Tensor,
    query_rows: Tensor,
    mask: Tensor | None,
    query_key: nn.Linear,
    value: nn.Linear,
    n_heads: int,
    scale: float,
    vectors: PositionVectors | None,
) -> Tensor:
    """Context [B, D] of the queries at the flat positions `query_rows` int64 [B] (b * T + t), one in each sequence.

    `hidden` [B, T, D] is normalised already, `mask` is bool [B, T] or [B, T, T] as in `attend`, and `vectors` is None
    without relative positions. There is no dropout.
    """
    batch, length, size = hidden.shape
    at = query_rows % length
    # Heads first and scaled: [H, B, d].
    query = F.linear(hidden.flatten(0, 1).index_select(0, query_rows), query_key.weight[:size], query_key.bias[:size])
    query = (query * scale).view(batch, n_heads, -1).transpose(0, 1)
    key_weight = query_key.weight[size:].view(n_heads, -1, size)
    # The keys' bias adds the same to all scores of a query, which softmax ignores.
    key_query = torch.bmm(query, key_weight).transpose(0, 1)
    scores = torch.bmm(key_query, hidden.transpose(1, 2))
    if vectors is not None:
        key_bias = query_key.bias[size:].view(n_heads, 1, -1)
        scores += _position_scores(hidden, at, query, key_weight, key_bias, scale, vectors)
    if mask is not None:
        mask = mask if mask.dim() == 2 else mask[torch.arange(batch, device=mask.device), at]
        scores.masked_fill_(~mask[:, None], torch.finfo(scores.dtype).min)
    mixed = torch.bmm(torch.softmax(scores, dim=-1), hidden).transpose(0, 1)
    context = torch.bmm(mixed, value.weight.view(n_heads, -1, size).transpose(1, 2))
    return context.transpose(0, 1).reshape(batch, size) + value.bias


def _position_scores(
    hidden: Tensor,
    at: Tensor,
    query: Tensor,
    key_weight: Tensor,
    key_bias: Tensor,
    scale: float,
    vectors: PositionVectors,
) -> Tensor:
    """Scaled position scores [B, H, T] of the scaled `query` [H, B, d] at the positions `at` int64 [B].

    `key_weight` [H, d, D] and `key_bias` [H, 1, d] are those of the key projection.
    """
    batch, length, size = hidden.shape
    n_heads, n_rows = len(query), vectors.indices.n_rows
    columns = vectors.indices.columns(length).index_select(0, at)
    position_query = vectors.query * scale
    by_query = torch.bmm(query, vectors.key) + torch.bmm(key_bias, position_query)
    scores = by_query.transpose(0, 1).gather(2, columns[:, None].expand(-1, n_heads, -1))
    by_rows = torch.bmm(key_weight.transpose(1, 2), position_query).transpose(0, 1).reshape(size, n_heads * n_rows)
    by_key = (hidden.flatten(0, 1) @ by_rows).view(batch, length, n_heads, n_rows)
    chosen = columns[:, :, None, None].expand(-1, -1, n_heads, 1)
    return scores + by_key.gather(3, chosen).squeeze(3).transpose(1, 2)
