"""Sequences of blocks that do not attend to each other. A block is a start token and a piece, without end token. A
piece consists of consecutive tokens of one document.

Source: the published code of GPT-BERT (docs/papers/gpt-bert.md, "Packing" and "Masking"). Each sequence contains one
piece of the split and, until the sequence is full, other randomly drawn pieces (fillers). The label of a predicted
token is at the position before this token.

Unlike the published code, this module draws fillers and masked tokens from seed, epoch and index of the sequence, so
that a resumed run continues exactly. The published code counts how often each piece was shown and each token was
hidden. It draws fillers without replacement, and prefers pieces and tokens with low counts. It stores the counts only
in memory, so a restart loses the counts. Packing, replacement of masked tokens and causal sequences have the published
distribution. The missing counts have three effects. This module hides 1.6 to 2.0 % more tokens than the published code
(measured with sequences of 96 tokens). Spans of adjacent masked tokens are 4 to 7 % longer than in the published code
(at a masking rate of 0.3). In ten epochs, 1.5 % of the tokens are never hidden; with counts, this share is 0 %.
"""

from dataclasses import replace

import numpy as np

from hatchery.objectives.masking import MaskingRule
from hatchery.objectives.padded_examples import LabelledExample, PaddedExamples, Padding
from hatchery.objectives.segments import DocumentCollection, Segment, first_tokens, room_for_tokens
from hatchery.objectives.special_ids import SpecialIds
from hatchery.tokenization.special_tokens import UNLABELLED


class BlockPieces:
    """The pieces into which all documents are divided. Each piece has at most `sequence_length` - 2 consecutive tokens
    of a document; pieces of one token are omitted.

    Raises TrainingError if `sequence_length` is below 4.
    """

    def __init__(self, documents: DocumentCollection, sequence_length: int) -> None:
        limit = room_for_tokens(sequence_length)
        self._documents = documents
        lengths = documents.document_lengths()
        counts = lengths // limit + (lengths % limit > 1)
        self._numbers = np.repeat(np.arange(len(lengths), dtype=np.int32), counts)
        rank = np.arange(len(self._numbers)) - np.repeat(np.cumsum(counts) - counts, counts)
        self._starts = (rank * limit).astype(np.int32)
        self._ends = np.minimum(self._starts + limit, lengths[self._numbers]).astype(np.int32)

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, index: int) -> Segment:
        number = self._numbers.item(index)
        return Segment(number, self._documents.document(number), self._starts.item(index), self._ends.item(index))

    def places(self) -> np.ndarray:
        """Return the position of each piece's first token in the concatenated tokens of the split, as int64."""
        return first_tokens(self._documents)[self._numbers] + self._starts


def draw_blocks(
    pieces: BlockPieces, index: int, sequence_length: int, generator: np.random.Generator, fills: bool = True
) -> list[Segment]:
    """Return the content of sequence `index`. It begins with piece `index`. If `fills` is true, parts of randomly drawn
    pieces follow until at most one position is free.

    With a start token before the piece and before each part, the sequence has at most `sequence_length` + 1 tokens. If
    it has this maximum, its last token is only a label, and not part of the input.
    """
    blocks = [pieces[index]]
    free = sequence_length - 1 - len(blocks[0])
    while fills and free > 1:
        piece_draw, offset_draw = generator.random(2)
        drawn = pieces[int(piece_draw * len(pieces))]
        taken = min(free, len(drawn))
        start = drawn.start + int(offset_draw * (len(drawn) - taken + 1))
        blocks.append(replace(drawn, start=start, end=start + taken))
        free -= 1 + taken
    return blocks


# Index of the random stream of causal sequences, which differs from the stream of masked sequences.
_CAUSAL_STREAM = 1


class BlockExamples(PaddedExamples):
    """Examples of blocks `start t1 .. tn`. The label of a predicted token is at the position before this token.

    If there is a masking rule, it chooses the tokens of each block that are hidden and predicted. Without a masking
    rule, every token except the start tokens is predicted, with causal attention.
    """

    def __init__(
        self,
        documents: DocumentCollection,
        sequence_length: int,
        special: SpecialIds,
        masking: MaskingRule | None,
        fills: bool,
    ) -> None:
        """If `fills` is true, each sequence is filled up with randomly drawn pieces of documents. `fills` is False for
        held-out text, so that each piece is read only once.
        """
        super().__init__(Padding(special.pad, sequence_length), special)
        self._pieces, self._length = BlockPieces(documents, sequence_length), sequence_length
        self._masking, self._fills = masking, fills

    def __len__(self) -> int:
        return len(self._pieces)

    def places(self) -> np.ndarray:
        """Return the position of each sequence's first token in the concatenated tokens of the split, as int64."""
        return self._pieces.places()

    @property
    def same_in_every_epoch(self) -> bool:
        """True if sequences are not filled up with randomly drawn pieces of documents: these pieces differ between
        epochs.
        """
        return not self._fills

    def texts(self, seed: int, epoch: int, index: int) -> tuple[Segment, ...]:
        """Return the parts of documents that sequence `index` contains in `epoch`."""
        return tuple(self._drawn(seed, epoch, index)[0])

    def _drawn(self, seed: int, epoch: int, index: int) -> tuple[list[Segment], np.random.Generator]:
        stream = () if self._masking is not None else (_CAUSAL_STREAM,)
        generator = np.random.Generator(np.random.Philox(np.random.SeedSequence((seed, epoch, index, *stream))))
        return draw_blocks(self._pieces, index, self._length, generator, self._fills), generator

    def example(self, seed: int, epoch: int, index: int, mask_rate: float | None = None) -> LabelledExample:
        """Return the example of sequence `index` in `epoch`. Seed, epoch and index are 0 or more."""
        blocks, generator = self._drawn(seed, epoch, index)
        masking = self._masking
        if masking is not None and mask_rate is not None:
            masking = masking.at(mask_rate)
        hidden = [self._predicted(block, masking, generator) for block in blocks]
        shown, targets = (np.concatenate(parts) for parts in zip(*hidden, strict=True))
        lengths = [1 + len(block) for block in blocks]
        # If the sequence is one token longer than the input, its last token is only a label.
        lengths[-1] -= max(0, len(shown) - self._length)
        labels = np.append(targets[1:], UNLABELLED)
        return LabelledExample(
            shown[: self._length],
            labels[: self._length],
            lengths,
            causal=masking is None,
            texts=tuple(blocks),
        )

    def _predicted(
        self, block: Segment, masking: MaskingRule | None, generator: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the input ids (start token and visible or replaced tokens) and the labels of a block with n tokens of
        text: int64 [1 + n] each.

        The start token has no label.
        """
        shown = targets = block.tokens.astype(np.int64)
        if masking is not None:
            starts = block.word_starts if masking.needs_word_starts else None
            shown, targets = masking(shown, starts, generator)
        return np.insert(shown, 0, self.special.cls), np.insert(targets, 0, UNLABELLED)
