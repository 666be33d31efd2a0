"""Sums of the residual stream after each block (attention or feed-forward), and their learned combinations.

The input of a block is a weighted sum of the embedding output and the residual sums of all earlier blocks. Source:
GPT-BERT, after the published code (docs/papers/gpt-bert.md, "Layer mixing"). Most of the time of these combinations is
memory traffic, because every combination reads all earlier sums. Therefore all sums are stored in one tensor. Then a
combination is one matrix-vector product, and the gradient of its weights is another matrix-vector product. The
gradients of all sums are also accumulated in one tensor: block j + 1 reads only the combination after block j, so the
backward pass reaches the blocks in reverse order.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


class BlockSums:
    """The embedding output of one forward pass, and the residual sum after each attention block and each feed-forward
    block.
    """

    def __init__(self, embedded: Tensor, weights: Sequence[Tensor]) -> None:
        """Store the embedding output and the mixing weights.

        `weights[j]` contains the j + 2 weights of the combination after block j (counted from 0): one weight for the
        embedding output, and one for each of the blocks 0 to j.
        """
        self._embedded, self._weights = embedded, weights
        self.kept = embedded.new_empty((len(weights) + 1, *embedded.shape))
        """[1 + blocks, ...]: the embedding output, followed by the sums of the blocks computed so far."""
        self.kept[0].copy_(embedded.detach())
        self.gradients: Tensor | None = None
        """[1 + blocks, elements]: the gradients of `kept`, accumulated during the backward pass."""

    def combined(self, block: int, summed: Tensor) -> Tensor:
        """Store the residual sum `summed` of block `block`, and return the weighted combination that the next block
        reads.

        Activation checkpointing calls this method again for the same block, with the same result.
        """
        result: Tensor = _Combination.apply(
            self._weights[block], summed, self._embedded if block == 0 else None, self, block
        )
        return result

    def at(self, rows: Tensor) -> "BlockSums":
        """Return only the sums at the positions `rows`, int64 [M]; a position is the flat index b * T + t. The result
        supports no gradients.
        """
        sums = object.__new__(BlockSums)
        sums._embedded, sums._weights, sums.gradients = self._embedded, self._weights, None
        sums.kept = self.kept.flatten(1, 2).index_select(1, rows)
        return sums


class _Combination(torch.autograd.Function):
    """`BlockSums.combined` with its gradient.

    Of all residual sums, only the latest is an input of this function for autograd. The gradients of the earlier
    residual sums are accumulated in `BlockSums.gradients`.
    """

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
