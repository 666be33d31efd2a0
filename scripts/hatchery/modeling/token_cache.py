"""Keys and values that attention has computed, kept so that a text that grows computes each of its tokens once.

They are exact wherever a token's states depend on itself and the tokens before it alone: in every causal model here.
Relative positions do not disturb, since they enter the scores and not the keys; nor does a layer that reads all
earlier layers, since it reads their states of the same token.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class TokenCache:
    """Keys and values [B, H, S, d] of one layer, of the tokens so far; None before the first."""

    kept: tuple[Tensor, Tensor] | None = None

    def extended(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values with those of the next tokens behind them, which are kept."""
        if self.kept is not None:
            keys, values = torch.cat([self.kept[0], keys], dim=2), torch.cat([self.kept[1], values], dim=2)
        self.kept = (keys, values)
        return self.kept

    def rows(self, chosen: Tensor) -> "TokenCache":
        """The rows `chosen` int64 [B'] of the batch."""
        if self.kept is None:
            return TokenCache()
        return TokenCache((self.kept[0].index_select(0, chosen), self.kept[1].index_select(0, chosen)))
