"""Masking of short spans: the text is divided into spans of one to three subwords, and complete spans are masked.

Source: the published code of GPT-BERT (docs/papers/gpt-bert.md, "Masking"), which prefers tokens that it has seldom
hidden so far. In this module, the distribution of masked tokens is the same in all epochs. Because spans are masked
completely, the number of masked subwords exceeds the target number by about 0.65 per text.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from hatchery.objectives.masking import MaskingSettings
from hatchery.objectives.special_ids import Corruption
from hatchery.tokenization.special_tokens import UNLABELLED

LONGEST = 3


def chosen_tokens(maskable: np.ndarray, span_of: np.ndarray, order: np.ndarray, wanted: int) -> np.ndarray:
    """Return a mask of the tokens to hide, bool [n]. Spans are hidden completely, in ascending `order`, until at least
    `wanted` tokens are hidden.

    `maskable` bool [n] is True for tokens that can be hidden. `span_of` int64 [n] is the index of each token's span.
    `order` fp64 [spans] contains a random number for each span. If fewer than `wanted` tokens are maskable, all
    maskable tokens are hidden.
    """
    priority = np.where(maskable, order[span_of], np.inf)
    wanted = min(wanted, int(np.count_nonzero(maskable)))
    if not wanted:
        return np.zeros(len(maskable), dtype=np.bool_)
    return priority <= np.partition(priority, wanted - 1)[wanted - 1]


@dataclass(frozen=True)
class ShortSpanMasking:
    """Masks complete spans until the target number of tokens is masked.

    The target number is the number of all tokens times `mask_probability`, randomly rounded up or down. If
    `at_least_one` is true, the target number is at least 1.
    """

    needs_word_starts: ClassVar[bool] = False

    mask_probability: float
    corruption: Corruption
    special_tokens_maskable: bool
    at_least_one: bool = True
    as_published: bool = False
    """If true, and fewer tokens are maskable than the target number, all tokens including special tokens are masked."""

    def at(self, rate: float) -> "ShortSpanMasking":
        """Return a copy of the rule with `rate` as the share of tokens to predict."""
        return replace(self, mask_probability=rate)

    def __call__(
        self, ids: np.ndarray, word_starts: np.ndarray | None, generator: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mask the example `ids`, int64 [n]; return its input ids and labels, int64 [n]. `word_starts` is ignored."""
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
    """Return the masking rule of `settings`."""
    common = (settings.mask_probability, corruption, settings.special_tokens_maskable, settings.at_least_one)
    return ShortSpanMasking(*common, settings.reading == "as_published")
