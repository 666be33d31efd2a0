"""Masking probabilities that differ by subword, while their mean over a sequence is its share of hidden tokens.

`frequency` prefers rare subwords (frequency-informed masking: arXiv:2509.05056 ranks subwords; a power of the count is
ours). `loss` and `accuracy` prefer subwords that the model predicts badly, as training goes on (AMLM, Edman & Fraser
2025, arXiv:2510.20475, whose soft and hard metrics these are; updates every 200 batches and the normalisation of each
sequence are published, the formulas here are inferred). Probabilities are clipped at 1, and the other probabilities are
raised instead.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from hatchery.objectives.special_ids import Corruption
from hatchery.tokenization.special_tokens import UNLABELLED


def frequency_preferences(counts: np.ndarray, power: float) -> np.ndarray:
    """Return `(count + 1) ** -power` of every subword: float64 [V]; `counts` are int64 [V]."""
    return (counts + 1.0) ** -power


def chances(preferences: np.ndarray, rate: float) -> np.ndarray:
    """Return probabilities in proportion to positive `preferences` [n] with the mean `rate`, at most 1 each: float64
    [n].
    """
    probabilities = np.empty(len(preferences))
    free = np.ones(len(preferences), dtype=np.bool_)
    left = rate * len(preferences)
    while free.any():
        probabilities[free] = preferences[free] * (left / preferences[free].sum())
        above = free & (probabilities > 1)
        if not above.any():
            break
        probabilities[above] = 1.0
        free &= ~above
        left -= np.count_nonzero(above)
    return probabilities


@dataclass(frozen=True)
class PreferredMasking:
    """Chooses each maskable token independently, with the probability of its subword."""

    needs_word_starts: ClassVar[bool] = False

    mask_probability: float
    corruption: Corruption
    preferences: np.ndarray
    """Positive numbers float64 [V], to which the probabilities of subwords are proportional."""

    def at(self, rate: float) -> "PreferredMasking":
        """Return the rule with another share of tokens to predict."""
        return replace(self, mask_probability=rate)

    def __call__(
        self, ids: np.ndarray, word_starts: np.ndarray | None, generator: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return (input ids, labels) int64 [n] of the example `ids` int64 [n] with special tokens."""
        choice, shown = self.draws(ids, generator)
        return hidden(ids, chosen(ids, choice, self.preferences, self.mask_probability), shown)

    def draws(self, ids: np.ndarray, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return the `choice` of each token, float64 [n], and the ids shown in place of hidden tokens, int64 [n].

        A token with the probability p is hidden if its choice is more than 1 - p; the choice of a token that may not be
        hidden is 0.
        """
        draw, decision = generator.random((2, len(ids)))
        choice = np.where(self.corruption.special.maskable(ids), 1.0 - draw, 0.0)
        return choice, self.corruption(ids, decision, generator)


def chosen(ids: np.ndarray, choice: np.ndarray, preferences: np.ndarray, rate: float) -> np.ndarray:
    """Return which tokens `ids` int64 [n] are hidden: bool [n]; `preferences` are float64 [V]."""
    maskable = choice > 0
    is_chosen = np.zeros(len(ids), dtype=np.bool_)
    is_chosen[maskable] = choice[maskable] > 1.0 - chances(preferences[ids[maskable]], rate)
    return is_chosen


def hidden(ids: np.ndarray, where: np.ndarray, shown: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (input ids, labels), with the ids `shown` and with labels at the tokens of `where` bool [n]."""
    return np.where(where, shown, ids), np.where(where, ids, UNLABELLED)
