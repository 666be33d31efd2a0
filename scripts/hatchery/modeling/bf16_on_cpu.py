"""What a training step in bf16 does on the processor beside the matrix products, in fewer passes over memory.

There the products run several times as fast as in fp32, so what stands between them decides. The functions here do for
one block of rows or sequences, while it lies in the cache, all that would otherwise be passes over whole tensors; what
they keep for the backward pass is bf16. The numbers are those of the modules under autocast but for roundings to bf16:
norms, softmax and losses compute in fp32. benchmarks/training_step.py measures it.
"""

import functools
import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from hatchery.modeling.ltg.relative_positions import PositionIndices
from hatchery.modeling.norm_and_dropout import Dropout, LayerNorm, kept_by_dropout, rounded_probability

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


def attend_in_blocks(
    query_key: Tensor,
    value: Tensor,
    position_tables: tuple[Tensor, Tensor] | None,
    indices: PositionIndices | None,
    mask: Tensor | None,
    dropout: Dropout,
    n_heads: int,
    scale: float,
) -> Tensor:
    """Context [B, T, D] of queries and keys side by side in `query_key` [B, T, 2 D] and `value` [B, T, D], in bf16.

    `position_tables` [H, d, rows] are the position keys, which queries meet, and the position queries, which keys meet;
    None without relative positions. `mask` is that of `attend`, and so is what `dropout` drops.
    """
    batch, length, _ = value.shape
    if mask is not None:
        mask = mask[:, None, None, :] if mask.dim() == 2 else mask[:, None]
        mask = mask.expand(batch, *mask.shape[1:])
    kept, probability = None, dropout.active_probability
    if probability > 0:
        # All bits are set where a probability is kept.
        kept = kept_by_dropout(torch.Size((batch, n_heads, length, length)), probability).neg_()
    position_key, position_query = position_tables or (None, None)
    fixed = (
        None if position_tables is None else indices,
        mask,
        kept,
        1 / (1 - rounded_probability(probability)),
        n_heads,
        scale,
    )
    context: Tensor = _Attention.apply(query_key, value, position_key, position_query, *fixed)
    return context


class _Attention(torch.autograd.Function):
    """Heads first within a block: [H * c, T, ...] for c sequences, so that one table serves them all in one product.

    Scores and what is looked up lie in the same memory for all blocks, which stays in the cache.
    """

    @staticmethod
    def forward(
        ctx: Any,
        query_key: Tensor,
        value: Tensor,
        position_key: Tensor | None,
        position_query: Tensor | None,
        indices: PositionIndices | None,
        mask: Tensor | None,
        kept: Tensor | None,
        kept_scale: float,
        n_heads: int,
        scale: float,
    ) -> Tensor:
        batch, length, _ = value.shape
        context = torch.empty_like(value)
        probabilities = torch.empty((n_heads * batch, length, length), dtype=BF16)
        work = _Work(batch, n_heads, length)
        for block in work.blocks:
            query, key = _heads(query_key[block], n_heads, 2)
            query *= scale
            scores, looked_up, half = work.of(query)
            scores.copy_(torch.bmm(query, key.transpose(1, 2), out=half))
            if indices is not None and position_key is not None and position_query is not None:
                # Looked up in fp32, which the processor does several times as fast.
                flat, looked_up = scores.view(len(scores), -1), looked_up.view(len(scores), -1)
                by_bucket = _times_table(query, position_key).float().view(len(flat), -1)
                flat += torch.index_select(by_bucket, 1, indices.by_query, out=looked_up)
                by_bucket = _times_table(key, position_query * scale).float().view(len(flat), -1)
                flat += torch.index_select(by_bucket, 1, indices.by_key, out=looked_up)
            if mask is not None:
                hidden = ~mask[block].transpose(0, 1)
                scores.view(n_heads, -1, length, length).masked_fill_(hidden, torch.finfo(torch.float32).min)
            found = probabilities[block.start * n_heads : block.stop * n_heads]
            found.copy_(torch.softmax(scores, dim=-1, out=scores))
            if mask is not None and bool(hidden.all(dim=-1).any()):
                # Of a query that may attend to nothing: no gradient reaches what is hidden.
                found.view(n_heads, -1, length, length).masked_fill_(hidden, 0)
            weighted = torch.bmm(_where_kept(found, kept, block, half), _heads(value[block], n_heads)[0])
            _join([weighted], context[block], kept_scale)
        ctx.save_for_backward(query_key, value, position_key, position_query, probabilities, kept)
        ctx.indices, ctx.n_heads, ctx.scale, ctx.kept_scale = indices, n_heads, scale, kept_scale
        return context

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        query_key, value, position_key, position_query, probabilities, kept = ctx.saved_tensors
        n_heads, scale, indices = ctx.n_heads, ctx.scale, ctx.indices
        batch, length, _ = value.shape
        query_key_gradient, value_gradient = torch.empty_like(query_key), torch.empty_like(value)
        table_gradients: list[Any] = [
            None if table is None else torch.zeros(table.shape) for table in (position_key, position_query)
        ]
        work = _Work(batch, n_heads, length)
        for block in work.blocks:
            query, key = _heads(query_key[block], n_heads, 2)
            query *= scale
            scores, as_found, half = work.of(query)
            context = _heads(gradient[block], n_heads)[0].mul_(ctx.kept_scale)
            found = probabilities[block.start * n_heads : block.stop * n_heads]
            weighted = torch.bmm(_where_kept(found, kept, block, half).transpose(1, 2), context)
            _join([weighted], value_gradient[block])
            torch.bmm(context, _heads(value[block], n_heads)[0].transpose(1, 2), out=half)
            scores.copy_(_where_kept(half, kept, block, half))
            torch._softmax_backward_data(scores, as_found.copy_(found), -1, torch.float32, grad_input=scores)
            products = half.copy_(scores)
            query_gradient, key_gradient = torch.bmm(products, key), torch.bmm(products.transpose(1, 2), query)
            if indices is not None:
                flat = scores.view(len(scores), -1)
                by_bucket = _by_bucket(flat, indices.by_query, indices.n_rows, n_heads)
                query_gradient += _times_table(by_bucket, position_key.transpose(1, 2)).view_as(query)
                table_gradients[0] += torch.bmm(query.view(n_heads, -1, query.shape[-1]).transpose(1, 2), by_bucket)
                by_bucket = _by_bucket(flat, indices.by_key, indices.n_rows, n_heads)
                key_gradient += _times_table(by_bucket, position_query.transpose(1, 2) * scale).view_as(key)
                table_gradients[1] += torch.bmm(key.view(n_heads, -1, key.shape[-1]).transpose(1, 2), by_bucket)
            _join([query_gradient.mul_(scale), key_gradient], query_key_gradient[block])
        if indices is not None:
            table_gradients = [table_gradients[0].to(BF16), table_gradients[1].mul_(scale).to(BF16)]
        return query_key_gradient, value_gradient, *table_gradients, *(None,) * 6


