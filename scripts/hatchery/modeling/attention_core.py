"""The attention itself, between the projections: scores, mask, softmax, dropout and the weighted sum of the values.

Every model family goes through `attend`, except LTG-BERT's under bf16 on the CPU (`bf16_on_cpu`). It takes torch's
fused kernel where that was measured to be faster and writes the steps out elsewhere (benchmarks/attention.py). Rows
that may attend to nothing stay finite.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from hatchery.modeling.attention_inputs import Packing
from hatchery.modeling.norm_and_dropout import Dropout, full_precision


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
    # Hidden pairs get the lowest finite score and not -inf: their probability is exactly 0 all the same, and a row
    # without any token stays finite instead of spreading NaN through the gradients.
    if mask is not None:
        mask = mask[:, None, None, :] if mask.dim() == 2 else mask[:, None]
    if _fused_is_faster(query, position_scores, dropout):
        return attend_fused(query, key, value, scale, mask, dropout, position_scores)
    return attend_written_out(query, key, value, scale, mask, dropout, position_scores)


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
    probabilities = dropout(torch.softmax(full_precision(scores), dim=-1).to(value.dtype))
    return torch.bmm(probabilities.flatten(0, 1), value).unflatten(0, batch_and_heads)
