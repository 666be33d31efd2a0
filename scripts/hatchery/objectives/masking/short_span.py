"""Masking of whole short spans: spans of one to three subwords tile the text and are hidden until the rate is reached.

Source: the published code of GPT-BERT (docs/papers/gpt-bert.md, "Masking"), whose priorities depend on how often a
token was hidden before; here every epoch has the same distribution. Whole spans are hidden, so a text exceeds its share
by about 0.6 subwords.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from hatchery.objectives.masking import MaskingSettings
from hatchery.objectives.special_ids import Corruption
from hatchery.tokenization.special_tokens import UNLABELLED

LONGEST = 3


def chosen_tokens(maskable: np.ndarray, span_of: np.ndarray, order: np.ndarray, wanted: int) -> np.ndarray:
    """Return which tokens are hidden, bool [n]: those of the first spans in `order` that contain at least `wanted`
    tokens.

    `maskable` bool [n], `span_of` int64 [n] is the span of each token, `order` fp64 [spans] a random number of each
    span: low numbers come first. If there are fewer maskable tokens, all of them are hidden.
    """
    priority = np.where(maskable, order[span_of], np.inf)
    wanted = min(wanted, int(np.count_nonzero(maskable)))
    if not wanted:
        return np.zeros(len(maskable), dtype=np.bool_)
    return priority <= np.partition(priority, wanted - 1)[wanted - 1]


@dataclass(frozen=True)
class ShortSpanMasking:
    """Hides whole spans until the rate is reached.

    The number of tokens is n * rate, rounded up or down at random, at least one with `at_least_one`; n is the number of
    maskable tokens or, as published, of all tokens.
    """

    needs_word_starts: ClassVar[bool] = False

    mask_probability: float
    corruption: Corruption
    special_tokens_maskable: bool
    at_least_one: bool = True
    as_published: bool = False
    """True if a text with fewer maskable tokens than wanted is hidden as a whole, including special tokens."""

    def at(self, rate: float) -> "ShortSpanMasking":
        """Return the same rule with another share of tokens to predict."""
        return replace(self, mask_probability=rate)

    def __call__(
        self, ids: np.ndarray, word_starts: np.ndarray | None, generator: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return (input ids, labels) int64 [n] of `ids` int64 [n]; `word_starts` is ignored."""
        inputs, labels = ids.copy(), np.full(len(ids), UNLABELLED, dtype=np.int64)
        length_draw, order, decision = generator.random((3, len(ids)))
        ends = np.cumsum(1 + (length_draw * LONGEST).astype(np.int64))
        span_of = np.searchsorted(ends, np.arange(len(ids)), side="right")
        maskable = self.corruption.special.maskable(ids, self.special_tokens_maskable)
        wanted = int(len(ids) * self.mask_probability + generator.random())
        if self.at_least_one:
            wanted = max(1, wanted)
        if self.as_published and wanted > np.count_nonzero(maskable):
            maskable = np.ones(len(ids), dtype=np.bool_)
            wanted = len(ids)
        positions = np.flatnonzero(chosen_tokens(maskable, span_of, order, wanted))
        original = ids[positions]
        labels[positions] = original
        inputs[positions] = self.corruption(original, decision[span_of[positions]], generator)
        return inputs, labels


def rule(settings: MaskingSettings, corruption: Corruption, sequence_length: int) -> ShortSpanMasking:
    """Return the rule of `settings`."""
    common = (settings.mask_probability, corruption, settings.special_tokens_maskable, settings.at_least_one)
    return ShortSpanMasking(*common, settings.reading == "as_published")
