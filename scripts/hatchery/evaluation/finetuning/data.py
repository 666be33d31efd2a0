"""What the engine asks of encoded data, so that it needs to know no task: lengths, and batches of tensors.

Texts, pairs and choices are `encoding.EncodedTexts`; sentences with spans are `probing.encoding.EncodedSpans`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """`inputs` are the keyword arguments of a task model, `labels` what its target compares its scores with.

    `units` int64 [N] are the positions, in the data set's list of units, of the rows of the scores: one unit per
    example for texts, one per target for sentences with spans.
    """

    inputs: dict[str, Any]
    labels: Tensor
    units: np.ndarray

    def to(self, device: torch.device) -> "Batch":
        """The same on a device."""
        moved = {key: value.to(device) if isinstance(value, Tensor) else value for key, value in self.inputs.items()}
        return Batch(moved, self.labels.to(device), self.units)


class EncodedData(Protocol):
    """Items (examples, sentences) that can be put into batches."""

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each item, special tokens included, int64 [items]; of choices the longest."""

    @property
    def n_units(self) -> int:
        """Units that are labelled and predicted."""

    @property
    def labels(self) -> np.ndarray:
        """Labels of all units: int64 [units], float64 [units] or bool [units, K]."""

    def batch(self, items: np.ndarray) -> Batch:
        """The items at the given positions, padded to the longest of them; `units` are positions in this data set."""

    def subset(self, items: Sequence[int]) -> "EncodedData":
        """The items at the given positions, in that order, as a data set of its own."""
