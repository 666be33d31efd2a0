"""Masking of whole words. Each word is chosen independently, with all its subwords.

Source: LTG-BERT, Section 5.1; docs/papers/ltg-bert.md, "Masking". The number of masked words is binomial, so a short
example may have no masked word, and the share of masked tokens equals `mask_probability` only on average. If a segment
begins inside a word, the subwords before the first word start of the segment are never chosen, as in LTG-BERT's code.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from hatchery.errors import TrainingError
from hatchery.objectives.masking import MaskingSettings
from hatchery.objectives.special_ids import Corruption
from hatchery.tokenization.special_tokens import UNLABELLED


@dataclass(frozen=True)
class WholeWordMasking:
    """Chooses each word with the probability `mask_probability`; all subwords of a word get the same kind of
    replacement.
    """

    needs_word_starts: ClassVar[bool] = True

    mask_probability: float
    corruption: Corruption
    special_tokens_maskable: bool = False

    def at(self, rate: float) -> "WholeWordMasking":
        """Return a copy of the rule with `rate` as the share of tokens to predict."""
        return replace(self, mask_probability=rate)

    def __call__(
        self, ids: np.ndarray, word_starts: np.ndarray | None, generator: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mask the example `ids`, int64 [n]; return its input ids and labels, each int64 [n]. `word_starts` is bool
        [n].

        A word starts at each token at which `word_starts` is True, except for special tokens. A word ends before the
        next word start or special token. If special tokens are maskable, each special token is masked as a separate
        word. Raises TrainingError if `word_starts` is None.
        """
        if word_starts is None:
            raise TrainingError("objective.kind whole_word: got tokens without word starts, expected word starts")
        inputs, labels = ids.copy(), np.full(len(ids), UNLABELLED, dtype=np.int64)
        special = self.corruption.special
        ordinary = special.maskable(ids)
        unit_starts = word_starts | ~ordinary
        firsts = np.flatnonzero(unit_starts)
        choice, decision = generator.random((2, len(firsts)))
        # Assign tokens before the first word start to an additional first unit, which masking never chooses.
        unit = np.cumsum(unit_starts)
        in_word = np.append(False, ordinary[firsts])[unit]
        alone = unit_starts & special.maskable(ids, self.special_tokens_maskable)
        chosen = np.append(False, choice < self.mask_probability)[unit] & (in_word | alone)
        positions = np.flatnonzero(chosen)
        original = ids[positions]
        labels[positions] = original
        inputs[positions] = self.corruption(original, decision[unit[positions] - 1], generator)
        return inputs, labels


def rule(settings: MaskingSettings, corruption: Corruption, sequence_length: int) -> WholeWordMasking:
    """Return the masking rule of `settings`."""
    return WholeWordMasking(settings.mask_probability, corruption, settings.special_tokens_maskable)
