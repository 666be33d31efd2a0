"""Masking of short spans: the text is divided into spans of one to three subwords, and complete spans are masked.

Source: the published code of GPT-BERT (docs/papers/gpt-bert.md, "Masking"), which prefers tokens that were seldom
hidden before; here all epochs have the same distribution. Because spans are masked completely, the number of masked
subwords exceeds the wanted number by about 0.6 per text.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from hatchery.objectives.masking import MaskingSettings
from hatchery.objectives.special_ids import Corruption
from hatchery.tokenization.special_tokens import UNLABELLED

LONGEST = 3


def chosen_tokens(maskable: np.ndarray, span_of: np.ndarray, order: np.ndarray, wanted: int) -> np.ndarray:
    """Return which tokens are hidden, bool [n]: the spans with the lowest `order` that contain at least `wanted`
    tokens.

    `maskable` is bool [n], `span_of` int64 [n] the span of each token, and `order` fp64 [spans] a random number for
    each span. If there are fewer than `wanted` maskable tokens, all of them are hidden.
    """
    priority = np.where(maskable, order[span_of], np.inf)
    wanted = min(wanted, int(np.count_nonzero(maskable)))
    if not wanted:
        return np.zeros(len(maskable), dtype=np.bool_)
    return priority <= np.partition(priority, wanted - 1)[wanted - 1]


@dataclass(frozen=True)
class ShortSpanMasking:
    """Masks complete spans until enough tokens are masked.

    The wanted number of tokens is the number of all tokens times the share, randomly rounded up or down, and at least 1
    with `at_least_one`.
    """

    needs_word_starts: ClassVar[bool] = False

    mask_probability: float
    corruption: Corruption
    special_tokens_maskable: bool
    at_least_one: bool = True
    as_published: bool = False
    """True if all tokens, including special tokens, are masked when fewer tokens are maskable than wanted."""

    def at(self, rate: float) -> "ShortSpanMasking":
        """Return the rule with another share of tokens to predict."""
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
