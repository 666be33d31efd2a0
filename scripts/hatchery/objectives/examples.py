"""Training examples: sequences with special tokens and with labels for hidden or next tokens, padded to a batch.

Source: the published code of LTG-BERT, ELC-BERT and the reduced-vocabulary study (docs/papers/ltg-bert.md, "Examples").
In causal language models, the end of a document is a target; the start of a document and padding are not
(docs/papers/natural-bias.md, "The bias"). In hybrid models, a masked token is predicted at the previous position, as in
causal sequences ("GPT or BERT: why not both?", Charpentier & Samuel, 2024). With the same setting `segments`, masked
and causal models read the same text: each sequence contains pieces of documents between [CLS] and [SEP], one piece or
several packed pieces.

Every example is a function of (seed, epoch, index), so it does not depend on batch, process or order, and is the same
after a restart.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Literal

import numpy as np
from torch import Tensor

from hatchery.objectives.mask_rates import CHOICE, MASKABLE, RATES, SHOWN, WEIGHTS, MaskRates
from hatchery.objectives.masking import MaskingRule
from hatchery.objectives.padded_examples import LabelledExample, PaddedExamples, Padding
from hatchery.objectives.segments import (
    N_ADDED_TOKENS,
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

Pieces = PackedSequences | Segments
"""Type of the texts of all sequences of a split. The text of a sequence is a list of segments (packed), or one segment.
"""
SEGMENTS: dict[str, Callable[[DocumentCollection, int], Pieces]] = {
    "babylm": BabylmSegments,
    "bnc": BncSegments,
    "documents": DocumentSegments,
    "packed": PackedSequences,
}
"""For each choice of the setting `segments`, the function that divides documents into the texts of sequences of a given
length.
"""


class MaskedExamples(PaddedExamples):
    """The masked sequences of a split, as examples."""

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
        """If `rates` is given, each sequence draws its share of masked tokens. If `rates` is None, `masking` or the
        argument `mask_rate` of `example` determines this share. The share `labelled_share` of the masked tokens has
        labels. If `adapts` is true, `masking` is a `PreferredMasking`. Batches then also contain the random numbers of
        the masking, so that the tokens can be masked again after the preferences have changed.
        """
        super().__init__(padding, special)
        self._sequences, self._masking = sequences, masking
        self._masking_at = lru_cache(maxsize=1)(masking.at)
        self._rates, self._labelled_share, self._adapts = rates, labelled_share, adapts

    def __len__(self) -> int:
        return len(self._sequences)

    def places(self) -> np.ndarray:
        """Return the position of each sequence's first token in the concatenated tokens of the split, as int64."""
        return self._sequences.places()

    @property
    def same_in_every_epoch(self) -> bool:
        """True only for packed sequences, because all other sequences may be truncated to random lengths."""
        return isinstance(self._sequences, FramedPacks)

    def texts(self, seed: int, epoch: int, index: int) -> tuple[Segment, ...]:
        """Return the text of sequence `index` in `epoch`."""
        return self._sequences.draw(index, _generator(seed, epoch, index)).texts

    def example(self, seed: int, epoch: int, index: int, mask_rate: float | None = None) -> LabelledExample:
        """Return the example of sequence `index` in `epoch`. Seed, epoch and index are 0 or more."""
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
    # Create a generator for each example, so that examples do not depend on earlier examples. This costs 3 microseconds
    # more than changing the key of a single generator.
    return np.random.Generator(np.random.Philox(np.random.SeedSequence((seed, epoch, index))))


def sequences_of(
    documents: DocumentCollection,
    length: int,
    framer: Framer,
    segments: str,
    sentence_pairs: PairKind | Literal["none"],
    short_probability: float,
) -> Sequences:
    """Return sequences of at most `length` tokens, special tokens included.

    Each sequence contains one segment, several packed segments, or two texts. Sequences that are not packed are
    truncated to a random length with the probability `short_probability`.
    """
    pieces = SEGMENTS[segments](documents, length)
    if isinstance(pieces, PackedSequences):
        return FramedPacks(pieces, length, framer)
    if sentence_pairs == "none":
        return SingleSegments(pieces, single_target(length, short_probability), framer)
    return SentencePairs(pieces, sentence_pairs, length, short_probability, framer)


