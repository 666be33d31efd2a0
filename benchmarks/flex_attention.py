"""The disentangled attention as FlexAttention, whose `score_mod` looks up the two position tables.

Source: LTG-BERT, Section 4, with the parameters and the tables of `hatchery.modeling.ltg.attention`. Compiled for a
GPU, FlexAttention writes no T x T tensor to memory, and needs no T x T position scores before the kernel starts.
Hatchery does not use FlexAttention, because FlexAttention does not drop attention probabilities, has no gradients on a
CPU, and needs a compiler. tests/modeling/test_flex_attention.py checks that the outputs are equal; benchmarks/gpu.py
measures the time.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.attention.flex_attention import flex_attention

from hatchery.modeling.attention import AttentionInputs, join_heads, split_heads
from hatchery.modeling.ltg.attention import DisentangledSelfAttention
from hatchery.modeling.norm_and_dropout import full_precision

ScoreMod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


class FlexSelfAttention(nn.Module):
    """Compute the output of `attention` from its parameters, but without dropout of attention probabilities."""

    def __init__(self, attention: DisentangledSelfAttention, function: Callable[..., Tensor] = flex_attention) -> None:
        """`function` is torch's `flex_attention`, compiled or not."""
        super().__init__()
        self.attention, self.function = attention, function

    def forward(self, hidden: Tensor, inputs: AttentionInputs) -> Tensor:
        """Attend from every token of `hidden` [B, T, D] to the tokens of its sequence; return [B, T, D].

        Padding positions are computed, too.
        """
        attention = self.attention
        if attention.pre_layer_norm is not None:
            hidden = attention.pre_layer_norm(hidden)
        query, key = attention.query_key(hidden, inputs)
        value = split_heads(attention.value_projection(hidden), attention.n_heads)
        score_mod = self._score_mod(query, key, inputs)
        context = self.function(query, key, value, score_mod=score_mod, scale=attention.scale)
        return attention.closed(join_heads(context))

    def _score_mod(self, query: Tensor, key: Tensor, inputs: AttentionInputs) -> ScoreMod:
        """Return FlexAttention's `score_mod`, which adds the position scores of a (query, key) pair and hides masked
        pairs.
        """
        attention, positions, length = self.attention, inputs.positions, query.shape[2]
        assert inputs.relative_embedding is not None and positions is not None
        table = attention.dropout(positions.reached(inputs.relative_embedding))
        position_query, position_key = attention.position_vectors(table)
        # [B, H, T, rows] in fp32, because the gradients of many pairs are summed in one entry.
        by_query = full_precision(query @ (position_key * attention.scale))
        by_key = full_precision(key @ (position_query * attention.scale))
        columns = positions.columns(length)
        of_distance = torch.cat([columns[0].flip(0), columns[1:, 0]])
        mask = visible_pairs(inputs.mask, length)

        def score_mod(score: Tensor, batch: Tensor, head: Tensor, query_at: Tensor, key_at: Tensor) -> Tensor:
            row = of_distance[query_at - key_at + length - 1]
            score = score + by_query[batch, head, query_at, row] + by_key[batch, head, key_at, row]
            if mask is None:
                return score
            # Use the lowest finite score, as in `attend`, so that the output of a query without visible keys is finite.
            return torch.where(mask(batch, query_at, key_at), score, torch.finfo(torch.float32).min)

        return score_mod


def visible_pairs(mask: Tensor | None, length: int) -> Callable[[Tensor, Tensor, Tensor], Tensor] | None:
    """Return a function that tests whether a query may attend to a key, for a mask as in `AttentionInputs`; None
    without a mask, when every query may attend to every key.
    """
    if mask is None:
        return None
    if mask.dim() == 2:
        return lambda batch, query_at, key_at: mask[batch, key_at]
    if len(mask) == 1:
        return lambda batch, query_at, key_at: mask[0, query_at, key_at]
    return lambda batch, query_at, key_at: mask[batch, query_at, key_at]
