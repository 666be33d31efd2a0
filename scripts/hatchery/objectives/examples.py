"""Training examples drawn on the fly: a segment, a pair or a pack of them, framed, masked, and padded into a batch.

Those of causal models are made in `next_tokens`.

Source: the published code of LTG-BERT, ELC-BERT and the reduced-vocabulary study (docs/papers/ltg-bert.md, "Examples").
Every example is a pure function of (seed, epoch, index): the same in any batch, process or order, and after a restart.
"""

from collections.abc import Callable

import numpy as np

from hatchery.objectives.framing import FramedPacks, Framer, Sequences
from hatchery.objectives.masking import MaskingRule, masking_rule
from hatchery.objectives.next_tokens import NextTokenExamples
from hatchery.objectives.packed_sequences import PackedSequences
from hatchery.objectives.padding import LabelledExample, PaddedExamples, Padding
from hatchery.objectives.segmentation import BabylmSegments, BncSegments, DocumentSegments
from hatchery.objectives.segments import DocumentCollection, EncodedSplit, Segments
from hatchery.objectives.sentence_pairs import SentencePairs
from hatchery.objectives.settings import CausalSettings, MaskingSettings
from hatchery.objectives.single_segments import SingleSegments, single_target
from hatchery.objectives.special_ids import SpecialIds

SEGMENTS: dict[str, Callable[[DocumentCollection, int], Segments]] = {
    "babylm": BabylmSegments,
    "bnc": BncSegments,
    "documents": DocumentSegments,
}


class Examples(PaddedExamples):
    """The masked sequences of a split; made by `build_examples`."""

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


def build_examples(
    shards: EncodedSplit, sequence_length: int, settings: MaskingSettings | CausalSettings
) -> PaddedExamples:
    """The examples of a split in sequences of at most `sequence_length` tokens, special tokens included.

    The ids of the special tokens are those that the shards were encoded with. Raises TrainingError when the sequences
    are too short for text, or when the vocabulary has no ordinary token.
    """
    special = SpecialIds.of(shards.special)
    if isinstance(settings, CausalSettings):
        return _next_tokens(shards, sequence_length, settings, special)
    rule = masking_rule(settings, sequence_length, shards.vocabulary_size, special)
    sequences = _sequences(shards, sequence_length, settings, Framer(special, rule.needs_word_starts))
    padding = Padding(special.pad, sequence_length, settings.padding_in_loss, settings.padding_attended)
    return Examples(sequences, rule, padding)


def _next_tokens(
    shards: EncodedSplit, sequence_length: int, settings: CausalSettings, special: SpecialIds
) -> NextTokenExamples:
    pieces: PackedSequences | Segments
    packs = settings.segments == "packed"
    pieces = PackedSequences(shards, sequence_length) if packs else SEGMENTS[settings.segments](shards, sequence_length)
    framer, padding = Framer(special, with_word_starts=False), Padding(special.pad, sequence_length)
    return NextTokenExamples(pieces, framer, padding, keeps_apart=packs and settings.reset_attention)


def _sequences(documents: DocumentCollection, length: int, settings: MaskingSettings, framer: Framer) -> Sequences:
    if settings.segments == "packed":
        return FramedPacks(PackedSequences(documents, length), length, framer)
    segments = SEGMENTS[settings.segments](documents, length)
    if settings.sentence_pairs == "none":
        return SingleSegments(segments, single_target(length, settings.short_probability), framer)
    return SentencePairs(segments, settings.sentence_pairs, length, settings.short_probability, framer)
