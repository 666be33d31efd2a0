"""Attention with LTG-BERT's position scores as one GPU operation, computed by Triton kernels.

Without dropout, results and gradients equal those of `attend` with position scores up to rounding
(tests/modeling/test_kernels.py). Only the result of a query that may attend to no key differs; it is finite but
meaningless. Dropout depends on a seed that torch's generator draws on the device.
"""

import importlib.util
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from hatchery.modeling.ltg.attention import DisentangledSelfAttention
from hatchery.modeling.norm_and_dropout import Dropout

HEAD_SIZES = (16, 32, 64, 128)
"""Head sizes that the kernels support."""
MOST_ROWS = 64
"""A position table must have fewer rows than this number. The block sizes below were measured for such tables."""


class Blocks(NamedTuple):
    """Block sizes and launch options of a kernel."""

    queries: int
    keys: int
    warps: int
    stages: int


FORWARD = QUERY_GRADIENT = KEY_GRADIENT = Blocks(64, 64, 4, 1)
"""The fastest of nine block sizes on an H200 GPU, for 128 and for 512 tokens (docs/gpu.md)."""
FULL_PRECISION = Blocks(32, 32, 4, 1)
"""Block sizes for fp32 tensors, because larger blocks of fp32 do not fit on the GPU."""


def use_kernels_(model: nn.Module, device: torch.device) -> list[DisentangledSelfAttention]:
    """Replace the attention of all modules of `model` that the kernels support, if `device` is a Hopper GPU or newer
    and Triton is installed. Return the modules whose attention was replaced.

    The kernels were measured to be faster in half precision on Hopper GPUs.
    """
    if device.type != "cuda" or importlib.util.find_spec("triton") is None:
        return []
    if torch.cuda.get_device_capability(device) < (9, 0):
        return []
    served_modules = [
        module for module in model.modules() if isinstance(module, DisentangledSelfAttention) and serves(module)
    ]
    for attention in served_modules:
        attention.attend_at_once = attend_with_positions
    return served_modules


def serves(attention: DisentangledSelfAttention) -> bool:
    """Return whether the kernels support `attention`."""
    fits = 2 * attention.position_bucket_size <= MOST_ROWS
    return attention.is_relative and attention.head_size in HEAD_SIZES and fits


def attend_with_positions(
    query_key: Tensor,
    value: Tensor,
    position_key: Tensor,
    position_query: Tensor,
    row_of_distance: Tensor,
    first_distance: Tensor,
    mask: Tensor | None,
    dropout: Dropout,
    n_heads: int,
    scale: float,
) -> Tensor:
    """Return the context [B, T, D], given `query_key` [B, T, 2 D] (queries, then keys) and `value` [B, T, D].

    `position_key` and `position_query` are tables [H, rows, D / H]. `row_of_distance` int32 [2 T - 1] is the table row
    of each distance from 1 - T to T - 1. `first_distance` int32 [R] contains the smallest distance of each row, and
    then the value T; R is a power of 2 above the number of rows. For `mask` and `dropout`, see `attend`.
    """
    probability = dropout.active_probability
    seed = torch.zeros(1, dtype=torch.int64, device=value.device)
    if probability > 0:
        seed = torch.randint(2**62, (1,), device=value.device)
    tables = position_key.to(value.dtype), position_query.to(value.dtype)
    fixed = row_of_distance, first_distance, mask, seed, probability, n_heads, scale
    context: Tensor = _attention(query_key.to(value.dtype), value, *tables, *fixed)[0]
    return context


@torch.library.custom_op("hatchery::position_attention", mutates_args=())
def _attention(
    query_key: Tensor,
    value: Tensor,
    position_key: Tensor,
    position_query: Tensor,
    row_of_distance: Tensor,
    first_distance: Tensor,
    mask: Tensor | None,
    seed: Tensor,
    probability: float,
    n_heads: int,
    scale: float,
) -> tuple[Tensor, Tensor]:
    """Return the context of `attend_with_positions`, and the logarithm (base 2) of each query's softmax denominator,
    fp32 [B, H, T].
    """
    from hatchery.modeling.kernels.triton_attention import forward_kernel

    batch, length, _ = value.shape
    context = torch.empty_like(value, memory_format=torch.contiguous_format)
    log_sums = torch.empty((batch, n_heads, length), dtype=torch.float32, device=value.device)
    n_rows = len(first_distance)
    call = _Call.of(query_key, value, position_key, position_query, mask, probability, n_heads, scale, n_rows)
    blocks = call.blocks(FORWARD)
    shared = *call.tensors, row_of_distance, call.mask, seed
    forward_kernel[call.grid(blocks.queries)](*shared, context, log_sums, *call.numbers, **call.constants(blocks))
    return context, log_sums