class _Work:
    """The blocks of a batch, and memory for the scores of one: twice in fp32 and once in bf16."""

    def __init__(self, batch: int, n_heads: int, length: int) -> None:
        self.blocks = list(blocks(batch, n_heads * length**2))
        largest = n_heads * max((block.stop - block.start for block in self.blocks), default=0)
        self._tensors = [torch.empty((largest, length, length), dtype=dtype) for dtype in (None, None, BF16)]

    def of(self, heads: Tensor) -> list[Tensor]:
        """The part of the memory that `heads` [H * c, T, d] need: [H * c, T, T] each."""
        return [tensor[: len(heads)] for tensor in self._tensors]


def _heads(projected: Tensor, n_heads: int, n: int = 1) -> Tensor:
    """The `n` tensors that lie side by side in `projected` [c, T, n * D], as one [n, H * c, T, d]."""
    sequences, length, _ = projected.shape
    split = projected.view(sequences, length, n, n_heads, -1).permute(2, 3, 0, 1, 4)
    return split.clone(memory_format=torch.contiguous_format).view(n, n_heads * sequences, length, -1)


def _join(parts: list[Tensor], joined: Tensor, scale: float = 1.0) -> None:
    """Write `parts` [H * c, T, d] side by side into `joined` [c, T, n * D], multiplied by `scale`."""
    sequences, length, _ = joined.shape
    for part, there in zip(parts, joined.chunk(len(parts), dim=-1), strict=True):
        n_heads = len(part) // sequences
        heads = part.view(n_heads, sequences, length, -1).permute(1, 2, 0, 3)
        torch.mul(heads, scale, out=there.unflatten(-1, (n_heads, -1)))


def _where_kept(heads: Tensor, kept: Tensor | None, block: slice, out: Tensor) -> Tensor:
    """`heads` bf16 [H * c, T, T] where all bits of `kept` int16 [B, H, T, T] are set, and 0 where none is, in `out`."""
    if kept is None:
        return heads
    there = kept[block].transpose(0, 1)
    bits, result = (tensor.view(torch.int16).view(there.shape) for tensor in (heads, out))
    torch.bitwise_and(bits, there, out=result)
    return out


def _times_table(vectors: Tensor, table: Tensor) -> Tensor:
    """[H, c * T, columns] of `vectors` [H * c, T, rows] and `table` [H, rows, columns]."""
    return torch.bmm(vectors.view(len(table), -1, table.shape[1]), table)


def _by_bucket(scores: Tensor, where: Tensor, n_rows: int, n_heads: int) -> Tensor:
    """`scores` fp32 [H * c, T * T] summed by bucket: bf16 [H, c * T, rows]."""
    sums = torch.zeros((len(scores), n_rows * math.isqrt(scores.shape[1])))
    return sums.index_add_(1, where, scores).to(BF16).view(n_heads, -1, n_rows)


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
