"""Span masking, which hides a few short spans and predicts the hidden subwords.

Source: LTG-BERT, Section 5.1 (after SpanBERT; docs/papers/ltg-bert.md, "Span masking"). `SpanMasking` follows the later
revision of LTG-BERT's code for BabyLM, which corrects two errors: every label is a token of the text, and a position
that two spans mask counts once towards the number of tokens to mask. In ELC-BERT's variant of span masking, a text can
be without masked tokens: see docs/papers/elc-bert.md, "Masking".

LTG-BERT's first BNC code overwrites tokens in place. If a span overlaps an earlier span, the label of an overlapped
position is the token that the earlier span wrote, usually [MASK], and the position counts twice. Therefore about 6 % of
the labels are wrong. `PublishedSpanMasking` reproduces this error, for comparison with published scores.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from hatchery.objectives.masking import MaskingSettings
from hatchery.objectives.special_ids import Corruption
from hatchery.tokenization.special_tokens import UNLABELLED

MAX_SPANS = 100


def _span_length_distribution() -> np.ndarray:
    """Return the probabilities of the span lengths 0 to 9 in LTG-BERT's code. The code draws a number from a geometric
    distribution (from 1 on, p = 1/3); the length is this number modulo 10.
    """
    geometric = (1 / 3) * (2 / 3) ** np.arange(10) / (1 - (2 / 3) ** 10)
    return np.roll(geometric, 1)


SPAN_LENGTH_PROBABILITIES = _span_length_distribution()
# Set the last bound to exactly 1, so that every uniform number (below 1) is below a bound.
_LENGTH_BOUNDS = np.append(np.cumsum(SPAN_LENGTH_PROBABILITIES)[:-1], 1.0)


class Spans(NamedTuple):
    """Spans in the order in which they were drawn; all arrays are int64 [spans]."""

    lengths: np.ndarray
    """Drawn lengths from 0 to 9, before truncation at the ends of the sequence."""
    firsts: np.ndarray
    """First position of each span."""
    ends: np.ndarray
    """Position after the last position of each span. For an empty span, this position is not above the span's first
    position.
    """


def spans_from(length_draw: np.ndarray, start_draw: np.ndarray, sequence_length: int, n_tokens: int) -> Spans:
    """Return spans within the first `n_tokens` positions of a padded sequence. Each span is computed from two uniform
    numbers, one for its length and one for its start.

    As in LTG-BERT's code, the start of a span of length l is uniform from -(l - 1) to sequence_length + l - 1. So a
    span may also start in padding, and the probability of masking a position does not depend on the amount of padding.
    Position `sequence_length` - 1 is never covered.
    """
    lengths = np.searchsorted(_LENGTH_BOUNDS, length_draw, side="right")
    starts = (start_draw * (sequence_length + 2 * lengths - 1)).astype(np.int64) - (lengths - 1)
    ends = np.minimum(starts + lengths, min(sequence_length - 1, n_tokens))
    return Spans(lengths, np.maximum(starts, 0), ends)


class Cover(NamedTuple):
    """The positions of the tokens to predict, which are covered by random spans."""

    positions: np.ndarray
    """Positions, int64 [labelled], in the order in which spans first covered them."""
    decision: np.ndarray
    """float64 [labelled]: for each position, the uniform number that determines the replacement, drawn for the last
    span that covers the position.
    """
    drawn_lengths: np.ndarray
    """Lengths of all placed spans, including empty spans, int64 [spans]."""


@dataclass(frozen=True)
class SpanMasking:
    """Places spans until they cover a target number of distinct tokens; all tokens of a span get the same kind of
    replacement.

    If spans overlap, the last span determines the replacement. The target number is drawn from a binomial distribution;
    if `at_least_one` is true, it is at least 1. After 100 spans, no further spans are placed. So in a short text with
    much padding, the spans may cover fewer tokens than the target number, or no token.
    """

    needs_word_starts: ClassVar[bool] = False

    mask_probability: float
    corruption: Corruption
    special_tokens_maskable: bool
    sequence_length: int
    at_least_one: bool = True

    def at(self, rate: float) -> "SpanMasking":
        """Return a copy of the rule with `rate` as the share of tokens to predict."""
        return replace(self, mask_probability=rate)

    def __call__(
        self, ids: np.ndarray, word_starts: np.ndarray | None, generator: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mask the example `ids`, int64 [n], which includes special tokens; return its input ids and labels, each int64
        [n]. `word_starts` is ignored.
        """
        inputs, labels = ids.copy(), np.full(len(ids), UNLABELLED, dtype=np.int64)
        cover = self.cover(self.corruption.special.maskable(ids, self.special_tokens_maskable), generator)
        original = ids[cover.positions]
        labels[cover.positions] = original
        inputs[cover.positions] = self.corruption(original, cover.decision, generator)
        return inputs, labels

    def cover(self, maskable: np.ndarray, generator: np.random.Generator) -> Cover:
        """Return the positions that random spans cover and at which `maskable`, bool [n], is True. If `maskable` is
        False everywhere, return no positions.
        """
        n_maskable = int(np.count_nonzero(maskable))
        if n_maskable == 0:
            nothing = np.zeros(0, dtype=np.int64)
            return Cover(nothing, np.zeros(0), nothing)
        # Draw only uniform numbers, because numpy guarantees the stream of uniform numbers across versions. Do not
        # change the number or the order of the draws: a repeated run would get other masks.
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
    """Return a mapping from each covered position that is `allowed` to the index of the last span that covers it, and
    the number of placed spans. Spans are placed in order until they cover `budget` allowed positions.
    """
    span_of: dict[int, int] = {}
    if budget == 0:
        return span_of, 0
    # Use Python integers in this loop, because array operations are not faster for spans of three positions on average.
    for span, (first, end) in enumerate(zip(spans.firsts.tolist(), spans.ends.tolist(), strict=True)):
        for position in range(first, end):
            if allowed[position]:
                span_of[position] = span
        if len(span_of) >= budget:
            return span_of, span + 1
    return span_of, len(spans.lengths)