class NextTokenExamples(PaddedExamples):
    """Causal examples. A sequence has one or more pieces `[CLS] t1 .. tn [SEP]`. [CLS] predicts t1, and tn predicts
    [SEP] if the document ends after tn.

    If the document continues after tn, the position of tn has no label. If `keeps_apart` is true, the pieces of a
    sequence do not attend to each other.
    """

    def __init__(self, pieces: Pieces, framer: Framer, padding: Padding, keeps_apart: bool) -> None:
        super().__init__(padding, framer.special)
        self._pieces, self._framer, self._keeps_apart = pieces, framer, keeps_apart

    def __len__(self) -> int:
        return len(self._pieces)

    def places(self) -> np.ndarray:
        """Return the position of each sequence's first token in the concatenated tokens of the split, as int64."""
        return self._pieces.places()

    @property
    def same_in_every_epoch(self) -> bool:
        """True, because the sequences have no random parts."""
        return True

    def texts(self, seed: int, epoch: int, index: int) -> tuple[Segment, ...]:
        """Return the text of sequence `index`. A segment that is too long for a sequence is truncated; only segments of
        the kind `bnc` can be too long.
        """
        found = self._pieces[index]
        if isinstance(found, list):
            return tuple(found)
        return (found.first(self.padding.sequence_length - N_ADDED_TOKENS),)

    def example(self, seed: int, epoch: int, index: int, mask_rate: float | None = None) -> LabelledExample:
        """Return the example of sequence `index`. The example is the same in every epoch, so seed and epoch have no
        effect.
        """
        pieces = self.texts(seed, epoch, index)
        framed = self._framer.frame_pieces(pieces)
        labels = np.append(framed.ids[1:], UNLABELLED)
        end = 0
        for piece in pieces:
            end += len(piece) + 2
            # The position of [SEP] has no label, because the first token of the next piece is not predicted.
            labels[end - 1] = UNLABELLED
            if piece.end < len(piece.document.ids):
                labels[end - 2] = UNLABELLED
        apart = framed.piece_lengths if self._keeps_apart else None
        return LabelledExample(framed.ids, labels, apart, causal=True, texts=framed.texts)


class Shifted(PaddedExamples):
    """Masked examples with moved labels: the label of a masked token is at the position before this token. The
    parameter `hidden` contains the same examples with each label at the masked token.
    """

    def __init__(self, hidden: PaddedExamples) -> None:
        super().__init__(hidden.padding, hidden.special)
        self._hidden = hidden

    def __len__(self) -> int:
        return len(self._hidden)

    def places(self) -> np.ndarray:
        """Return the position of each sequence's first token in the concatenated tokens of the split, as int64."""
        return self._hidden.places()

    @property
    def same_in_every_epoch(self) -> bool:
        """True if the text of a sequence does not depend on the epoch."""
        return self._hidden.same_in_every_epoch

    def texts(self, seed: int, epoch: int, index: int) -> tuple[Segment, ...]:
        """Return the text of sequence `index` in `epoch`."""
        return self._hidden.texts(seed, epoch, index)

    def example(self, seed: int, epoch: int, index: int, mask_rate: float | None = None) -> LabelledExample:
        """Return the example of sequence `index` in `epoch`."""
        found = self._hidden.example(seed, epoch, index, mask_rate)
        return found._replace(labels=np.append(found.labels[1:], UNLABELLED), causal=False)


class TwoKinds(PaddedExamples):
    """Masked and causal examples of a split. With n = len(self), the indices 0 to n - 1 are masked sequences, and the
    indices n to 2 n - 1 are causal sequences.
    """

    def __init__(self, hidden: PaddedExamples, causal: PaddedExamples, counted_together: bool = False) -> None:
        """If `counted_together` is true, `counted` returns one number of labels for masked and causal sequences
        together.
        """
        super().__init__(hidden.padding, hidden.special)
        assert len(hidden) == len(causal), "both kinds are made of the same sequences"
        self._hidden, self._causal, self._counted_together = hidden, causal, counted_together

    def __len__(self) -> int:
        return len(self._hidden)

    def places(self) -> np.ndarray:
        """Return the position of each masked sequence's first token in the concatenated tokens of the split, as int64.
        The causal sequences are made of the same text.
        """
        return self._hidden.places()

    @property
    def same_in_every_epoch(self) -> bool:
        """True if the text of no sequence, masked or causal, depends on the epoch."""
        return self._hidden.same_in_every_epoch and self._causal.same_in_every_epoch

    def texts(self, seed: int, epoch: int, index: int) -> tuple[Segment, ...]:
        """Return the text of sequence `index`. The sequence is masked if `index` is below `len(self)`, and causal
        otherwise.
        """
        if index >= len(self):
            return self._causal.texts(seed, epoch, index - len(self))
        return self._hidden.texts(seed, epoch, index)

    def example(self, seed: int, epoch: int, index: int, mask_rate: float | None = None) -> LabelledExample:
        """Return the example of sequence `index` in `epoch`. The sequence is masked if `index` is below `len(self)`,
        and causal otherwise.
        """
        if index >= len(self):
            return self._causal.example(seed, epoch, index - len(self))
        return self._hidden.example(seed, epoch, index, mask_rate)

    def counted(self, batch: dict[str, Tensor]) -> tuple[int, ...]:
        """Return the number of labels in masked sequences and the number of labels in causal sequences. If
        `counted_together` is true, return only their sum.
        """
        if self._counted_together:
            return super().counted(batch)
        labelled = (batch["labels"] != UNLABELLED).sum(dim=1)
        second = int(labelled[batch["causal"]].sum())
        return int(labelled.sum()) - second, second
