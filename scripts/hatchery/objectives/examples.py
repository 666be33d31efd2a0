"""Training examples drawn on the fly: a segment, perhaps shortened, framed, masked, and padded into a batch.

Source: LTG-BERT section 3.2 and the data set class of the BabyLM code. Every example is a pure function of (seed,
epoch, index): the same in any batch, process or order, and after a restart.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from hatchery.errors import TrainingError
from hatchery.objectives.segments import N_ADDED_TOKENS, SegmentIndex
from hatchery.objectives.span_masking import UNLABELLED, SpanMaskingSettings, mask_spans
from hatchery.objectives.special_ids import SpecialIds


class MaskedExample(NamedTuple):
    """One example without padding: `[CLS] tokens [SEP]`."""

    input_ids: np.ndarray
    """int64 [n], n <= sequence_length."""
    labels: np.ndarray
    """int64 [n], -100 where nothing is to be predicted."""


class MaskedExamples:
    """The segments of a split as masked-language-model examples.

    Raises TrainingError when the segments are longer than the sequences, or when the vocabulary has no ordinary token.
    """

    def __init__(
        self,
        segments: SegmentIndex,
        sequence_length: int,
        vocab_size: int,
        special: SpecialIds,
        settings: SpanMaskingSettings | None = None,
    ) -> None:
        self.segments, self.sequence_length, self.vocab_size = segments, sequence_length, vocab_size
        self.settings = settings or SpanMaskingSettings()
        self.special = special
        if segments.sequence_length > sequence_length:
            expected = f"at least the {segments.sequence_length} that the segments were built for"
            raise TrainingError(f"sequence_length: got {sequence_length}, expected {expected}")
        if vocab_size <= self.special.n_protected:
            raise TrainingError(f"vocab_size: got {vocab_size}, expected more than {self.special.n_protected}")

    def __len__(self) -> int:
        return len(self.segments)

    @property
    def pad_id(self) -> int:
        """The id that fills the input behind a sequence."""
        return self.special.pad

    def example(self, seed: int, epoch: int, index: int) -> MaskedExample:
        """Segment `index` as seen in `epoch`; all three numbers are 0 or more."""
        # Philox through a SeedSequence, not one generator with a changing key: 3 microseconds more, and no state.
        generator = np.random.Generator(np.random.Philox(np.random.SeedSequence((seed, epoch, index))))
        tokens = self.segments.tokens(index)
        short_draw, length_draw = generator.random(2)
        if short_draw < self.settings.short_probability:
            # Uniform from 1 to sequence_length - 3; a segment that is shorter already stays whole.
            tokens = tokens[: 1 + int(length_draw * (self.sequence_length - N_ADDED_TOKENS - 1))]
        ids = np.empty(len(tokens) + N_ADDED_TOKENS, dtype=np.int64)
        ids[0], ids[-1] = self.special.cls, self.special.sep
        ids[1:-1] = tokens
        inputs, labels = mask_spans(ids, self.sequence_length, self.vocab_size, self.settings, self.special, generator)
        return MaskedExample(inputs, labels)

    def batch(self, seed: int, epoch: int, indices: Sequence[int] | np.ndarray) -> dict[str, Tensor]:
        """Examples `indices` of one epoch, padded on the right to the longest of them.

        Returns `input_ids` int64 [B, T], `attention_mask` bool [B, T] (True at tokens) and `labels` int64 [B, T]
        (-100 where nothing is to be predicted). Padding up to `sequence_length` would only cost time: masking was
        drawn for the nominal length, and attention does not see padding.
        """
        examples = [self.example(seed, epoch, int(index)) for index in indices]
        lengths = np.array([len(example.labels) for example in examples])
        shape = (len(examples), int(lengths.max(initial=0)))
        input_ids = np.full(shape, self.special.pad, dtype=np.int64)
        labels = np.full(shape, UNLABELLED, dtype=np.int64)
        for row, example in enumerate(examples):
            input_ids[row, : lengths[row]] = example.input_ids
            labels[row, : lengths[row]] = example.labels
        return {
            "input_ids": torch.from_numpy(input_ids),
            "attention_mask": torch.from_numpy(np.arange(shape[1]) < lengths[:, None]),
            "labels": torch.from_numpy(labels),
        }
