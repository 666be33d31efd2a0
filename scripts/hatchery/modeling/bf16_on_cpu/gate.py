"""GEGLU and the norm behind it. bf16 has 65,536 numbers, so GELU and its slope are looked up and not computed."""

import functools
import math
from typing import Any

import torch
from torch import Tensor

from hatchery.modeling.bf16_on_cpu.blocks import BF16, blocks

NORM_INPUT = [True, False, False]
LINEAR, CUBIC = math.sqrt(8 / math.pi), 0.044715 * math.sqrt(8 / math.pi)


def gated_norm(projected: Tensor, eps: float) -> Tensor:
    """norm(value * gelu(gate)) [..., I] of `projected` [..., 2 I], value and gate side by side; all in bf16."""
    normalised: Tensor = _GatedNorm.apply(projected, eps)
    return normalised


@functools.cache
def gelu_and_slope() -> tuple[Tensor, Tensor]:
    """GELU, in its tanh approximation x * sigmoid(x (a + b x^2)), and its derivative at every number of bf16.

    Both bf16 [65536], by the bits of the number.
    """
    numbers = torch.arange(2**16, dtype=torch.int32).to(torch.uint16).view(BF16).double()
    # Farther out the sigmoid is 0 or 1 and its slope 0, while the square would overflow.
    near = numbers.clamp(-100, 100)
    opened = (near * (LINEAR + CUBIC * near**2)).sigmoid()
    slope = opened + near * (LINEAR + 3 * CUBIC * near**2) * opened * (1 - opened)
    return (numbers * opened).to(BF16), slope.to(BF16)


class _GatedNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, projected: Tensor, eps: float) -> Tensor:
        size = projected.shape[-1] // 2
        rows = projected.reshape(-1, 2 * size)
        normalised, gated, slope = torch.empty((3, len(rows), size), dtype=BF16).unbind(0)
        mean, deviation = torch.empty((2, len(rows), 1)).unbind(0)
        # A weight in fp32 makes torch compute mean and deviation in fp32.
        ones = torch.ones(size)
        for block in blocks(len(rows), size):
            value, gate = rows[block].chunk(2, dim=-1)
            bits = gate.view(torch.uint16).long().flatten()
            for table, found in zip(gelu_and_slope(), (gated, slope), strict=True):
                torch.index_select(table, 0, bits, out=found[block].view(-1))
            inner = gated[block] * value
            normalised[block], mean[block], deviation[block] = torch.native_layer_norm(inner, (size,), ones, None, eps)
        ctx.save_for_backward(projected, gated, slope, mean, deviation)
        return normalised.view(*projected.shape[:-1], size)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        projected, gated, slope, mean, deviation = ctx.saved_tensors
        size = gradient.shape[-1]
        rows, gradient = projected.reshape(-1, 2 * size), gradient.reshape(-1, size)
        result, ones = torch.empty_like(rows), torch.ones(size)
        for block in blocks(len(rows), size):
            value = rows[block, :size]
            inner = torch.ops.aten.native_layer_norm_backward(
                gradient[block], gated[block] * value, (size,), mean[block], deviation[block], ones, None, NORM_INPUT
            )[0]
            torch.mul(inner, gated[block], out=result[block, :size])
            torch.mul(inner.mul_(value), slope[block], out=result[block, size:])
        return result.view(projected.shape), None
