"""Span masking as the first BNC code does it, with its label defect.

Source: LTG-BERT section 3.5. That code overwrites tokens in place: where a span falls on an earlier one, the corrupted
token, mostly [MASK], becomes the label, and the budget is charged a second time. Some 6 % of the labels are wrong. For
comparison with published numbers only; `span_masking` is the objective that the papers describe.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hatchery.objectives.corruption import UNLABELLED, Corruption
from hatchery.objectives.span_masking import MAX_SPANS, Cover, spans_from

# Stands for a token that a span leaves as it finds it; no id is negative.
_KEPT = -1


@dataclass(frozen=True)
class PublishedSpanMasking:
    """Lays spans until their tokens, counted anew by each span, use up a binomial budget, which can be 0."""

    needs_word_starts: ClassVar[bool] = False

    mask_probability: float
    corruption: Corruption
    special_tokens_maskable: bool
    sequence_length: int

    def __call__(
        self, ids: np.ndarray, word_starts: np.ndarray | None, generator: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """(input ids, labels) int64 [n] of the framed example `ids` int64 [n]; `word_starts` is not looked at.

        A label is what the last span over its position found there, which need not be what the text had.
        """
        inputs, labels = ids.tolist(), [UNLABELLED] * len(ids)
        cover = self.cover(self.corruption.special.maskable(ids, self.special_tokens_maskable), generator)
        kept = np.full(len(cover.positions), _KEPT, dtype=np.int64)
        replacements = self.corruption(kept, cover.decision, generator)
        # One touch after the other: what a span finds depends on what the spans before it did.
        for position, replacement in zip(cover.positions.tolist(), replacements.tolist(), strict=True):
            labels[position] = inputs[position]
            if replacement != _KEPT:
                inputs[position] = replacement
        return np.array(inputs, dtype=np.int64), np.array(labels, dtype=np.int64)

    def cover(self, maskable: np.ndarray, generator: np.random.Generator) -> Cover:
        """Positions of a sequence with `maskable` bool [n] that spans touch, as often as they are touched.

        Empty where no maskable token lies before the last position of the nominal length, which no span reaches (the
        published code would look for one for ever).
        """
        budget = int(np.count_nonzero(generator.random(np.count_nonzero(maskable)) < self.mask_probability))
        allowed = maskable.tolist()
        if not any(allowed[: self.sequence_length - 1]):
            budget = 0
        positions: list[int] = []
        decisions: list[float] = []
        lengths: list[int] = []
        while budget > 0:
            length_draw, start_draw, decision = generator.random((3, MAX_SPANS))
            spans = spans_from(length_draw, start_draw, self.sequence_length, len(allowed))
            columns = (column.tolist() for column in (*spans, decision))
            for length, first, end, shared in zip(*columns, strict=True):
                touched = [position for position in range(first, end) if allowed[position]]
                positions += touched
                decisions += [shared] * len(touched)
                lengths.append(length)
                budget -= len(touched)
                if budget <= 0:
                    break
        return Cover(np.array(positions, np.int64), np.array(decisions, np.float64), np.array(lengths, np.int64))
