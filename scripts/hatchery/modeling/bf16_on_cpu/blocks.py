"""Where blocks are computed, and how large they are."""

from collections.abc import Iterator

import torch
from torch import Tensor

from hatchery.modeling.norm_and_dropout import LayerNorm

BF16 = torch.bfloat16
BLOCK = 2**19
"""Elements of a block: a few tensors of it, in fp32, lie in the caches of a core."""


def in_bf16_on_cpu(tensor: Tensor) -> bool:
    """Whether products of `tensor` are in bf16 by autocast, on the processor, and not only traced for a compiler."""
    return (
        tensor.device.type == "cpu"
        and torch.is_autocast_enabled("cpu")
        and torch.get_autocast_dtype("cpu") == BF16
        and not torch.compiler.is_compiling()
    )


def blocks(rows: int, row_size: int) -> Iterator[slice]:
    """Slices of `rows` rows of `row_size` elements, a block each; at least one row."""
    step = max(1, BLOCK // row_size)
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


def norm_for_product(norm: LayerNorm, values: Tensor) -> Tensor:
    """`norm` of `values` [..., D], to be read by products alone: cast once for all of them."""
    normalised = norm(values)
    return normalised.to(BF16) if in_bf16_on_cpu(normalised) else normalised