# Replacement "id" that means: leave the token unchanged. Real ids are never negative.
_KEPT = -1


@dataclass(frozen=True)
class PublishedSpanMasking:
    """Places spans until they cover a target number of maskable tokens; a token in two spans counts twice. The target
    number is drawn from a binomial distribution and can be 0.
    """

    needs_word_starts: ClassVar[bool] = False

    mask_probability: float
    corruption: Corruption
    special_tokens_maskable: bool
    sequence_length: int

    def at(self, rate: float) -> "PublishedSpanMasking":
        """Return a copy of the rule with `rate` as the share of tokens to predict."""
        return replace(self, mask_probability=rate)

    def __call__(
        self, ids: np.ndarray, word_starts: np.ndarray | None, generator: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mask the example `ids`, int64 [n], which includes special tokens; return its input ids and labels, each int64
        [n]. `word_starts` is ignored.

        Spans are applied one after another. If several spans cover a position, the label is the token at this position
        before the last span was applied. This token is usually the replacement that an earlier span has put there, and
        not the token of the text.
        """
        inputs, labels = ids.tolist(), [UNLABELLED] * len(ids)
        cover = self.cover(self.corruption.special.maskable(ids, self.special_tokens_maskable), generator)
        kept = np.full(len(cover.positions), _KEPT, dtype=np.int64)
        replacements = self.corruption(kept, cover.decision, generator)
        # Process one position at a time, because an earlier span may already have replaced the token at this position.
        for position, replacement in zip(cover.positions.tolist(), replacements.tolist(), strict=True):
            labels[position] = inputs[position]
            if replacement != _KEPT:
                inputs[position] = replacement
        return np.array(inputs, dtype=np.int64), np.array(labels, dtype=np.int64)

    def cover(self, maskable: np.ndarray, generator: np.random.Generator) -> Cover:
        """Return the positions that random spans cover and at which `maskable`, bool [n], is True. The positions are in
        the order of the spans; a position that several spans cover is repeated. Each span has a random number
        (`decision`) that determines the replacement of its tokens.

        No span covers position `sequence_length` - 1. If no other position is maskable, return no position; LTG-BERT's
        code would never terminate in this case.
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
    """Return the masking rule of `settings`."""
    common = (settings.mask_probability, corruption, settings.special_tokens_maskable, sequence_length)
    if settings.reading == "as_published":
        return PublishedSpanMasking(*common)
    return SpanMasking(*common, settings.at_least_one)
