"""Sequences as the model sees them before masking: one segment, a pack of them or two texts, framed by [CLS] and [SEP].

Source: LTG-BERT, Section 5.2; docs/papers/ltg-bert.md, "Examples" and "Sentence pairs"; the packed layout is ours. A
pair asks whether its texts belong together: `document` whether the second text follows the first or comes from
elsewhere, `order` whether two neighbouring texts stand in their original order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np

from hatchery.errors import TrainingError
from hatchery.objectives.segments import N_ADDED_TOKENS, PackedSequences, Segment, Segments, room_for_tokens
from hatchery.objectives.special_ids import SpecialIds


class FramedSequence(NamedTuple):
    """A sequence of n tokens without padding."""

    ids: np.ndarray
    """int64 [n], special tokens included."""
    word_starts: np.ndarray | None
    """bool [n], True at special tokens too; None where nobody needs them."""
    piece_lengths: list[int] | None = None
    """Lengths of the independent pieces that the sequence is made of, n in all; None for one piece."""
    pair_label: int | None = None
    """1 where two texts follow each other in this order, 0 otherwise; None where no pair is judged."""
    texts: tuple[Segment, ...] = ()
    """The text in it, without what frames it."""


class Sequences(Protocol):
    """The framed sequences of a split, by number."""

    def __len__(self) -> int: ...

    def places(self) -> np.ndarray:
        """The token of the split that each sequence begins with, int64 [len]."""

    def draw(self, index: int, generator: np.random.Generator) -> FramedSequence:
        """Sequence `index`, with all that is random about it drawn from `generator`."""


@dataclass(frozen=True)
class Framer:
    """Puts special tokens around segments; copies word starts only where `with_word_starts`."""

    special: SpecialIds
    with_word_starts: bool

    def frame(self, parts: Sequence[Segment], pair_label: int | None = None) -> FramedSequence:
        """`[CLS] part [SEP]`, followed by `part [SEP]` for each further part."""
        length = 1 + sum(map(len, parts)) + len(parts)
        ids = np.empty(length, dtype=np.int64)
        word_starts = np.ones(length, dtype=np.bool_) if self.with_word_starts else None
        ids[0], end = self.special.cls, 0
        for part in parts:
            first, end = end + 1, end + 1 + len(part)
            ids[first:end] = part.tokens
            ids[end] = self.special.sep
            if word_starts is not None:
                word_starts[first:end] = part.word_starts
        return FramedSequence(ids, word_starts, None, pair_label, tuple(parts))

    def frame_pieces(self, pieces: Sequence[Segment], n_free: int = 0) -> FramedSequence:
        """`[CLS] piece [SEP]` one behind the other; `n_free` more [SEP] close the last one."""
        framed = [self.frame([piece]) for piece in pieces]
        lengths = [len(sequence.ids) for sequence in framed]
        lengths[-1] += n_free
        ids = np.concatenate([*(sequence.ids for sequence in framed), np.full(n_free, self.special.sep)])
        word_starts = None
        if self.with_word_starts:
            starts = [sequence.word_starts for sequence in framed if sequence.word_starts is not None]
            word_starts = np.concatenate([*starts, np.ones(n_free, dtype=np.bool_)])
        return FramedSequence(ids, word_starts, lengths, texts=tuple(pieces))


class FramedPacks:
    """Packed sequences, framed. A room too small for a framed token holds the [SEP] before it once more."""

    def __init__(self, packs: PackedSequences, sequence_length: int, framer: Framer) -> None:
        self._packs, self._sequence_length, self._framer = packs, sequence_length, framer

    def __len__(self) -> int:
        return len(self._packs)

    def places(self) -> np.ndarray:
        """The token of the split that each sequence begins with, int64 [len]."""
        return self._packs.places()

    def draw(self, index: int, generator: np.random.Generator) -> FramedSequence:
        """Sequence `index`; nothing about it is random."""
        pieces = self._packs[index]
        n_free = self._sequence_length - sum(len(piece) + 2 for piece in pieces)
        return self._framer.frame_pieces(pieces, n_free if index + 1 < len(self._packs) else 0)


@dataclass(frozen=True)
class TargetLength:
    """How many tokens a sequence may hold at most: `full`, or rarely a uniform number from `least` to `full` - 1."""

    full: int
    least: int
    short_probability: float

    def __call__(self, short_draw: float, length_draw: float) -> int:
        """The length that two uniform numbers from [0, 1) mean."""
        if short_draw >= self.short_probability:
            return self.full
        return self.least + int(length_draw * (self.full - self.least))


def single_target(sequence_length: int, short_probability: float) -> TargetLength:
    """Of one segment: `sequence_length` - 2, or 1 to `sequence_length` - 3."""
    return TargetLength(room_for_tokens(sequence_length), 1, short_probability)


class SingleSegments:
    """`[CLS] segment [SEP]`; a segment that is shorter than its target length stays whole."""

    def __init__(self, segments: Segments, target: TargetLength, framer: Framer) -> None:
        self._segments, self._target, self._framer = segments, target, framer

    def __len__(self) -> int:
        return len(self._segments)

    def places(self) -> np.ndarray:
        """The token of the split that each sequence begins with, int64 [len]."""
        return self._segments.places()

    def draw(self, index: int, generator: np.random.Generator) -> FramedSequence:
        """Segment `index`, cut to a target length drawn from `generator`."""
        short_draw, length_draw = generator.random(2)
        return self._framer.frame([self._segments[index].first(self._target(short_draw, length_draw))])


PairKind = Literal["document", "order"]
# The text from elsewhere is drawn once, and again up to so many times while it comes from the same document.
N_REDRAWS = 10


class SentencePairs:
    """`[CLS] A [SEP] B [SEP]` made from the segments of a split, one pair for each of them.

    A and B together hold `sequence_length` - 3 tokens, or with `short_probability` a uniform number from 2 to
    `sequence_length` - 4. A segment of one sentence cannot be cut in two: `document` takes its B from elsewhere, and
    `order` shows it alone with the label 0, which is noise, as published. Raises TrainingError when `sequence_length`
    is below 5.
    """

    def __init__(
        self, segments: Segments, kind: PairKind, sequence_length: int, short_probability: float, framer: Framer
    ) -> None:
        full = sequence_length - N_ADDED_TOKENS - 1
        if full < 2:
            raise TrainingError(f"sequence_length: got {sequence_length}, expected 5 or more for sentence pairs")
        self._segments, self._kind, self._framer = segments, kind, framer
        self._pair_target = TargetLength(full, 2, short_probability)
        self._single_target = single_target(sequence_length, short_probability)

    def __len__(self) -> int:
        return len(self._segments)

    def places(self) -> np.ndarray:
        """The token of the split that each sequence begins with, int64 [len]."""
        return self._segments.places()

    def draw(self, index: int, generator: np.random.Generator) -> FramedSequence:
        """The pair of segment `index`, its label and its lengths drawn from `generator`."""
        short_draw, length_draw, relation_draw, boundary_draw, hole_draw = generator.random(5)
        segment = self._segments[index]
        boundaries = segment.inner_sentence_starts
        if self._kind == "document" and (relation_draw <= 0.5 or len(boundaries) == 0):
            stranger = self._stranger(segment, generator)
            if stranger is not None:
                return self._framer.frame(self._fitted(segment, stranger, short_draw, length_draw, hole_draw), 0)
        if len(boundaries) == 0:
            # Also where `document` finds no other document: there is no second text, hence none that follows.
            return self._framer.frame([segment.first(self._single_target(short_draw, length_draw))], 0)
        first, second = segment.split_at(boundaries.item(int(boundary_draw * len(boundaries))))
        swapped = self._kind == "order" and relation_draw < 0.5
        if swapped:
            first, second = second, first
        return self._framer.frame(self._fitted(first, second, short_draw, length_draw, hole_draw), int(not swapped))

    def _stranger(self, segment: Segment, generator: np.random.Generator) -> Segment | None:
        """A segment of another document; None where all draws gave the same document."""
        for draw in generator.random(1 + N_REDRAWS):
            drawn = self._segments[int(draw * len(self._segments))]
            if drawn.number != segment.number:
                return drawn
        return None

    def _fitted(
        self, first: Segment, second: Segment, short_draw: float, length_draw: float, hole_draw: float
    ) -> tuple[Segment, Segment]:
        """Both texts, at least one token of each, without as many tokens of their ends as are too many.

        What is cut off from the first text leaves a hole between the two, also where they are neighbours.
        """
        excess = len(first) + len(second) - self._pair_target(short_draw, length_draw)
        if excess <= 0:
            return first, second
        least, most = max(0, excess - len(second) + 1), min(excess, len(first) - 1)
        from_first = least + int(hole_draw * (most - least + 1))
        return first.first(len(first) - from_first), second.first(len(second) - (excess - from_first))
