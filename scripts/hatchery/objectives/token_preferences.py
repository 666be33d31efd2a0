"""Masking probabilities that differ by subword, with a given mean over a sequence.

`frequency` prefers rare subwords (frequency-informed masking: arXiv:2509.05056 uses the rank of subwords; we use a
power of their count). `loss` and `accuracy` prefer subwords that the current model predicts badly (AMLM, Edman & Fraser
2025, arXiv:2510.20475: the soft and the hard metric). The paper specifies updates every 200 batches and normalisation
within each sequence; the formulas are inferred. Probabilities are at most 1; if some probabilities are limited to 1,
all other probabilities are raised to keep the mean.
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
    """Return masking probabilities, float64 [n], proportional to the positive `preferences` [n], with the mean `rate`.

    Each probability is at most 1.
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
    """Chooses each maskable token independently, with a probability that depends on its subword."""

    needs_word_starts: ClassVar[bool] = False

    mask_probability: float
    corruption: Corruption
    preferences: np.ndarray
    """Preference of each subword, above 0: float64 [V]. Probabilities are proportional to preferences."""

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
        """Return the random number `choice` of each token, float64 [n], and the ids that replace masked tokens, int64
        [n].

        A token with the masking probability p is masked if its choice exceeds 1 - p; tokens that are not maskable have
        the choice 0.
        """
        draw, decision = generator.random((2, len(ids)))
        choice = np.where(self.corruption.special.maskable(ids), 1.0 - draw, 0.0)
        return choice, self.corruption(ids, decision, generator)


def chosen(ids: np.ndarray, choice: np.ndarray, preferences: np.ndarray, rate: float) -> np.ndarray:
    """Return which of the tokens `ids` int64 [n] are masked: bool [n]; `preferences` are float64 [V]."""
    maskable = choice > 0
    is_chosen = np.zeros(len(ids), dtype=np.bool_)
    is_chosen[maskable] = choice[maskable] > 1.0 - chances(preferences[ids[maskable]], rate)
    return is_chosen


def hidden(ids: np.ndarray, where: np.ndarray, shown: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (input ids, labels): where `where` bool [n] is True, the input is `shown` and the label is the token."""
    return np.where(where, shown, ids), np.where(where, ids, UNLABELLED)
