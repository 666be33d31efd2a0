"""Sequences as the model sees them before masking: segments framed by [CLS] and [SEP].

Source: docs/papers/ltg-bert.md, "Examples" and "Sentence pairs"; the packed layout is ours.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from hatchery.objectives.packed_sequences import PackedSequences
from hatchery.objectives.segments import Segment
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


class Sequences(Protocol):
    """The framed sequences of a split, by number."""

    def __len__(self) -> int: ...

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
        return FramedSequence(ids, word_starts, None, pair_label)

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
        return FramedSequence(ids, word_starts, lengths)


class FramedPacks:
    """Packed sequences, framed. A room too small for a framed token holds the [SEP] before it once more."""

    def __init__(self, packs: PackedSequences, sequence_length: int, framer: Framer) -> None:
        self._packs, self._sequence_length, self._framer = packs, sequence_length, framer

    def __len__(self) -> int:
        return len(self._packs)

    def draw(self, index: int, generator: np.random.Generator) -> FramedSequence:
        """Sequence `index`; nothing about it is random."""
        pieces = self._packs[index]
        n_free = self._sequence_length - sum(len(piece) + 2 for piece in pieces)
        return self._framer.frame_pieces(pieces, n_free if index + 1 < len(self._packs) else 0)
