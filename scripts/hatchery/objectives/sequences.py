"""Sequences with [CLS] and [SEP], before masking: one segment, several packed segments or two texts.

Source: LTG-BERT, Section 5.2; docs/papers/ltg-bert.md, "Examples" and "Sentence pairs". Packed sequences are Hatchery's
own method. The label of a pair is 1 if its two texts belong together. In pairs of the kind `document`, the second text
follows the first text (label 1) or comes from another document; in pairs of the kind `order`, two neighbouring texts
are in their original order (label 1) or swapped.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np

from hatchery.errors import TrainingError
from hatchery.objectives.segments import N_ADDED_TOKENS, PackedSequences, Segment, Segments, room_for_tokens
from hatchery.objectives.special_ids import SpecialIds


class FramedSequence(NamedTuple):
    """A sequence of n tokens: texts and special tokens, without padding."""

    ids: np.ndarray
    """Token ids, int64 [n], special tokens included."""
    word_starts: np.ndarray | None
    """Mask, bool [n], that is True at tokens that start a word and at special tokens; None if the masking rule needs no
    word starts.
    """
    piece_lengths: list[int] | None = None
    """Lengths of the pieces of a packed sequence, with special tokens; their sum is n. None for other sequences."""
    pair_label: int | None = None
    """1 if the two texts of the sequence belong together, 0 otherwise; None without sentence pairs."""
    texts: tuple[Segment, ...] = ()
    """The texts of the sequence, without special tokens."""


class Sequences(Protocol):
    """Interface of the sequences of a split, which are requested by index. The sequences have special tokens and are
    not masked yet.
    """

    def __len__(self) -> int: ...

    def places(self) -> np.ndarray:
        """Return the position of each sequence's first token in the concatenated tokens of the split, as int64."""

    def draw(self, index: int, generator: np.random.Generator) -> FramedSequence:
        """Return sequence `index`; the random parts of the sequence are drawn with `generator`."""


@dataclass(frozen=True)
class Framer:
    """Adds special tokens to segments. If `with_word_starts` is true, the framed sequence also contains a mask of the
    tokens that begin a word.
    """

    special: SpecialIds
    with_word_starts: bool

    def frame(self, parts: Sequence[Segment], pair_label: int | None = None) -> FramedSequence:
        """Return `[CLS] part [SEP]`, followed by `part [SEP]` for each part after the first. `pair_label` is the label
        of a pair of texts, None without pairs.
        """
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
        """Return the concatenation of `[CLS] piece [SEP]` for all pieces, followed by `n_free` additional [SEP]."""
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
    """Packed sequences with special tokens. One or two free positions at the end of a sequence are filled with [SEP],
    except in the last sequence.
    """

    def __init__(self, packs: PackedSequences, sequence_length: int, framer: Framer) -> None:
        self._packs, self._sequence_length, self._framer = packs, sequence_length, framer

    def __len__(self) -> int:
        return len(self._packs)

    def places(self) -> np.ndarray:
        """Return the position of each sequence's first token in the concatenated tokens of the split, as int64."""
        return self._packs.places()

    def draw(self, index: int, generator: np.random.Generator) -> FramedSequence:
        """Return sequence `index`, which has no random parts."""
        pieces = self._packs[index]
        n_free = self._sequence_length - sum(len(piece) + 2 for piece in pieces)
        return self._framer.frame_pieces(pieces, n_free if index + 1 < len(self._packs) else 0)


@dataclass(frozen=True)
class TargetLength:
    """Distribution of the maximum number of text tokens in a sequence. With the probability `short_probability`, the
    maximum is a uniform number from `least` to `full` - 1; otherwise, it is `full`.
    """

    full: int
    least: int
    short_probability: float

    def __call__(self, short_draw: float, length_draw: float) -> int:
        """Return a maximum number of text tokens, computed from two uniform numbers from 0 to 1."""
        if short_draw >= self.short_probability:
            return self.full
        return self.least + int(length_draw * (self.full - self.least))


def single_target(sequence_length: int, short_probability: float) -> TargetLength:
    """Return the distribution of the maximum number of text tokens in a sequence with one segment. With the probability
    `short_probability`, the maximum is a random number below `sequence_length` - 2; otherwise, it is `sequence_length`
    - 2.
    """
    return TargetLength(room_for_tokens(sequence_length), 1, short_probability)


