"""The residual sums of all blocks of a forward pass, and the combinations of them that the next blocks read.

Source: GPT-BERT, after the published code (docs/papers/gpt-bert.md, "Layer mixing"). Every combination reads all sums
before it, so on any device the time depends on memory traffic. Therefore the sums are in one tensor, and a combination
is one product of a vector and a matrix, like the gradient of its weights. The gradients of the sums are collected in
one tensor, too, which works because block j + 1 reads only the output of block j, so its gradient comes first.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


class BlockSums:
    """The embedding output and the sums of the blocks of one forward pass, before they are combined."""

    def __init__(self, embedded: Tensor, weights: Sequence[Tensor]) -> None:
        """`weights[j]` [j + 2] are the weights after block j (from 0): of the embedding and of the blocks 0 to j."""
        self._embedded, self._weights = embedded, weights
        self.kept = embedded.new_empty((len(weights) + 1, *embedded.shape))
        """[1 + blocks, ...]: the embedding output and the sums so far."""
        self.kept[0].copy_(embedded.detach())
        self.gradients: Tensor | None = None
        """[1 + blocks, elements]: gradients of the sums so far in the backward pass."""

    def combined(self, block: int, summed: Tensor) -> Tensor:
        """Return the input after block `block`, whose sum is `summed`: the weighted sums so far. May be called
        repeatedly.
        """
        result: Tensor = _Combination.apply(
            self._weights[block], summed, self._embedded if block == 0 else None, self, block
        )
        return result

    def at(self, rows: Tensor) -> "BlockSums":
        """Return the sums at the flat positions `rows` int64 [M] of sums [B, T, D]; without gradients."""
        sums = object.__new__(BlockSums)
        sums._embedded, sums._weights, sums.gradients = self._embedded, self._weights, None
        sums.kept = self.kept.flatten(1, 2).index_select(1, rows)
        return sums


class _Combination(torch.autograd.Function):
    """`BlockSums.combined`; only the last sum is an input, because the gradients of the others are collected."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, summed: Tensor, first: Tensor | None, sums: BlockSums, block: int) -> Tensor:
        ctx.save_for_backward(weights)
        ctx.sums, ctx.block = sums, block
        sums.kept[block + 1].copy_(summed)
        with torch.autocast(summed.device.type, enabled=False):
            return torch.mv(sums.kept[: block + 2].flatten(1).t(), weights.to(sums.kept.dtype)).view(summed.shape)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        (weights,) = ctx.saved_tensors
        sums, n = ctx.sums, ctx.block + 2
        kept, flat = sums.kept[:n].flatten(1), gradient.reshape(-1).to(sums.kept.dtype)
        with torch.autocast(gradient.device.type, enabled=False):
            if sums.gradients is None:
                sums.gradients = torch.zeros_like(sums.kept.flatten(1))
            collected = sums.gradients[:n].addcmul_(weights.to(kept.dtype)[:, None], flat)
            of_weights = torch.mv(kept, flat).to(weights.dtype)
        of_embedded = collected[0].view(gradient.shape) if ctx.block == 0 else None
        return of_weights, collected[-1].view(gradient.shape), of_embedded, None, None
