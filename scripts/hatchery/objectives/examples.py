"""Training examples drawn on the fly: a segment, a pair or a pack of them, framed, masked, and padded into a batch.

Source: LTG-BERT sections 3.1 to 3.6, ELC-BERT sections 3.1 to 3.3, reduced-vocabulary sections 5.2 and 5.3. Every
example is a pure function of (seed, epoch, index): the same in any batch, process or order, and after a restart.
"""

from collections.abc import Callable, Sequence

import numpy as np
from torch import Tensor

from hatchery.objectives.framing import FramedPacks, Framer, Sequences
from hatchery.objectives.masking import MaskingRule, masking_rule
from hatchery.objectives.packed_sequences import PackedSequences
from hatchery.objectives.padding import MaskedExample, Padding
from hatchery.objectives.segmentation import BabylmSegments, BncSegments, DocumentSegments
from hatchery.objectives.segments import DocumentCollection, EncodedSplit, Segments
from hatchery.objectives.sentence_pairs import SentencePairs
from hatchery.objectives.settings import ObjectiveSettings
from hatchery.objectives.single_segments import SingleSegments, single_target
from hatchery.objectives.special_ids import SpecialIds

SEGMENTS: dict[str, Callable[[DocumentCollection, int], Segments]] = {
    "babylm": BabylmSegments,
    "bnc": BncSegments,
    "documents": DocumentSegments,
}


class Examples:
    """The masked sequences of a split; made by `build_examples`."""

    def __init__(self, sequences: Sequences, masking: MaskingRule, padding: Padding) -> None:
        self._sequences, self._masking, self._padding = sequences, masking, padding

    def __len__(self) -> int:
        return len(self._sequences)

    @property
    def pad_id(self) -> int:
        """The id that fills the input behind a sequence."""
        return self._padding.pad_id

    def example(self, seed: int, epoch: int, index: int) -> MaskedExample:
        """Sequence `index` as seen in `epoch`; all three numbers are 0 or more."""
        # Philox through a SeedSequence, not one generator with a changing key: 3 microseconds more, and no state.
        generator = np.random.Generator(np.random.Philox(np.random.SeedSequence((seed, epoch, index))))
        framed = self._sequences.draw(index, generator)
        input_ids, labels = self._masking(framed.ids, framed.word_starts, generator)
        return MaskedExample(input_ids, labels, framed.piece_lengths, framed.pair_label)

    def batch(self, seed: int, epoch: int, indices: Sequence[int] | np.ndarray) -> dict[str, Tensor]:
        """Examples `indices` of one epoch as rows of one batch; see `hatchery.objectives.padding.Padding.batch`."""
        return self._padding.batch([self.example(seed, epoch, int(index)) for index in indices])


def build_examples(shards: EncodedSplit, sequence_length: int, settings: ObjectiveSettings) -> Examples:
    """The examples of a split in sequences of at most `sequence_length` tokens, special tokens included.

    The ids of the special tokens are those that the shards were encoded with. Raises TrainingError when the sequences
    are too short for text, or when the vocabulary has no ordinary token.
    """
    special = SpecialIds.of(shards.special)
    rule = masking_rule(settings, sequence_length, shards.vocabulary_size, special)
    sequences = _sequences(shards, sequence_length, settings, Framer(special, rule.needs_word_starts))
    padding = Padding(special.pad, sequence_length, settings.padding_in_loss, settings.padding_attended)
    return Examples(sequences, rule, padding)


def _sequences(documents: DocumentCollection, length: int, settings: ObjectiveSettings, framer: Framer) -> Sequences:
    if settings.segments == "packed":
        return FramedPacks(PackedSequences(documents, length), length, framer)
    segments = SEGMENTS[settings.segments](documents, length)
    if settings.sentence_pairs == "none":
        return SingleSegments(segments, single_target(length, settings.short_probability), framer)
    return SentencePairs(segments, settings.sentence_pairs, length, settings.short_probability, framer)
