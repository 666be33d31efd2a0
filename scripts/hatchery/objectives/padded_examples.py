"""Base class of training examples, and padding of examples to batches.

Two errors of the reduced-vocabulary study's code can be reproduced (docs/papers/reduced-vocabulary.md, "Padding"):
padding as a target, and attention to padding. Every example is a function of (seed, epoch, index), so it does not
depend on batch, process or order, and is the same after a restart.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from hatchery.objectives.mask_rates import MASKABLE
from hatchery.objectives.segments import Segment
from hatchery.objectives.special_ids import SpecialIds
from hatchery.tokenization.special_tokens import UNLABELLED


class LabelledExample(NamedTuple):
    """A sequence with its special tokens and labels, without padding. The sequence has n tokens."""

    input_ids: np.ndarray
    """Token ids, int64 [n]; n is at most the sequence length."""
    labels: np.ndarray
    """Labels, int64 [n]; -100 at positions without a prediction."""
    piece_lengths: list[int] | None = None
    """Lengths of the pieces of the sequence, which do not attend to each other; their sum is n. None if the sequence is
    not divided into pieces.
    """
    pair_label: int | None = None
    """1 if the two texts of the sequence belong together, 0 otherwise; None without sentence pairs."""
    causal: bool | None = None
    """True if tokens attend only to earlier tokens; None if the objective has no causal sequences."""
    texts: tuple[Segment, ...] = ()
    """The texts of the sequence, without special tokens and before masking."""
    own: Mapping[str, np.ndarray] | None = None
    """Tensors that only the objective reads, with names that begin with OWN. Their shape is [n], or [] for one number
    per sequence.
    """


@dataclass(frozen=True)
class Padding:
    """Settings of padding, which is added on the right. The method `batch` makes batches of examples."""

    pad_id: int
    sequence_length: int
    in_loss: bool = False
    """True if the model must predict padding: the label of padding is then the padding id."""
    attended: bool = False
    """True if tokens attend to padding."""

    def batch(self, examples: Sequence[LabelledExample]) -> dict[str, Tensor]:
        """Return a batch whose rows are `examples`.

        T is the length of the longest example. If padding is predicted or attended to, T is `sequence_length` instead.
        The batch contains:

        - `input_ids`, `labels`: int64 [B, T].
        - `attention_mask`: bool [B, T], True at tokens and, if padding is attended to, at padding. If examples have
          `piece_lengths`: bool [B, T, T], True for two tokens of the same piece of a sequence.
        - `causal`: bool [B], True for rows whose tokens attend only to earlier tokens; only if the objective has causal
          sequences.
        - `pair_labels`: int64 [B]; only if examples have pair labels.
        - the objective's additional tensors (`LabelledExample.own`), padded with zeros.
        """
        lengths = np.array([len(example.labels) for example in examples], dtype=np.int64)
        nominal = self.in_loss or self.attended
        shape = (len(examples), self.sequence_length if nominal else int(lengths.max(initial=0)))
        input_ids = np.full(shape, self.pad_id, dtype=np.int64)
        labels = np.full(shape, self.pad_id if self.in_loss else UNLABELLED, dtype=np.int64)
        for row, example in enumerate(examples):
            input_ids[row, : lengths[row]] = example.input_ids
            labels[row, : lengths[row]] = example.labels
        if any(example.piece_lengths is not None for example in examples):
            mask = _same_piece(examples, shape[1])
        else:
            mask = np.ones(shape, dtype=np.bool_) if self.attended else np.arange(shape[1]) < lengths[:, None]
        batch = {"input_ids": input_ids, "attention_mask": mask, "labels": labels}
        pair_labels = [example.pair_label for example in examples if example.pair_label is not None]
        if pair_labels:
            batch["pair_labels"] = np.array(pair_labels, dtype=np.int64)
        if any(example.causal is not None for example in examples):
            batch["causal"] = np.array([bool(example.causal) for example in examples])
        for key in examples[0].own or () if examples else ():
            batch[key] = _padded([example.own[key] for example in examples if example.own is not None], shape)
        return {key: torch.from_numpy(values) for key, values in batch.items()}


def _padded(rows: Sequence[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    """Return one array for a batch. Rows with the shape [n] are padded with zeros, and become an array [B, T]; rows
    with the shape [] become an array [B].
    """
    if rows[0].ndim == 0:
        return np.stack(rows)
    padded = np.zeros(shape, dtype=rows[0].dtype)
    for row, values in enumerate(rows):
        padded[row, : len(values)] = values
    return padded


def _same_piece(examples: Sequence[LabelledExample], length: int) -> np.ndarray:
    """Return an attention mask, bool [B, T, T]: True for two tokens of the same piece of a sequence (`piece_lengths`),
    False for padding. A sequence that is not divided into pieces counts as one piece.
    """
    # Write one block of the attention mask for each piece. A comparison of all pairs of positions would take longer
    # than the masking of tokens.
    mask = np.zeros((len(examples), length, length), dtype=np.bool_)
    for block, example in zip(mask, examples, strict=True):
        end = 0
        for piece_length in example.piece_lengths or [len(example.labels)]:
            start, end = end, end + piece_length
            block[start:end, start:end] = True
    return mask


class PaddedExamples(ABC):
    """Base class of the examples of a split. Each sequence is one example, which is requested by its index."""

    def __init__(self, padding: Padding, special: SpecialIds) -> None:
        self.padding, self.special = padding, special

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of sequences in an epoch."""

    @abstractmethod
    def places(self) -> np.ndarray:
        """Return the position of each sequence's first token in the concatenated tokens of the split, as int64."""

    @abstractmethod
    def example(self, seed: int, epoch: int, index: int, mask_rate: float | None = None) -> LabelledExample:
        """Return the example of sequence `index` in `epoch`. The example is a function of seed, epoch and index, which
        are 0 or more.

        `mask_rate` is the share of tokens to hide; None means the share in the settings.
        """

    @property
    @abstractmethod
    def same_in_every_epoch(self) -> bool:
        """True if the text of a sequence does not depend on the epoch."""

    @abstractmethod
    def texts(self, seed: int, epoch: int, index: int) -> tuple[Segment, ...]:
        """Return the texts of sequence `index` in `epoch`: the texts of `example`, before masking."""

    def words(self, seed: int, epoch: int, indices: Sequence[int] | np.ndarray) -> np.ndarray:
        """Return the number of words that begin in the text of each sequence, int64 [len(indices)]."""
        texts = (self.texts(seed, epoch, int(index)) for index in indices)
        return np.array([sum(text.text_words(self.special) for text in each) for each in texts], dtype=np.int64)

    def batch(
        self, seed: int, epoch: int, indices: Sequence[int] | np.ndarray, mask_rate: float | None = None
    ) -> dict[str, Tensor]:
        """Return a batch of the examples with the indices `indices` in an epoch; see `Padding.batch`."""
        return self.padding.batch([self.example(seed, epoch, int(index), mask_rate) for index in indices])

    def counted_batch(
        self, seed: int, epoch: int, indices: np.ndarray, mask_rate: float | None = None
    ) -> tuple[dict[str, Tensor], int]:
        """Return the same batch as the method `batch`, and the number of words that begin in the texts of the batch."""
        examples = [self.example(seed, epoch, int(index), mask_rate) for index in indices]
        words = sum(text.text_words(self.special) for example in examples for text in example.texts)
        return self.padding.batch(examples), words

    @property
    def fillers(self) -> dict[str, int | bool]:
        """Padding values of the tensors of a batch, by name of the tensor; tensors that are not listed are padded with
        0.
        """
        return {"input_ids": self.padding.pad_id, "attention_mask": False, "labels": UNLABELLED}

    def counted(self, batch: dict[str, Tensor]) -> tuple[int, ...]:
        """Return the number by which each loss of the batch is divided: the number of labels, and the number of pairs
        if there are sentence pairs.

        In masked diffusion, return only the number of tokens that masking can choose.
        """
        if MASKABLE in batch:
            return (int(batch[MASKABLE].sum()),)
        labelled = int((batch["labels"] != UNLABELLED).sum())
        return (labelled, len(batch["pair_labels"])) if "pair_labels" in batch else (labelled,)

    def n_tokens(self, batch: dict[str, Tensor]) -> int:
        """Return the number of tokens of a batch, without padding."""
        # Count ids instead of entries of the attention mask, because the mask may include padding or have an entry for
        # each pair of tokens.
        return int((batch["input_ids"] != self.padding.pad_id).sum())
