"""Training examples generated on the fly: hidden or next tokens of sequences with special tokens, padded to a batch.

Source: the published code of LTG-BERT, ELC-BERT and the reduced-vocabulary study (docs/papers/ltg-bert.md, "Examples").
Two errors of the reduced-vocabulary study's code (docs/papers/reduced-vocabulary.md, "Padding"), padding as a target
and attention to padding, are switches. Causal language models: docs/papers/natural-bias.md, "The bias": the end of a
document is a target, its start and padding never are. Their sequences are those of the masked models, so that both
kinds can be compared on the same text: documents between [CLS] and [SEP], one per sequence or packed. Both kinds
together: "GPT or BERT: why not both?" (Charpentier & Samuel, 2024); a hidden token is labelled at the previous
position, where causal sequences also predict it.

Every example is a pure function of (seed, epoch, index): the same in any batch, process or order, and after a restart.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from hatchery.objectives.mask_rates import CHOICE, MASKABLE, RATES, SHOWN, WEIGHTS, MaskRates
from hatchery.objectives.masking import MaskingRule
from hatchery.objectives.segments import (
    BabylmSegments,
    BncSegments,
    DocumentCollection,
    DocumentSegments,
    PackedSequences,
    Segment,
    Segments,
)
from hatchery.objectives.sequences import (
    FramedPacks,
    Framer,
    PairKind,
    SentencePairs,
    Sequences,
    SingleSegments,
    single_target,
)
from hatchery.objectives.special_ids import SpecialIds
from hatchery.objectives.token_preferences import PreferredMasking, chosen, hidden
from hatchery.tokenization.special_tokens import UNLABELLED


class LabelledExample(NamedTuple):
    """One sequence and its labels, without padding, including special tokens."""

    input_ids: np.ndarray
    """int64 [n], n <= sequence_length."""
    labels: np.ndarray
    """int64 [n], -100 at positions without a prediction."""
    piece_lengths: list[int] | None = None
    """Lengths of the independent pieces of the sequence, n in total; None for one piece."""
    pair_label: int | None = None
    """1 if the second text follows the first, 0 otherwise; None without sentence pairs."""
    causal: bool | None = None
    """True if tokens see no later token; None if no example of its kind is causal."""
    texts: tuple[Segment, ...] = ()
    """The text of the sequence, without special tokens."""
    own: Mapping[str, np.ndarray] | None = None
    """Tensors that only the objective reads, with names that begin with OWN: [n], or [] for the whole sequence."""


@dataclass(frozen=True)
class Padding:
    """The padding of a batch on the right."""

    pad_id: int
    sequence_length: int
    in_loss: bool = False
    """True if padding is predicted: its label is then its id."""
    attended: bool = False
    """True if tokens attend to padding: the mask then hides no token."""

    def batch(self, examples: Sequence[LabelledExample]) -> dict[str, Tensor]:
        """Return the examples as rows of one batch.

        Returns `input_ids` int64 [B, T], `labels` int64 [B, T] and `attention_mask` bool [B, T], True at tokens; for
        examples of several pieces it is [B, T, T], True for two tokens of the same piece. If examples can be causal,
        also `causal` bool [B]: tokens of these rows see no later token, with any mask. With pair labels also
        `pair_labels` int64 [B]. T is the length of the longest example, because padding to the nominal length, for
        which masking was drawn, would only cost time. If padding is in the loss or attended to, T is `sequence_length`.
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
    """Return rows [n] as an array of the shape [B, T], padded with zeros; rows [] as an array [B]."""
    if rows[0].ndim == 0:
        return np.stack(rows)
    padded = np.zeros(shape, dtype=rows[0].dtype)
    for row, values in enumerate(rows):
        padded[row, : len(values)] = values
    return padded


def _same_piece(examples: Sequence[LabelledExample], length: int) -> np.ndarray:
    """Return bool [B, T, T]: blocks along the diagonal; padding neither attends nor is attended to."""
    # Write the blocks directly; comparing all pairs of positions would cost more than the masking.
    mask = np.zeros((len(examples), length, length), dtype=np.bool_)
    for block, example in zip(mask, examples, strict=True):
        end = 0
        for piece_length in example.piece_lengths or [len(example.labels)]:
            start, end = end, end + piece_length
            block[start:end, start:end] = True
    return mask


