"""Sequences whose every token is to be predicted from those before it, alone or beside sequences with hidden tokens.

Causal language models: docs/papers/natural-bias.md, "The bias": the end of a document is a target, its start and
padding never are. Sequences are those of the masked models, so that both kinds can be compared on the same text:
documents between [CLS] and [SEP], alone or packed. Nothing about them is random. Both kinds: "GPT or BERT: why not
both?" (Charpentier & Samuel, 2024); a hidden token is labelled at the position before it, where causal sequences
predict it too.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from torch import Tensor

from hatchery.objectives.padding import LabelledExample, PaddedExamples, Padding
from hatchery.objectives.segments import Segment
from hatchery.objectives.sequences import Framer
from hatchery.tokenization.special_tokens import UNLABELLED


class Pieces(Protocol):
    """What each sequence of a split is made of: one segment, or several in order."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Segment | list[Segment]: ...


class NextTokenExamples(PaddedExamples):
    """`[CLS] t1 .. tn [SEP]` of every piece, where [CLS] predicts t1 and tn the [SEP] of a document that ends there.

    Where a document is cut, its last token of the sequence has no label, since what follows is not [SEP]. With
    `keeps_apart`, the pieces of a sequence do not see each other.
    """

    def __init__(self, pieces: Pieces, framer: Framer, padding: Padding, keeps_apart: bool) -> None:
        super().__init__(padding)
        self._pieces, self._framer, self._keeps_apart = pieces, framer, keeps_apart

    def __len__(self) -> int:
        return len(self._pieces)

    def example(self, seed: int, epoch: int, index: int) -> LabelledExample:
        """Sequence `index`, the same in every epoch."""
        found = self._pieces[index]
        pieces = found if isinstance(found, list) else [found]
        framed = self._framer.frame_pieces(pieces)
        labels = np.append(framed.ids[1:], UNLABELLED)
        end = 0
        for piece in pieces:
            end += len(piece) + 2
            # Behind [SEP] another start would come.
            labels[end - 1] = UNLABELLED
            if piece.end < len(piece.document.ids):
                labels[end - 2] = UNLABELLED
        return LabelledExample(framed.ids, labels, framed.piece_lengths if self._keeps_apart else None, causal=True)


class TwoKinds(PaddedExamples):
    """The sequences of a split twice: numbers below `len` have hidden tokens, those from `len` on are causal."""

    def __init__(self, hidden: PaddedExamples, causal: PaddedExamples) -> None:
        super().__init__(hidden.padding)
        assert len(hidden) == len(causal), "both kinds are made of the same sequences"
        self._hidden, self._causal = hidden, causal

    def __len__(self) -> int:
        return len(self._hidden)

    def example(self, seed: int, epoch: int, index: int) -> LabelledExample:
        """Sequence `index`, of the second kind where there are no more of the first."""
        if index >= len(self):
            return self._causal.example(seed, epoch, index - len(self))
        found = self._hidden.example(seed, epoch, index)
        return found._replace(labels=np.append(found.labels[1:], UNLABELLED), causal=False)

    def batch(self, seed: int, epoch: int, indices: Sequence[int] | np.ndarray) -> dict[str, Tensor]:
        """As `Padding.batch`, with the causal sequences as the second term of the loss."""
        batch = super().batch(seed, epoch, indices)
        return {**batch, "second_term": batch["causal"]}

    def counted(self, batch: dict[str, Tensor]) -> tuple[int, ...]:
        """The labels of both kinds."""
        labelled = (batch["labels"] != UNLABELLED).sum(dim=1)
        second = int(labelled[batch["second_term"]].sum())
        return int(labelled.sum()) - second, second
