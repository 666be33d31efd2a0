"""Masking of subwords. Each subword is chosen independently.

Source: LTG-BERT, Section 5.1; docs/papers/ltg-bert.md, "Masking". If `random_probability` and `keep_probability` are 0,
this is the masking of "Honey, I Shrunk the Language" (reduced-vocabulary study, Section 3.5). The number of masked
tokens is binomial, so a short example may have no masked token.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from hatchery.objectives.masking import MaskingSettings
from hatchery.objectives.special_ids import Corruption
from hatchery.tokenization.special_tokens import UNLABELLED


def published_shares(random_probability: float, keep_probability: float) -> tuple[float, float]:
    """Return, for LTG-BERT's published code, the share of predicted tokens that become random tokens, and the share
    that stays visible.

    In this code, a predicted token that does not become [MASK] becomes random with probability r / (r + k + 1e-6),
    where r and k are the configured shares of random and of visible tokens. The term 1e-6 prevents 0 / 0, and changes
    the shares by less than a millionth.
    """
    visible = random_probability + keep_probability
    as_random = visible * random_probability / (visible + 1e-6)
    return as_random, visible - as_random


@dataclass(frozen=True)
class SubwordMasking:
    """Chooses each maskable token with the probability `mask_probability`; the replacement is drawn separately for each
    token.
    """

    needs_word_starts: ClassVar[bool] = False

    mask_probability: float
    corruption: Corruption
    special_tokens_maskable: bool = False

    def at(self, rate: float) -> "SubwordMasking":
        """Return a copy of the rule with `rate` as the share of tokens to predict."""
        return replace(self, mask_probability=rate)

    def __call__(
        self, ids: np.ndarray, word_starts: np.ndarray | None, generator: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mask the example `ids`, int64 [n], which includes special tokens; return its input ids and labels, each int64
        [n]. `word_starts` is ignored.
        """
        inputs, labels = ids.copy(), np.full(len(ids), UNLABELLED, dtype=np.int64)
        maskable = np.flatnonzero(self.corruption.special.maskable(ids, self.special_tokens_maskable))
        choice, decision = generator.random((2, len(maskable)))
        chosen = choice < self.mask_probability
        positions = maskable[chosen]
        original = ids[positions]
        labels[positions] = original
        inputs[positions] = self.corruption(original, decision[chosen], generator)
        return inputs, labels


def rule(settings: MaskingSettings, corruption: Corruption, sequence_length: int) -> SubwordMasking:
    """Return the masking rule of `settings`."""
    if settings.reading == "as_published":
        as_random, kept = published_shares(corruption.random_probability, corruption.keep_probability)
        corruption = replace(corruption, random_probability=as_random, keep_probability=kept)
    return SubwordMasking(settings.mask_probability, corruption, settings.special_tokens_maskable)