class SingleSegments:
    """Sequences `[CLS] segment [SEP]`. Each segment is truncated to a length that is drawn from the distribution
    `target`.
    """

    def __init__(self, segments: Segments, target: TargetLength, framer: Framer) -> None:
        self._segments, self._target, self._framer = segments, target, framer

    def __len__(self) -> int:
        return len(self._segments)

    def places(self) -> np.ndarray:
        """Return the position of each sequence's first token in the concatenated tokens of the split, as int64."""
        return self._segments.places()

    def draw(self, index: int, generator: np.random.Generator) -> FramedSequence:
        """Return the sequence of segment `index`, truncated to a length that is drawn with `generator`."""
        short_draw, length_draw = generator.random(2)
        return self._framer.frame([self._segments[index].first(self._target(short_draw, length_draw))])


PairKind = Literal["document", "order"]
# Maximum number of times that a second text is drawn again because it comes from the same document as the first text.
N_REDRAWS = 10


class SentencePairs:
    """Sequences `[CLS] A [SEP] B [SEP]` of two texts A and B, one sequence for each segment of a split.

    A and B together have at most `sequence_length` - 3 tokens. With the probability `short_probability`, the maximum is
    a smaller random number. A segment of one sentence cannot be divided into A and B. For such a segment, the kind
    `document` draws B from another document. The kind `order` makes a sequence without B. The kind `document` also
    makes a sequence without B if it has drawn no other document. The label of a sequence without B is 0; as in
    LTG-BERT's code, this label is noise. Raises TrainingError if `sequence_length` is below 5.
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
        """Return the position of each sequence's first token in the concatenated tokens of the split, as int64."""
        return self._segments.places()

    def draw(self, index: int, generator: np.random.Generator) -> FramedSequence:
        """Return the pair of segment `index`; the second text, the order and the lengths are drawn with `generator`."""
        short_draw, length_draw, relation_draw, boundary_draw, hole_draw = generator.random(5)
        segment = self._segments[index]
        boundaries = segment.inner_sentence_starts
        if self._kind == "document" and (relation_draw <= 0.5 or len(boundaries) == 0):
            stranger = self._stranger(segment, generator)
            if stranger is not None:
                return self._framer.frame(self._fitted(segment, stranger, short_draw, length_draw, hole_draw), 0)
        if len(boundaries) == 0:
            # The segment cannot be split. Return a sequence of only this segment. This also happens if the second
            # segment should come from another document, but no text of another document was drawn. The label is 0,
            # because no text follows the segment.
            return self._framer.frame([segment.first(self._single_target(short_draw, length_draw))], 0)
        first, second = segment.split_at(boundaries.item(int(boundary_draw * len(boundaries))))
        swapped = self._kind == "order" and relation_draw < 0.5
        if swapped:
            first, second = second, first
        return self._framer.frame(self._fitted(first, second, short_draw, length_draw, hole_draw), int(not swapped))

    def _stranger(self, segment: Segment, generator: np.random.Generator) -> Segment | None:
        """Return a randomly drawn segment of another document than that of `segment`. Return None if all of several
        draws give segments of the same document.
        """
        for draw in generator.random(1 + N_REDRAWS):
            drawn = self._segments[int(draw * len(self._segments))]
            if drawn.number != segment.number:
                return drawn
        return None

    def _fitted(
        self, first: Segment, second: Segment, short_draw: float, length_draw: float, hole_draw: float
    ) -> tuple[Segment, Segment]:
        """Return the two texts of a sequence, truncated if together they have more tokens than a drawn maximum; each
        text keeps at least one token.

        The texts are truncated at their ends. If the second text follows the first text in the document, the truncation
        of the first text leaves a gap between the two texts. The three draws are uniform numbers from 0 to 1:
        `short_draw` and `length_draw` determine the maximum, and `hole_draw` determines how many of the surplus tokens
        the first text loses.
        """
        excess = len(first) + len(second) - self._pair_target(short_draw, length_draw)
        if excess <= 0:
            return first, second
        least, most = max(0, excess - len(second) + 1), min(excess, len(first) - 1)
        from_first = least + int(hole_draw * (most - least + 1))
        return first.first(len(first) - from_first), second.first(len(second) - (excess - from_first))
