"""The cross-entropy of logits in bf16: one block of positions at a time, so that nothing as large as all is in fp32."""

from typing import Any

import torch
from torch import Tensor

from hatchery.modeling.bf16_on_cpu.blocks import blocks


def cross_entropy_in_blocks(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Sum of the cross-entropies (nats, fp32) of `logits` bf16 [N, V], and how many are greatest at `targets` [N]."""
    loss_sum, n_correct = _CrossEntropy.apply(logits, targets)
    return loss_sum, n_correct


class _CrossEntropy(torch.autograd.Function):
    """The gradient but for its factor is found on the way, while the probabilities are at hand."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        losses = torch.empty((len(logits), 1))
        reached = torch.empty((len(logits), 1), dtype=torch.bool)
        gradient = torch.empty_like(logits) if ctx.needs_input_grad[0] else None
        for block in blocks(*logits.shape):
            found, wanted = logits[block].float(), targets[block, None]
            highest, right = found.amax(dim=1, keepdim=True), found.gather(1, wanted)
            probabilities = torch.softmax(found, dim=1)
            # The sum of exp(x - highest) is 1 / the highest probability, which cannot underflow.
            losses[block] = highest - probabilities.amax(dim=1, keepdim=True).log() - right
            reached[block] = right == highest
            if gradient is not None:
                gradient[block] = probabilities.scatter_add_(1, wanted, torch.full(wanted.shape, -1.0))
        # Where several are greatest, the first of them is what the model predicts.
        candidates = reached.flatten().nonzero().flatten()
        n_correct = (logits[candidates].argmax(dim=1) == targets[candidates]).sum()
        ctx.save_for_backward(gradient)
        ctx.mark_non_differentiable(n_correct)
        return losses.sum(), n_correct

    @staticmethod
    def backward(ctx: Any, loss_gradient: Tensor, _: None) -> tuple[Tensor, None]:
        (gradient,) = ctx.saved_tensors
        # As a number: a tensor without dimensions would be rounded to bf16 first.
        return gradient.mul_(loss_gradient.item()), None
