"""What trainings ask of sequences, whatever their objective."""

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from torch import Tensor


class Examples(Protocol):
    """Sequences of one length with what is to be predicted of them, as `hatchery.objectives` makes them."""

    def __len__(self) -> int:
        """Number of sequences in an epoch."""
        ...

    @property
    def fillers(self) -> Mapping[str, int | bool]:
        """What stands behind a sequence in each tensor of a batch; 0 where nothing is said."""
        ...

    def places(self) -> np.ndarray:
        """The token of the split that each sequence begins with, int64 [len]."""
        ...

    def batch(self, seed: int, epoch: int, indices: np.ndarray, mask_rate: float | None = None) -> dict[str, Tensor]:
        """What the model is called with: `input_ids` and `labels` [B, T] and what else the objective has.

        B is len(indices), T at most the sequence length; padding is on the right. `mask_rate` is the share of tokens to
        be hidden, where that changes; None is the one of the settings.
        """
        ...

    def counted_batch(
        self, seed: int, epoch: int, indices: np.ndarray, mask_rate: float | None = None
    ) -> tuple[dict[str, Tensor], int]:
        """The same batch, and the number of words that begin in its text."""
        ...

    @property
    def same_in_every_epoch(self) -> bool:
        """Whether a sequence has the same text in every epoch."""
        ...

    def words(self, seed: int, epoch: int, indices: np.ndarray) -> np.ndarray:
        """The number of words that begin in the text of each sequence, int64 [len(indices)]."""
        ...

    def counted(self, batch: dict[str, Tensor]) -> tuple[int, ...]:
        """What the losses of a batch are divided by: its labels, then whatever the objective counts besides."""
        ...

    def n_tokens(self, batch: dict[str, Tensor]) -> int:
        """Tokens of a batch, padding not counted."""
        ...
