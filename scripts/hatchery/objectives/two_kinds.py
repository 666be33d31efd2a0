"""Sequences with hidden tokens and causal ones of the same text, for objectives that learn from both.

A hidden token is labelled at the position before it, where causal sequences predict it too. Source: "GPT or BERT: why
not both?" (Charpentier & Samuel, 2024).
"""

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from hatchery.objectives.padding import LabelledExample, PaddedExamples
from hatchery.tokenization.special_tokens import UNLABELLED


class TwoKinds(PaddedExamples):
    """The sequences of a split twice: numbers below `len` have hidden tokens, those from `len` on are causal."""

    def __init__(self, hidden: PaddedExamples, causal: PaddedExamples) -> None:
        super().__init__(hidden.padding)
        assert len(hidden) == len(causal), "both kinds are made of the same sequences"
        self._hidden, self._causal = hidden, causal

    def __len__(self) -> int:
        return len(self._hidden)

    def example(self, seed: int, epoch: int, index: int) -> LabelledExample:
        """Sequence `index`, of the second kind where there are no more of the first."""
        if index >= len(self):
            return self._causal.example(seed, epoch, index - len(self))
        found = self._hidden.example(seed, epoch, index)
        return found._replace(labels=np.append(found.labels[1:], UNLABELLED), causal=False)

    def batch(self, seed: int, epoch: int, indices: Sequence[int] | np.ndarray) -> dict[str, Tensor]:
        """As `Padding.batch`, with the causal sequences as the second term of the loss."""
        batch = super().batch(seed, epoch, indices)
        return {**batch, "second_term": batch["causal"]}

    def counted(self, batch: dict[str, Tensor]) -> tuple[int, ...]:
        """The labels of both kinds."""
        labelled = (batch["labels"] != UNLABELLED).sum(dim=1)
        second = int(labelled[batch["second_term"]].sum())
        return int(labelled.sum()) - second, second
