"""Training examples drawn on the fly: a segment, a pair or a pack of them, framed, masked, and padded into a batch.

Source: the published code of LTG-BERT, ELC-BERT and the reduced-vocabulary study (docs/papers/ltg-bert.md, "Examples").
Every example is a pure function of (seed, epoch, index): the same in any batch, process or order, and after a restart.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np

from hatchery.objectives.masking import MaskingRule
from hatchery.objectives.padding import LabelledExample, PaddedExamples, Padding
from hatchery.objectives.segmentation import BabylmSegments, BncSegments, DocumentSegments, PackedSequences
from hatchery.objectives.segments import DocumentCollection, Segments
from hatchery.objectives.sequences import (
    FramedPacks,
    Framer,
    PairKind,
    SentencePairs,
    Sequences,
    SingleSegments,
    single_target,
)
from hatchery.objectives.settings import SegmentsName

SEGMENTS: dict[str, Callable[[DocumentCollection, int], Segments]] = {
    "babylm": BabylmSegments,
    "bnc": BncSegments,
    "documents": DocumentSegments,
}


class MaskedExamples(PaddedExamples):
    """The masked sequences of a split."""

    def __init__(self, sequences: Sequences, masking: MaskingRule, padding: Padding) -> None:
        super().__init__(padding)
        self._sequences, self._masking = sequences, masking

    def __len__(self) -> int:
        return len(self._sequences)

    def example(self, seed: int, epoch: int, index: int) -> LabelledExample:
        """Sequence `index` as seen in `epoch`; all three numbers are 0 or more."""
        # Philox through a SeedSequence, not one generator with a changing key: 3 microseconds more, and no state.
        generator = np.random.Generator(np.random.Philox(np.random.SeedSequence((seed, epoch, index))))
        framed = self._sequences.draw(index, generator)
        input_ids, labels = self._masking(framed.ids, framed.word_starts, generator)
        return LabelledExample(input_ids, labels, framed.piece_lengths, framed.pair_label)


def pieces_of(documents: DocumentCollection, length: int, segments: SegmentsName) -> PackedSequences | Segments:
    """What the sequences of at most `length` tokens are made of: the segments of documents, or packs of them."""
    return PackedSequences(documents, length) if segments == "packed" else SEGMENTS[segments](documents, length)


def sequences_of(
    documents: DocumentCollection,
    length: int,
    framer: Framer,
    segments: SegmentsName,
    sentence_pairs: PairKind | Literal["none"] = "none",
    short_probability: float = 0.0,
) -> Sequences:
    """Framed sequences of at most `length` tokens, alone, packed or with two texts each, some of them cut short."""
    pieces = pieces_of(documents, length, segments)
    if isinstance(pieces, PackedSequences):
        return FramedPacks(pieces, length, framer)
    if sentence_pairs == "none":
        return SingleSegments(pieces, single_target(length, short_probability), framer)
    return SentencePairs(pieces, sentence_pairs, length, short_probability, framer)
