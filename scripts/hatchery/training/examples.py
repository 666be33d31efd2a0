"""The interface of training examples, common to all objectives."""

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from torch import Tensor


class Examples(Protocol):
    """Sequences of one length with their targets; the classes of `hatchery.objectives` implement this interface."""

    def __len__(self) -> int:
        """Return the number of sequences in an epoch."""
        ...

    @property
    def fillers(self) -> Mapping[str, int | bool]:
        """Return padding values by name of batch tensor; tensors without an entry are padded with 0."""
        ...

    def places(self) -> np.ndarray:
        """Return for each sequence the index of its first token among all tokens of the split (for example the training
        split): int64 [number of sequences].
        """
        ...

    def batch(self, seed: int, epoch: int, indices: np.ndarray, mask_rate: float | None = None) -> dict[str, Tensor]:
        """Return a batch: `input_ids` and `labels`, both [batch size, sequence length], and other tensors of the
        objective.

        The batch size is len(indices), or twice this number for preference pairs. Batches may be shorter than the
        sequence length, and in translation, `labels` have their own length. Padding is on the right. `mask_rate` is the
        share of masked tokens if this share changes during training; None uses the share in the settings.
        """
        ...

    def counted_batch(
        self, seed: int, epoch: int, indices: np.ndarray, mask_rate: float | None = None
    ) -> tuple[dict[str, Tensor], int]:
        """Return the result of `batch`, and the number of words that begin in the text of this batch."""
        ...

    @property
    def same_in_every_epoch(self) -> bool:
        """True if the text of a sequence does not depend on the epoch."""
        ...

    def words(self, seed: int, epoch: int, indices: np.ndarray) -> np.ndarray:
        """Return the number of words that begin in the text of each sequence, int64 [len(indices)]."""
        ...

    def counted(self, batch: dict[str, Tensor]) -> tuple[int, ...]:
        """Return the divisors of a batch's loss terms, by which each loss sum becomes a mean. An objective with one
        loss term returns the number of labels or, in masked diffusion, the number of maskable tokens. An objective with
        several loss terms returns a count for each of them.
        """
        ...

    def n_tokens(self, batch: dict[str, Tensor]) -> int:
        """Return the number of tokens of a batch, without padding."""
        ...
