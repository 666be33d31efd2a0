"""Masking probabilities that depend on the subword. Their mean over the maskable tokens of a sequence is the share of
tokens to predict.

The setting `frequency` masks rare subwords more often (frequency-informed masking: arXiv:2509.05056 uses the rank of
subwords; Hatchery uses a power of their count). With the settings `loss` and `accuracy`, a subword is masked more often
if the current model predicts it badly. `loss` and `accuracy` correspond to the soft and the hard metric of adaptive
masked language modelling (AMLM, Edman & Fraser 2025, arXiv:2510.20475). The AMLM paper specifies updates every 200
batches and normalisation within each sequence, but no formulas; Hatchery's formulas are inferred. Probabilities are at
most 1; if some probabilities are limited to 1, all other probabilities are raised so that the mean does not change.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from hatchery.objectives.special_ids import Corruption
from hatchery.tokenization.special_tokens import UNLABELLED


def frequency_preferences(counts: np.ndarray, power: float) -> np.ndarray:
    """Return the preference `(count + 1) ** -power` of every subword, float64 [vocabulary size]. `counts`, int64
    [vocabulary size], is the number of occurrences of each subword.
    """
    return (counts + 1.0) ** -power


def chances(preferences: np.ndarray, rate: float) -> np.ndarray:
    """Return a masking probability for each of a sequence's n maskable tokens, float64 [n]; the mean of the
    probabilities is `rate`. The probabilities are proportional to the tokens' positive `preferences` [n], except where
    they are limited to 1.
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
    """A masking rule that chooses each maskable token independently, with a probability that depends on the subword of
    the token.
    """

    needs_word_starts: ClassVar[bool] = False

    mask_probability: float
    corruption: Corruption
    preferences: np.ndarray
    """Positive preference of each subword, float64 [V]. Masking probabilities are proportional to preferences."""

    def at(self, rate: float) -> "PreferredMasking":
        """Return a copy of this masking rule that predicts the share `rate` of the maskable tokens."""
        return replace(self, mask_probability=rate)

    def __call__(
        self, ids: np.ndarray, word_starts: np.ndarray | None, generator: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mask the example `ids`, int64 [n], which includes special tokens; return its input ids and labels, each int64
        [n].
        """
        choice, shown = self.draws(ids, generator)
        return hidden(ids, chosen(ids, choice, self.preferences, self.mask_probability), shown)

    def draws(self, ids: np.ndarray, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return a random number `choice` for each token, float64 [n], and the replacement of each token if it is
        masked, int64 [n].

        A token with the masking probability p is masked if its `choice` exceeds 1 - p. Tokens that are not maskable
        have the `choice` 0.
        """
        draw, decision = generator.random((2, len(ids)))
        choice = np.where(self.corruption.special.maskable(ids), 1.0 - draw, 0.0)
        return choice, self.corruption(ids, decision, generator)


def chosen(ids: np.ndarray, choice: np.ndarray, preferences: np.ndarray, rate: float) -> np.ndarray:
    """Return a mask, bool [n], that is True for the masked tokens of `ids`, int64 [n].

    `choice`, float64 [n], contains the random numbers that the method `draws` returns, and `preferences` contains one
    preference for each entry of the vocabulary. `rate` is the mean masking probability of the maskable tokens.
    """
    maskable = choice > 0
    is_chosen = np.zeros(len(ids), dtype=np.bool_)
    is_chosen[maskable] = choice[maskable] > 1.0 - chances(preferences[ids[maskable]], rate)
    return is_chosen


def hidden(ids: np.ndarray, where: np.ndarray, shown: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return input ids and labels of the example `ids`. At tokens at which `where` (bool [n]) is True, the input id is
    the replacement in `shown`, and the label is the original id. All other tokens keep their id and have no label.
    """
    return np.where(where, shown, ids), np.where(where, ids, UNLABELLED)
