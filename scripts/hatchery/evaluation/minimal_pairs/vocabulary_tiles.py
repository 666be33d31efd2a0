"""Log-probabilities of a few targets from the states that the output matrix is multiplied with, tile by tile.

A target needs its own logit and the logarithm of the sum over the vocabulary, and not the matrix of all
log-probabilities. On the CPU the logits are therefore made for some rows and some items at a time, in memory that is
used again: fresh pages cost as much as the product. Promise: the numbers of log_softmax up to rounding.
"""

import torch
from torch import Tensor

# What was measured to be fastest with a MiB of second-level cache: few tiles of many rows, because the library arranges
# the items anew for every tile.
ROWS_PER_TILE = 1024
ITEMS_PER_TILE = 512


def log_normalisers(features: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """log sum over v of exp(logit_v), float32 [M], of `features` [M, D]; `weight` is [V, D] and `bias` [V]."""
    n_tiles = -(-len(weight) // ITEMS_PER_TILE)
    parts = features.new_empty((len(features), n_tiles))
    memory = features.new_empty((2, min(ROWS_PER_TILE, len(features)) * min(ITEMS_PER_TILE, len(weight))))
    biases = [None] * n_tiles if bias is None else bias.split(ITEMS_PER_TILE)
    for rows, part in zip(features.split(ROWS_PER_TILE), parts.split(ROWS_PER_TILE), strict=True):
        for column, (items, its_bias) in enumerate(zip(weight.split(ITEMS_PER_TILE), biases, strict=True)):
            shape = len(rows), len(items)
            logits, log_shares = (flat[: shape[0] * shape[1]].view(shape) for flat in memory)
            if its_bias is None:
                torch.mm(rows, items.T, out=logits)
            else:
                torch.addmm(its_bias, rows, items.T, out=logits)
            # torch's log_softmax is one fused step, its logsumexp five; the difference to any logit is what both know.
            torch.log_softmax(logits, dim=-1, out=log_shares)
            torch.sub(logits[:, 0], log_shares[:, 0], out=part[:, column])
    return torch.logsumexp(parts, dim=-1)


def tiled_log_probabilities(
    features: Tensor, weight: Tensor, bias: Tensor | None, of: Tensor, targets: Tensor
) -> Tensor:
    """Float32 [K]: log p(targets[k]) where the state is `features[of[k]]`; `of` and `targets` are int64 [K].

    `features` [M, D], `weight` [V, D] and `bias` [V] are float32 on the CPU.
    """
    logits = (features.index_select(0, of) * weight.index_select(0, targets)).sum(dim=-1)
    if bias is not None:
        logits = logits + bias.index_select(0, targets)
    return logits - log_normalisers(features, weight, bias).index_select(0, of)
