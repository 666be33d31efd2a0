"""Span masking: hide a few short spans and predict the hidden subwords.

Source: LTG-BERT section 3.2 (after SpanBERT) in the corrected form of the BabyLM revision, whose labels come from the
clean sequence and whose budget counts distinct positions. The first BNC code labelled some 6 % of the positions with
already corrupted tokens; that is not reproduced.
"""

from dataclasses import dataclass

import numpy as np

from hatchery.errors import TrainingError
from hatchery.objectives.special_ids import SpecialIds

UNLABELLED = -100
MAX_SPANS = 100


def _span_length_distribution() -> np.ndarray:
    """P(length) for lengths 0 to 9 of the published law: geometric with p = 1/3 from 1 on, modulo 10."""
    geometric = (1 / 3) * (2 / 3) ** np.arange(10) / (1 - (2 / 3) ** 10)
    return np.roll(geometric, 1)


SPAN_LENGTH_PROBABILITIES = _span_length_distribution()
# The last bound is exactly 1, which no uniform number reaches.
_LENGTH_BOUNDS = np.append(np.cumsum(SPAN_LENGTH_PROBABILITIES)[:-1], 1.0)


@dataclass(frozen=True)
class SpanMaskingSettings:
    """Shares of the span objective. Raises TrainingError for impossible ones."""

    mask_probability: float = 0.15
    """Expected share of the maskable tokens that are to be predicted (spans overshoot it a little)."""
    random_probability: float = 0.1
    """Share of the spans whose tokens are replaced by random ones."""
    keep_probability: float = 0.1
    """Share of the spans whose tokens stay visible; the remaining spans become [MASK]."""
    short_probability: float = 0.1
    """Share of the examples that are cut to a random shorter length."""

    def __post_init__(self) -> None:
        for name in ("mask_probability", "random_probability", "keep_probability", "short_probability"):
            if not 0 <= getattr(self, name) <= 1:
                raise TrainingError(f"objective.{name}: got {getattr(self, name)!r}, expected a number from 0 to 1")
        if self.random_probability + self.keep_probability > 1:
            total = self.random_probability + self.keep_probability
            raise TrainingError(f"objective.random_probability + keep_probability: got {total}, expected at most 1")


def mask_spans(
    ids: np.ndarray,
    sequence_length: int,
    vocab_size: int,
    settings: SpanMaskingSettings,
    special: SpecialIds,
    generator: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Corrupt `ids` int64 [n] and say what to predict: (input ids, labels), both int64 [n], labels -100 elsewhere.

    `ids` has its [CLS] and [SEP] but no padding, n <= `sequence_length`. Spans start anywhere in the nominal
    `sequence_length`, padding included, as published: the chance of a position does not depend on how a batch is
    trimmed. The last position of the nominal length is never covered. At least one token is aimed at; when 100 spans
    have not met enough tokens (nearly all padding), fewer or none are labelled.
    """
    inputs, labels = ids.copy(), np.full(len(ids), UNLABELLED, dtype=np.int64)
    maskable = ids >= special.n_protected
    n_maskable = int(np.count_nonzero(maskable))
    if n_maskable == 0:
        return inputs, labels
    # All draws are uniform numbers: their stream is the steadiest part of numpy's generators from version to version.
    budget = max(1, int(np.count_nonzero(generator.random(n_maskable) < settings.mask_probability)))
    length_draw, start_draw, decision = generator.random((3, MAX_SPANS))
    span_of = _cover(maskable, sequence_length, budget, length_draw, start_draw)

    positions = np.fromiter(span_of.keys(), dtype=np.int64, count=len(span_of))
    decision = decision[np.fromiter(span_of.values(), dtype=np.int64, count=len(span_of))]
    original = ids[positions]
    n_random = vocab_size - special.first_random
    random_ids = special.first_random + (generator.random(len(positions)) * n_random).astype(np.int64)
    keep_from = 1 - settings.keep_probability
    visible = np.where(decision < keep_from, random_ids, original)
    masked = decision < keep_from - settings.random_probability
    inputs[positions] = np.where(masked, special.mask, visible)
    labels[positions] = original
    return inputs, labels


def _cover(
    maskable: np.ndarray, sequence_length: int, budget: int, length_draw: np.ndarray, start_draw: np.ndarray
) -> dict[int, int]:
    """Maskable positions covered by the first spans that reach `budget`, each with the last span that covers it.

    A span of length l starts at a uniform integer from -(l - 1) to sequence_length + l - 1.
    """
    lengths = np.searchsorted(_LENGTH_BOUNDS, length_draw, side="right")
    starts = (start_draw * (sequence_length + 2 * lengths - 1)).astype(np.int64) - (lengths - 1)
    firsts = np.maximum(starts, 0).tolist()
    ends = np.minimum(starts + lengths, min(sequence_length - 1, len(maskable))).tolist()
    allowed = maskable.tolist()
    # Plain integers: spans hold three positions on average, too few for array operations to pay.
    span_of: dict[int, int] = {}
    for span, (first, end) in enumerate(zip(firsts, ends, strict=True)):
        for position in range(first, end):
            if allowed[position]:
                span_of[position] = span
        if len(span_of) >= budget:
            break
    return span_of
