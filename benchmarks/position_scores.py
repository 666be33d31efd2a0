"""Alternative implementations of LTG-BERT's position scores, which `benchmarks/gpu.py` compares with Hatchery's
implementation.

`skewed` expands the position vectors to all 2T - 1 distances and multiplies these vectors with queries and keys. The T
x T scores are a view of the T x (2T - 1) products, in which each row is shifted. The backward pass of `skewed` is a
matrix product instead of a scatter operation, but `skewed` needs more memory. `by_prefix_sums` reads each score from a
table of position buckets, as Hatchery does, but computes the table's gradient from prefix sums. The keys of a bucket
are consecutive in every row of scores, so the gradient of a bucket is the difference of two prefix sums of the scores'
gradients. tests/modeling/test_position_scores.py checks that both functions return Hatchery's scores.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from hatchery.modeling.ltg.attention import DisentangledSelfAttention
from hatchery.modeling.relative_positions import PositionIndices

ScoresOf = Callable[[DisentangledSelfAttention, Tensor, Tensor, Tensor, PositionIndices], Tensor]
"""`DisentangledSelfAttention._position_scores`, computed from queries and keys [B, H, T, d] and the normalised table.
"""


def skewed(
    attention: DisentangledSelfAttention, query: Tensor, key: Tensor, table: Tensor, positions: PositionIndices
) -> Tensor:
    """Return scaled position scores [batch, heads, tokens, tokens]. The scores of each token at all distances are
    computed first; then each row is shifted, so that its columns are tokens instead of distances.
    """
    batch, heads, length, _ = query.shape
    position_query, position_key = attention.position_vectors(attention.dropout(positions.reached(table)))
    rows = positions.row_of_distance
    by_distance = (position_key * attention.scale).index_select(2, rows.flip(0))

    def shifted(vectors: Tensor, by_distance: Tensor) -> Tensor:
        found = torch.matmul(vectors, by_distance.unsqueeze(0)).flatten(2)
        last = length - 1 + length * (2 * length - 2)
        return found[..., length - 1 : last].view(batch, heads, length, 2 * length - 2)[..., :length]

    by_query = shifted(query, by_distance)
    return by_query + shifted(key, (position_query * attention.scale).index_select(2, rows)).transpose(2, 3)


def by_prefix_sums(
    attention: DisentangledSelfAttention, query: Tensor, key: Tensor, table: Tensor, positions: PositionIndices
) -> Tensor:
    """Return scaled position scores [batch, heads, tokens, tokens]. Each score is read from a table at the position
    bucket of its distance. The gradient of a bucket's entry is the difference of two prefix sums of the scores'
    gradients.
    """
    length = query.shape[2]
    position_query, position_key = attention.position_vectors(attention.dropout(positions.reached(table)))
    columns, first = positions.columns(length), positions.first_distance[: positions.n_rows + 1].long()
    at = torch.arange(length, device=columns.device)[:, None]
    # Table rows from r on belong to the keys up to i - first for query i, and to the queries up to j + first for key j.
    keys_up_to, queries_up_to = (at - first + 1).clamp(0, length), (at + first).clamp(0, length)
    by_query = torch.matmul(query, (position_key * attention.scale).unsqueeze(0))
    by_key = torch.matmul(key, (position_query * attention.scale).unsqueeze(0))
    scores = _LookedUp.apply(by_query, columns, keys_up_to, -1)
    return scores + _LookedUp.apply(by_key, columns.t(), queries_up_to, 1).transpose(2, 3)


class _LookedUp(torch.autograd.Function):
    """Look up values [batch, heads, tokens, tokens] in a table [batch, heads, tokens, buckets]. `columns` int64
    [tokens, tokens] contains the bucket of each value.

    The prefix sums of the values' gradients are taken along the last dimension. The gradient of bucket b is the prefix
    sum at `bounds` b + 1 minus the prefix sum at `bounds` b, multiplied by `sign`. `bounds` has the shape [tokens,
    buckets + 1]; `sign` is -1 if the bounds descend, else 1.
    """

    @staticmethod
    def forward(ctx: Any, table: Tensor, columns: Tensor, bounds: Tensor, sign: int) -> Tensor:
        ctx.save_for_backward(bounds)
        ctx.sign = sign
        return table.gather(3, columns.expand(*table.shape[:3], columns.shape[1]))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        (bounds,) = ctx.saved_tensors
        sums = F.pad(gradient.float().cumsum(3), (1, 0))
        up_to = sums.gather(3, bounds.expand(*sums.shape[:3], -1))
        return (ctx.sign * up_to.diff(dim=3)).to(gradient.dtype), None, None, None
