"""Span masking: hide a few short spans and predict the hidden subwords.

Source: LTG-BERT, Section 5.1 (after SpanBERT; docs/papers/ltg-bert.md, "Span masking") in the corrected form of the
BabyLM revision, whose labels come from the clean sequence and whose budget counts distinct positions;
docs/papers/elc-bert.md, "Masking", for the form without a least number of tokens. The first BNC code overwrites tokens
in place: where a span falls on an earlier one, the corrupted token, mostly [MASK], becomes the label, and the budget is
charged a second time. Some 6 % of its labels are wrong; `PublishedSpanMasking` repeats that, for comparison with
published numbers only.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from hatchery.objectives.masking import MaskingSettings
from hatchery.objectives.special_ids import Corruption
from hatchery.tokenization.special_tokens import UNLABELLED

MAX_SPANS = 100


def _span_length_distribution() -> np.ndarray:
    """P(length) for lengths 0 to 9 of the published law: geometric with p = 1/3 from 1 on, modulo 10."""
    geometric = (1 / 3) * (2 / 3) ** np.arange(10) / (1 - (2 / 3) ** 10)
    return np.roll(geometric, 1)


SPAN_LENGTH_PROBABILITIES = _span_length_distribution()
# The last bound is exactly 1, which no uniform number reaches.
_LENGTH_BOUNDS = np.append(np.cumsum(SPAN_LENGTH_PROBABILITIES)[:-1], 1.0)


class Spans(NamedTuple):
    """Spans in the order of their drawing, all int64 [spans]."""

    lengths: np.ndarray
    """0 to 9, before the span is cut at the borders."""
    firsts: np.ndarray
    """First position."""
    ends: np.ndarray
    """One behind the last position; not above `firsts` for an empty span."""


def spans_from(length_draw: np.ndarray, start_draw: np.ndarray, sequence_length: int, n_tokens: int) -> Spans:
    """Spans made of two uniform numbers each, within the `n_tokens` first positions of a padded sequence.

    A span of length l starts at a uniform integer from -(l - 1) to sequence_length + l - 1: spans start anywhere in the
    nominal `sequence_length`, padding included, as published, so that the chance of a position does not depend on how a
    batch is trimmed. The last position of the nominal length is never covered.
    """
    lengths = np.searchsorted(_LENGTH_BOUNDS, length_draw, side="right")
    starts = (start_draw * (sequence_length + 2 * lengths - 1)).astype(np.int64) - (lengths - 1)
    ends = np.minimum(starts + lengths, min(sequence_length - 1, n_tokens))
    return Spans(lengths, np.maximum(starts, 0), ends)


class Cover(NamedTuple):
    """The tokens that spans have chosen."""

    positions: np.ndarray
    """int64 [labelled], distinct, in the order in which they were first covered."""
    decision: np.ndarray
    """float64 [labelled]: the uniform number of the last span over each position."""
    drawn_lengths: np.ndarray
    """int64 [spans]: lengths of all spans that were laid, empty ones included."""


@dataclass(frozen=True)
class SpanMasking:
    """Lays spans until enough distinct tokens are covered; decides about each span as a whole.

    Where spans overlap, the last one decides. With `at_least_one`, one token is aimed at even when the binomial budget
    is 0; when 100 spans have not met enough tokens (nearly all padding), fewer or none are labelled all the same.
    """

    needs_word_starts: ClassVar[bool] = False

    mask_probability: float
    corruption: Corruption
    special_tokens_maskable: bool
    sequence_length: int
    at_least_one: bool = True

    def at(self, rate: float) -> "SpanMasking":
        """The same rule with another share of tokens to be predicted."""
        return replace(self, mask_probability=rate)

    def __call__(
        self, ids: np.ndarray, word_starts: np.ndarray | None, generator: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """(input ids, labels) int64 [n] of the framed example `ids` int64 [n]; `word_starts` is not looked at."""
        inputs, labels = ids.copy(), np.full(len(ids), UNLABELLED, dtype=np.int64)
        cover = self.cover(self.corruption.special.maskable(ids, self.special_tokens_maskable), generator)
        original = ids[cover.positions]
        labels[cover.positions] = original
        inputs[cover.positions] = self.corruption(original, cover.decision, generator)
        return inputs, labels

    def cover(self, maskable: np.ndarray, generator: np.random.Generator) -> Cover:
        """Positions of a sequence with `maskable` bool [n] that spans choose; nothing where nothing is maskable."""
        n_maskable = int(np.count_nonzero(maskable))
        if n_maskable == 0:
            nothing = np.zeros(0, dtype=np.int64)
            return Cover(nothing, np.zeros(0), nothing)
        # All draws are uniform numbers: their stream is the steadiest part of numpy's generators from version to
        # version. Their number and order are part of the results of every earlier run.
        budget = int(np.count_nonzero(generator.random(n_maskable) < self.mask_probability))
        if self.at_least_one:
            budget = max(1, budget)
        length_draw, start_draw, decision = generator.random((3, MAX_SPANS))
        spans = spans_from(length_draw, start_draw, self.sequence_length, len(maskable))
        span_of, n_spans = _lay(spans, maskable.tolist(), budget)
        positions = np.fromiter(span_of.keys(), dtype=np.int64, count=len(span_of))
        laid = np.fromiter(span_of.values(), dtype=np.int64, count=len(span_of))
        return Cover(positions, decision[laid], spans.lengths[:n_spans])


def _lay(spans: Spans, allowed: list[bool], budget: int) -> tuple[dict[int, int], int]:
    """Allowed positions covered by the first spans that reach `budget`, each with the last span that covers it; and
    the number of these spans."""
    span_of: dict[int, int] = {}
    if budget == 0:
        return span_of, 0
    # Plain integers: spans hold three positions on average, too few for array operations to pay.
    for span, (first, end) in enumerate(zip(spans.firsts.tolist(), spans.ends.tolist(), strict=True)):
        for position in range(first, end):
            if allowed[position]:
                span_of[position] = span
        if len(span_of) >= budget:
            return span_of, span + 1
    return span_of, len(spans.lengths)


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

    def at(self, rate: float) -> "PublishedSpanMasking":
        """The same rule with another share of tokens to be predicted."""
        return replace(self, mask_probability=rate)

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


def rule(settings: MaskingSettings, corruption: Corruption, sequence_length: int) -> SpanMasking | PublishedSpanMasking:
    """The rule that `settings` asks for."""
    common = (settings.mask_probability, corruption, settings.special_tokens_maskable, sequence_length)
    if settings.reading == "as_published":
        return PublishedSpanMasking(*common)
    return SpanMasking(*common, settings.at_least_one)