@_attention.register_fake
def _(query_key: Tensor, value: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    batch, length, _ = value.shape
    log_sums = torch.empty((batch, rest[-2], length), dtype=torch.float32, device=value.device)
    return torch.empty_like(value, memory_format=torch.contiguous_format), log_sums


@torch.library.custom_op("hatchery::position_attention_backward", mutates_args=())
def _attention_backward(
    gradient: Tensor,
    query_key: Tensor,
    value: Tensor,
    position_key: Tensor,
    position_query: Tensor,
    row_of_distance: Tensor,
    first_distance: Tensor,
    mask: Tensor | None,
    seed: Tensor,
    context: Tensor,
    log_sums: Tensor,
    probability: float,
    n_heads: int,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients of `query_key`, of `value`, and of two tensors [B, H, T, R]: the products of all queries
    with the rows of `position_key`, and the products of all keys with the rows of `position_query`. The position score
    of a query and a key is the sum of one element of each tensor. R is the length of `first_distance`.
    """
    from hatchery.modeling.kernels.triton_attention import key_gradient_kernel, query_gradient_kernel

    batch, length, _ = value.shape
    n_rows = len(first_distance)
    call = _Call.of(query_key, value, position_key, position_query, mask, probability, n_heads, scale, n_rows)
    gradient = gradient.contiguous()
    deltas = torch.empty_like(log_sums)
    of_query_key, of_value = torch.empty_like(call.tensors[0]), torch.empty_like(call.tensors[1])
    by_query, by_key = (value.new_empty((batch, n_heads, length, n_rows)) for _ in range(2))
    shared = *call.tensors, row_of_distance, first_distance, call.mask, seed
    blocks = call.blocks(QUERY_GRADIENT)
    query_gradient_kernel[call.grid(blocks.queries)](
        *shared,
        context,
        log_sums,
        gradient,
        deltas,
        of_query_key,
        by_query,
        *call.numbers,
        **call.constants(blocks),
    )
    blocks = call.blocks(KEY_GRADIENT)
    key_gradient_kernel[call.grid(blocks.keys)](
        *shared,
        log_sums,
        gradient,
        deltas,
        of_query_key,
        of_value,
        by_key,
        *call.numbers,
        **call.constants(blocks),
    )
    return of_query_key, of_value, by_query, by_key


@_attention_backward.register_fake
def _(gradient: Tensor, query_key: Tensor, value: Tensor, *rest: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    batch, length, _ = value.shape
    by_row = [value.new_empty((batch, rest[-2], length, len(rest[3]))) for _ in range(2)]
    contiguous = [torch.empty_like(tensor, memory_format=torch.contiguous_format) for tensor in (query_key, value)]
    return contiguous[0], contiguous[1], by_row[0], by_row[1]


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    *tensors, probability, n_heads, scale = inputs
    ctx.save_for_backward(*tensors, *output)
    ctx.numbers = probability, n_heads, scale
    ctx.set_materialize_grads(False)


def _gradients(ctx: Any, gradient: Tensor | None, _: Tensor | None) -> tuple[Tensor | None, ...]:
    if gradient is None:
        return (None,) * 11
    tensors, n_heads = ctx.saved_tensors, ctx.numbers[1]
    found = _attention_backward(gradient, *tensors, *ctx.numbers)
    query_key, n_rows = tensors[0], tensors[2].shape[1]
    # `query` and `key` are [B, H, T, d].
    query, key = query_key.unflatten(-1, (2, n_heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
    of_tables = [
        torch.matmul(by_row.transpose(2, 3), of).sum(dim=0)[:, :n_rows]
        for by_row, of in ((found[2], query), (found[3], key))
    ]
    return found[0], found[1], *of_tables, *(None,) * 7


_attention.register_autograd(_gradients, setup_context=_keep)


class _Call(NamedTuple):
    """Arguments that all kernels share."""

    tensors: tuple[Tensor, Tensor, Tensor, Tensor]
    mask: Tensor
    numbers: tuple[Any, ...]
    constant: dict[str, Any]
    programs_per_block: int
    length: int

    @classmethod
    def of(
        cls,
        query_key: Tensor,
        value: Tensor,
        position_key: Tensor,
        position_query: Tensor,
        mask: Tensor | None,
        probability: float,
        n_heads: int,
        scale: float,
        n_rows: int,
    ) -> "_Call":
        batch, length, size = value.shape
        tensors = query_key.contiguous(), value.contiguous(), position_key.contiguous(), position_query.contiguous()
        strides, kind = (0, 0, 0), "none"
        if mask is not None:
            kind = "keys" if mask.dim() == 2 else "pairs"
            # A mask [1, T, T] applies to all sequences, so its stride between sequences is 0.
            strides = (0 if len(mask) == 1 else mask.stride(0), mask.stride(1), mask.stride(-1))
        threshold = round(probability * 2**32)
        numbers = length, position_key.shape[1], scale, threshold, 1 / (1 - threshold / 2**32)
        constant = {
            "H": n_heads,
            "D": size // n_heads,
            "R": n_rows,
            "MASK": kind,
            "DROPOUT": threshold > 0,
            "PRECISION": "ieee",
        }
        table = position_key.shape[1] * position_key.shape[2], position_key.shape[2]
        return cls(
            tensors, value if mask is None else mask, (*numbers, *table, *strides), constant, batch * n_heads, length
        )

    def grid(self, block: int) -> tuple[int]:
        return (self.programs_per_block * -(-self.length // block),)

    def blocks(self, half: Blocks) -> Blocks:
        """Return the kernel's block sizes: `half` if the tensors have half precision, otherwise the block sizes for
        fp32.
        """
        return FULL_PRECISION if self.tensors[1].dtype == torch.float32 else half

    def constants(self, blocks: Blocks) -> dict[str, Any]:
        shape = {"M": blocks.queries, "N": blocks.keys, "num_warps": blocks.warps, "num_stages": blocks.stages}
        return {**self.constant, **shape}