class PaddedExamples(ABC):
    """The sequences of a split by index, with methods that batch them."""

    def __init__(self, padding: Padding, special: SpecialIds) -> None:
        self.padding, self.special = padding, special

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of sequences in an epoch."""

    @abstractmethod
    def places(self) -> np.ndarray:
        """Return the index in the split of the first token of each sequence, int64 [len]."""

    @abstractmethod
    def example(self, seed: int, epoch: int, index: int, mask_rate: float | None = None) -> LabelledExample:
        """Return sequence `index` of `epoch`, a pure function of these numbers, which are 0 or more.

        `mask_rate` is the share of tokens to hide; None is that of the settings.
        """

    @property
    @abstractmethod
    def same_in_every_epoch(self) -> bool:
        """Return whether a sequence has the same text in every epoch."""

    @abstractmethod
    def texts(self, seed: int, epoch: int, index: int) -> tuple[Segment, ...]:
        """Return the text of sequence `index` of `epoch`, as in `example`, without hiding tokens."""

    def words(self, seed: int, epoch: int, indices: Sequence[int] | np.ndarray) -> np.ndarray:
        """Return the number of words that begin in the text of each sequence, int64 [len(indices)]."""
        texts = (self.texts(seed, epoch, int(index)) for index in indices)
        return np.array([sum(text.text_words(self.special) for text in each) for each in texts], dtype=np.int64)

    def batch(
        self, seed: int, epoch: int, indices: Sequence[int] | np.ndarray, mask_rate: float | None = None
    ) -> dict[str, Tensor]:
        """Return the examples `indices` of one epoch as rows of one batch; see `Padding.batch`."""
        return self.padding.batch([self.example(seed, epoch, int(index), mask_rate) for index in indices])

    def counted_batch(
        self, seed: int, epoch: int, indices: np.ndarray, mask_rate: float | None = None
    ) -> tuple[dict[str, Tensor], int]:
        """Return the same batch, and the number of words that begin in its text."""
        examples = [self.example(seed, epoch, int(index), mask_rate) for index in indices]
        words = sum(text.text_words(self.special) for example in examples for text in example.texts)
        return self.padding.batch(examples), words

    @property
    def fillers(self) -> dict[str, int | bool]:
        """Return the padding value of each batch tensor."""
        return {"input_ids": self.padding.pad_id, "attention_mask": False, "labels": UNLABELLED}

    def counted(self, batch: dict[str, Tensor]) -> tuple[int, ...]:
        """Return the number of labels of a batch and, with sentence pairs, of pairs; for weighted labels, of maskable
        tokens.
        """
        if MASKABLE in batch:
            return (int(batch[MASKABLE].sum()),)
        labelled = int((batch["labels"] != UNLABELLED).sum())
        return (labelled, len(batch["pair_labels"])) if "pair_labels" in batch else (labelled,)

    def n_tokens(self, batch: dict[str, Tensor]) -> int:
        """Return the number of tokens of a batch without padding."""
        # Do not count the masks, which may include padding or pairs of tokens.
        return int((batch["input_ids"] != self.padding.pad_id).sum())


Pieces = PackedSequences | Segments
"""The pieces of each sequence of a split: several segments in order, or one segment."""
SEGMENTS: dict[str, Callable[[DocumentCollection, int], Pieces]] = {
    "babylm": BabylmSegments,
    "bnc": BncSegments,
    "documents": DocumentSegments,
    "packed": PackedSequences,
}
"""Ways to divide documents into pieces for sequences of a maximum number of tokens."""


class MaskedExamples(PaddedExamples):
    """The masked sequences of a split."""

    def __init__(
        self,
        sequences: Sequences,
        masking: MaskingRule,
        padding: Padding,
        special: SpecialIds,
        rates: MaskRates | None = None,
        labelled_share: float = 1.0,
        adapts: bool = False,
    ) -> None:
        """Create examples; without `rates`, all sequences have the share of hidden tokens of `masking`, or of the step.

        `labelled_share` of the hidden tokens are labelled. With `adapts`, `masking` is a `PreferredMasking`, and
        batches contain the tensors for masking them again.
        """
        super().__init__(padding, special)
        self._sequences, self._masking = sequences, masking
        self._masking_at = lru_cache(maxsize=1)(masking.at)
        self._rates, self._labelled_share, self._adapts = rates, labelled_share, adapts

    def __len__(self) -> int:
        return len(self._sequences)

    def places(self) -> np.ndarray:
        """Return the index in the split of the first token of each sequence, int64 [len]."""
        return self._sequences.places()

    @property
    def same_in_every_epoch(self) -> bool:
        """Return whether sequences are packed, because only these have no random part."""
        return isinstance(self._sequences, FramedPacks)

    def texts(self, seed: int, epoch: int, index: int) -> tuple[Segment, ...]:
        """Return the text of sequence `index` in `epoch`."""
        return self._sequences.draw(index, _generator(seed, epoch, index)).texts

    def example(self, seed: int, epoch: int, index: int, mask_rate: float | None = None) -> LabelledExample:
        """Return sequence `index` of `epoch`; the three numbers are 0 or more."""
        generator = _generator(seed, epoch, index)
        framed = self._sequences.draw(index, generator)
        own: dict[str, np.ndarray] = {}
        weight = 1.0
        if self._rates is not None:
            rate, weight = self._rates.draw(generator)
            masking = self._masking.at(rate)
        else:
            masking = self._masking if mask_rate is None else self._masking_at(mask_rate)
        if self._adapts:
            assert isinstance(masking, PreferredMasking)
            choice, shown = masking.draws(framed.ids, generator)
            where = chosen(framed.ids, choice, masking.preferences, masking.mask_probability)
            input_ids, labels = hidden(framed.ids, where, shown)
            own = {CHOICE: choice, SHOWN: shown, RATES: np.array(masking.mask_probability)}
        else:
            input_ids, labels = masking(framed.ids, framed.word_starts, generator)
        if self._labelled_share < 1:
            labels[generator.random(len(labels)) >= self._labelled_share] = UNLABELLED
        if self._rates is not None and self._rates.weights == "diffusion":
            maskable = np.array(np.count_nonzero(self.special.maskable(framed.ids)))
            weights = np.full(len(labels), weight / self._labelled_share, dtype=np.float32)
            own |= {WEIGHTS: weights, MASKABLE: maskable}
        pieces, pair = framed.piece_lengths, framed.pair_label
        return LabelledExample(input_ids, labels, pieces, pair, texts=framed.texts, own=own or None)


def _generator(seed: int, epoch: int, index: int) -> np.random.Generator:
    # Philox with a SeedSequence takes 3 microseconds longer than one generator with a changing key, but keeps no state.
    return np.random.Generator(np.random.Philox(np.random.SeedSequence((seed, epoch, index))))


def sequences_of(
    documents: DocumentCollection,
    length: int,
    framer: Framer,
    segments: str,
    sentence_pairs: PairKind | Literal["none"],
    short_probability: float,
) -> Sequences:
    """Return sequences of at most `length` tokens with special tokens: of one segment, packed, or of two texts; some
    are shortened.
    """
    pieces = SEGMENTS[segments](documents, length)
    if isinstance(pieces, PackedSequences):
        return FramedPacks(pieces, length, framer)
    if sentence_pairs == "none":
        return SingleSegments(pieces, single_target(length, short_probability), framer)
    return SentencePairs(pieces, sentence_pairs, length, short_probability, framer)


class NextTokenExamples(PaddedExamples):
    """Examples `[CLS] t1 .. tn [SEP]` of pieces: [CLS] predicts t1, and tn predicts [SEP] at the end of a document.

    If a document continues after the sequence, its last token has no label, because the next token is not [SEP]. With
    `keeps_apart`, the pieces of a sequence do not see each other.
    """

    def __init__(self, pieces: Pieces, framer: Framer, padding: Padding, keeps_apart: bool) -> None:
        super().__init__(padding, framer.special)
        self._pieces, self._framer, self._keeps_apart = pieces, framer, keeps_apart

    def __len__(self) -> int:
        return len(self._pieces)

    def places(self) -> np.ndarray:
        """Return the index in the split of the first token of each sequence, int64 [len]."""
        return self._pieces.places()

    @property
    def same_in_every_epoch(self) -> bool:
        """Return True, because no sequence is random."""
        return True

    def texts(self, seed: int, epoch: int, index: int) -> tuple[Segment, ...]:
        """Return the text of sequence `index`."""
        found = self._pieces[index]
        return tuple(found) if isinstance(found, list) else (found,)

    def example(self, seed: int, epoch: int, index: int, mask_rate: float | None = None) -> LabelledExample:
        """Return sequence `index`, equal in every epoch."""
        pieces = self.texts(seed, epoch, index)
        framed = self._framer.frame_pieces(pieces)
        labels = np.append(framed.ids[1:], UNLABELLED)
        end = 0
        for piece in pieces:
            end += len(piece) + 2
            # The token after [SEP] would be another start.
            labels[end - 1] = UNLABELLED
            if piece.end < len(piece.document.ids):
                labels[end - 2] = UNLABELLED
        apart = framed.piece_lengths if self._keeps_apart else None
        return LabelledExample(framed.ids, labels, apart, causal=True, texts=framed.texts)


class Shifted(PaddedExamples):
    """Sequences in which a hidden token is predicted at the previous position."""

    def __init__(self, hidden: PaddedExamples) -> None:
        super().__init__(hidden.padding, hidden.special)
        self._hidden = hidden

    def __len__(self) -> int:
        return len(self._hidden)

    def places(self) -> np.ndarray:
        """Return the index in the split of the first token of each sequence, int64 [len]."""
        return self._hidden.places()

    @property
    def same_in_every_epoch(self) -> bool:
        """Return whether the shifted sequences are equal in every epoch."""
        return self._hidden.same_in_every_epoch

    def texts(self, seed: int, epoch: int, index: int) -> tuple[Segment, ...]:
        """Return the text of sequence `index` in `epoch`."""
        return self._hidden.texts(seed, epoch, index)

    def example(self, seed: int, epoch: int, index: int, mask_rate: float | None = None) -> LabelledExample:
        """Return sequence `index` of `epoch`."""
        found = self._hidden.example(seed, epoch, index, mask_rate)
        return found._replace(labels=np.append(found.labels[1:], UNLABELLED), causal=False)


class TwoKinds(PaddedExamples):
    """The sequences of a split twice: indices below `len` have hidden tokens, those from `len` on are causal."""

    def __init__(self, hidden: PaddedExamples, causal: PaddedExamples, counted_together: bool = False) -> None:
        """Create examples; `counted_together` is for batches of one kind only, either one."""
        super().__init__(hidden.padding, hidden.special)
        assert len(hidden) == len(causal), "both kinds are made of the same sequences"
        self._hidden, self._causal, self._counted_together = hidden, causal, counted_together

    def __len__(self) -> int:
        return len(self._hidden)

    def places(self) -> np.ndarray:
        """Return the index in the split of the first token of each sequence, int64 [len], equal for both kinds."""
        return self._hidden.places()

    @property
    def same_in_every_epoch(self) -> bool:
        """Return whether both kinds are equal in every epoch."""
        return self._hidden.same_in_every_epoch and self._causal.same_in_every_epoch

    def texts(self, seed: int, epoch: int, index: int) -> tuple[Segment, ...]:
        """Return the text of sequence `index`, which is of the second kind after the last of the first."""
        if index >= len(self):
            return self._causal.texts(seed, epoch, index - len(self))
        return self._hidden.texts(seed, epoch, index)

    def example(self, seed: int, epoch: int, index: int, mask_rate: float | None = None) -> LabelledExample:
        """Return sequence `index` of `epoch`, which is of the second kind after the last of the first."""
        if index >= len(self):
            return self._causal.example(seed, epoch, index - len(self))
        return self._hidden.example(seed, epoch, index, mask_rate)

    def counted(self, batch: dict[str, Tensor]) -> tuple[int, ...]:
        """Return the number of labels of each kind."""
        if self._counted_together:
            return super().counted(batch)
        labelled = (batch["labels"] != UNLABELLED).sum(dim=1)
        second = int(labelled[batch["causal"]].sum())
        return int(labelled.sum()) - second, second
