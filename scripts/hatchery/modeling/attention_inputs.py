"""What every layer's attention is given besides the hidden states: positions, mask, and where the padding was left out.

Padding costs as much as text in every matrix product. A `Packing` keeps the tokens of a batch alone, one behind the
other; only the attention itself lays them out as sequences again.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from hatchery.modeling.ltg.relative_positions import PositionIndices
from hatchery.modeling.token_cache import TokenCache


class Packing(NamedTuple):
    """The positions of a batch [B, T] that are computed; everything else is left out."""

    rows: Tensor
    """int64 [N]: flat positions b * T + t, ascending."""
    batch: int
    """B"""
    length: int
    """T"""

    def pack(self, values: Tensor) -> Tensor:
        """The kept positions [N, ...] of `values` [B, T, ...]."""
        return values.flatten(0, 1).index_select(0, self.rows)

    def unpack(self, values: Tensor) -> Tensor:
        """`values` [N, ...] laid out as [B, T, ...], with zeros at the positions that were left out."""
        laid_out = values.new_zeros((self.batch * self.length, *values.shape[1:]))
        return laid_out.index_copy(0, self.rows, values).view(self.batch, self.length, *values.shape[1:])


class AttentionInputs(NamedTuple):
    """The same for all layers of one forward pass."""

    relative_embedding: Tensor | None = None
    """The normalised table [2 * bucket_size - 1, D]; None without relative positions."""
    positions: PositionIndices | None = None
    """Where the pairs of tokens stand in the score tables; None without relative positions."""
    mask: Tensor | None = None
    """bool [B, T], True at keys that are tokens, or [B, T, T], True where query i may attend to key j; None: all.

    [1, T, T] is the same for all sequences."""
    packing: Packing | None = None
    """If given, hidden states are [N, D] instead of [B, T, D]."""
    query_rows: Tensor | None = None
    """int64 [B]: the flat position b * T + t of each sequence's one query; a layer computes its output alone, [B, D].

    None: everywhere. In evaluation mode only, and never with a packing."""
    cache: TokenCache | None = None
    """If given, hidden states are those of the tokens that follow the ones in this cache of the layer, which grows.

    `positions` and `mask` are then those of these queries and all keys: [1, T, S] or [B, T, S]."""


def with_causal_mask(mask: Tensor | None, causal: bool | Tensor, length: int, device: torch.device) -> Tensor | None:
    """`mask`, as attention takes it, in which the tokens of causal sequences see nothing behind them.

    `causal` says it of all sequences, or bool [B] of each. Returns bool [B, T, T], [1, T, T] where the mask is None and
    all sequences are causal, and the mask as it is where none is known to be.
    """
    if isinstance(causal, Tensor) and causal.device.type == "cpu" and not torch.compiler.is_compiling():
        # All alike is the rule, and then the sequences share one triangle; on a GPU the look would be a wait.
        causal = bool(causal.all()) or (causal if bool(causal.any()) else False)
    if causal is False:
        return mask
    past = torch.ones((length, length), dtype=torch.bool, device=device).tril()[None]
    if isinstance(causal, Tensor):
        past = past | ~causal[:, None, None]
    if mask is None:
        return past
    return (mask[:, None, :] if mask.dim() == 2 else mask) & past


def none_if_all_tokens(mask: Tensor | None) -> Tensor | None:
    """`mask`, or None where it is known that it hides nothing.

    On the CPU looking at the mask is cheaper than applying it to all scores; on a GPU the look would be a wait for
    the device, and under torch.compile a break of the graph.
    """
    if mask is None or mask.device.type != "cpu" or torch.compiler.is_compiling():
        return mask
    return None if bool(mask.all()) else mask
