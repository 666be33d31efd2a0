"""The attention itself, between the projections: scores, mask, softmax, dropout and the weighted sum of the values.

Every model family goes through `attend`, which takes torch's fused kernel where that was measured to be faster and
writes the steps out elsewhere (benchmarks/attention.py). Rows that may attend to nothing stay finite.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from hatchery.modeling.attention_inputs import Packing
from hatchery.modeling.numerics import Dropout, full_precision


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
) -> Tensor:
    """softmax(scale * query @ key^T + position_scores) @ value, each [B, H, T, d]; returns [B, H, T, d].

    `mask` is bool, [B, T] with True at keys that are tokens or [B, T, T] with True where query i may attend to key j;
    None hides nothing. `dropout` is applied to the probabilities. `position_scores` [B, H, T, T] are added as they
    are, so they are scaled already. A query that may attend to nothing gets a finite context without meaning.
    """
    if mask is not None:
        mask = mask[:, None, None, :] if mask.dim() == 2 else mask[:, None]
    if _fused_is_faster(query, position_scores, dropout):
        return _fused(query, key, value, scale, mask, dropout, position_scores)
    return _written_out(query, key, value, scale, mask, dropout, position_scores)


def _fused_is_faster(query: Tensor, position_scores: Tensor | None, dropout: Dropout) -> bool:
    """On the CPU torch's fused kernel knows neither dropout nor gradients of the position scores."""
    if query.device.type != "cpu":
        return True
    learns_positions = torch.is_grad_enabled() and position_scores is not None and position_scores.requires_grad
    return not learns_positions and dropout.active_probability == 0


def _fused(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scale: float,
    mask: Tensor | None,
    dropout: Dropout,
    position_scores: Tensor | None,
) -> Tensor:
    bias = mask
    if position_scores is not None:
        bias = (position_scores if mask is None else _hide(position_scores, mask)).to(query.dtype)
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask=bias, dropout_p=dropout.active_probability, scale=scale
    )


def _written_out(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scale: float,
    mask: Tensor | None,
    dropout: Dropout,
    position_scores: Tensor | None,
) -> Tensor:
    batch, heads, length, _ = query.shape
    query, key, value = (tensor.flatten(0, 1) for tensor in (query, key, value))
    if position_scores is None:
        scores = torch.bmm(query * scale, key.transpose(1, 2))
    elif position_scores.dtype == query.dtype:
        scores = torch.baddbmm(position_scores.flatten(0, 1), query, key.transpose(1, 2), alpha=scale)
    else:
        scores = torch.bmm(query * scale, key.transpose(1, 2)) + position_scores.flatten(0, 1)
    scores = scores.unflatten(0, (batch, heads))
    if mask is not None:
        scores = _hide(scores, mask)
    # Dropped in the precision of the product that reads them: half the memory traffic under autocast.
    probabilities = dropout(torch.softmax(full_precision(scores), dim=-1).to(value.dtype))
    return torch.bmm(probabilities.flatten(0, 1), value).unflatten(0, (batch, heads))


def _hide(scores: Tensor, mask: Tensor) -> Tensor:
    """The lowest finite score where `mask` is False.

    Not -inf: a hidden key gets probability exactly 0 all the same, and a row without any token stays finite instead of
    spreading NaN through the gradients.
    """
    return scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
