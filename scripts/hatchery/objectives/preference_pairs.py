"""Preference pairs as examples: each pair is two causal sequences, the prompt with the chosen text and the prompt with
the rejected text.

A document of a corpus of pairs (`corpora.readers.preference_pairs`) has two or three sentences: prompt (optional),
chosen text and rejected text. Only the tokens of the chosen or rejected text, including its end, have labels; the
prompt is read, but not predicted. The two sequences of a pair are adjacent rows of a batch, so joining batches keeps
pairs together.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from hatchery.errors import TrainingError
from hatchery.objectives.padded_examples import LabelledExample, PaddedExamples, Padding
from hatchery.objectives.segments import DocumentCollection, Segment, first_tokens
from hatchery.objectives.special_ids import SpecialIds
from hatchery.tokenization.special_tokens import UNLABELLED, SpecialTokens

if TYPE_CHECKING:
    from hatchery.tokenization.token_shards import Document, TokenShards

TEXTS_OF_A_PAIR = 2
WHOLE = 1_000_000
"""A sequence length that is so large that no pair is omitted because of its length."""


class PairTexts(PaddedExamples):
    """The texts of the pairs as sequences: sequence 2 i contains the chosen text of pair i, and sequence 2 i + 1 its
    rejected text.
    """

    def __init__(
        self, documents: DocumentCollection, special: SpecialTokens | SpecialIds, sequence_length: int, end_token: bool
    ) -> None:
        """A pair is omitted if one of its sequences is longer than `sequence_length`, or if its chosen or rejected text
        has no tokens.

        If `end_token` is true, a separator ends each chosen and rejected text. If the tokenizer has a paragraph token,
        this token also ends the two texts. Raises TrainingError for a document that is not a pair.
        """
        ids = SpecialIds.of(special)
        super().__init__(Padding(ids.pad, sequence_length), ids)
        name = special.paragraph if isinstance(special, SpecialTokens) else None
        self._paragraph = None if name is None or isinstance(special, SpecialIds) else special.ids[name]
        ends = [] if self._paragraph is None else [self._paragraph]
        self._ends = np.array([*ends, *([ids.sep] if end_token else [])], dtype=np.int64)
        self._documents = documents
        lengths = np.array([self._lengths(number) for number in range(documents.n_documents)], dtype=np.int64)
        lengths = lengths.reshape(-1, TEXTS_OF_A_PAIR + 1)
        needed = 1 + lengths[:, 0] + lengths[:, 1:].max(axis=1, initial=0) + len(self._ends)
        kept = (needed <= sequence_length) & (lengths[:, 1:] > 0).all(axis=1)
        self._numbers = np.flatnonzero(kept).astype(np.int32)

    def __len__(self) -> int:
        return TEXTS_OF_A_PAIR * len(self._numbers)

    def places(self) -> np.ndarray:
        """Return, for each sequence, the position of its pair's first token in the concatenated tokens of the split, as
        int64.
        """
        return np.repeat(first_tokens(self._documents)[self._numbers], TEXTS_OF_A_PAIR)

    @property
    def same_in_every_epoch(self) -> bool:
        """True, because the sequences have no random parts."""
        return True

    def texts(self, seed: int, epoch: int, index: int) -> tuple[Segment, ...]:
        """Return the prompt, if there is one, and the chosen or rejected text of sequence `index`."""
        number = self._numbers.item(index // TEXTS_OF_A_PAIR)
        document = self._documents.document(number)
        *prompt, chosen, rejected = (Segment(number, document, *bounds) for bounds in pairwise(self._bounds(document)))
        return (*prompt, rejected if index % TEXTS_OF_A_PAIR else chosen)

    def example(self, seed: int, epoch: int, index: int, mask_rate: float | None = None) -> LabelledExample:
        """Return the example of sequence `index`: [CLS], the prompt, the chosen or rejected text, and the end tokens of
        this text, if there are any. The text and its end tokens have labels.
        """
        texts = self.texts(seed, epoch, index)
        parts = [np.array([self.special.cls]), *(text.tokens for text in texts), self._ends]
        ids = np.concatenate(parts).astype(np.int64)
        labels = np.full(len(ids), UNLABELLED, dtype=np.int64)
        first = 1 + sum(map(len, texts[:-1]))
        labels[first - 1 : -1] = ids[first:]
        return LabelledExample(ids, labels, causal=True, texts=texts)

    def targets(self, index: int) -> np.ndarray:
        """Return the ids that sequence `index` predicts, without the separator at the end."""
        labels = self.example(0, 0, index).labels
        found = labels[labels != UNLABELLED]
        return found[:-1] if len(self._ends) and self._ends[-1] == self.special.sep else found

    def _bounds(self, document: "Document") -> list[int]:
        """Return the position of the first token of each text of a pair, followed by the end of the last text.

        A paragraph token at the end of the document belongs to neither text of the pair, because the encoding of
        documents adds this token only after the last text.
        """
        end = len(document.ids)
        if self._paragraph is not None and end and document.ids[-1] == self._paragraph:
            end -= 1
        return [*document.sentence_starts.tolist(), end]

    def _lengths(self, number: int) -> list[int]:
        """Return the number of tokens of the prompt (0 without prompt), of the chosen text and of the rejected text of
        document `number`. Raises TrainingError for a document that is not a pair.
        """
        bounds = self._bounds(self._documents.document(number))
        texts = len(bounds) - 1
        if texts not in (TEXTS_OF_A_PAIR, TEXTS_OF_A_PAIR + 1):
            raise TrainingError(
                f"document {number + 1} of the split has {texts} sentences, expected two or three: an optional prompt, "
                "a chosen text and a rejected text; task preference needs a corpus whose sources have the reader "
                "preference_pairs"
            )
        lengths = [end - start for start, end in pairwise(bounds)]
        return [0] * (TEXTS_OF_A_PAIR + 1 - texts) + lengths


class PreferencePairs:
    """The preference pairs of a split as examples. A batch has two rows for each pair: first its chosen text, then its
    rejected text.
    """

    def __init__(self, texts: PairTexts, of_split: int) -> None:
        """`of_split` is the number of all pairs of the split, including the pairs that `texts` omits."""
        self._texts, self.left_out = texts, of_split - len(texts) // TEXTS_OF_A_PAIR

    def __len__(self) -> int:
        return len(self._texts) // TEXTS_OF_A_PAIR

    @property
    def fillers(self) -> Mapping[str, int | bool]:
        """Padding value of each tensor of a batch, by name of the tensor."""
        return self._texts.fillers

    def places(self) -> np.ndarray:
        """Return the position of each pair's first token in the concatenated tokens of the split, as int64."""
        return self._texts.places()[::TEXTS_OF_A_PAIR]

    @property
    def same_in_every_epoch(self) -> bool:
        """True, because the pairs have no random parts."""
        return self._texts.same_in_every_epoch

    def texts(self, seed: int, epoch: int, index: int) -> tuple[Segment, ...]:
        """Return all texts that a model reads for a pair. A prompt occurs twice: before the chosen text and before the
        rejected text.
        """
        return tuple(text for row in _rows([index]) for text in self._texts.texts(seed, epoch, int(row)))

    def batch(
        self, seed: int, epoch: int, indices: Sequence[int] | np.ndarray, mask_rate: float | None = None
    ) -> dict[str, Tensor]:
        """Return a batch of B pairs: `input_ids`, `attention_mask` and `labels` [2 B, T], and `causal` [2 B]."""
        return self._texts.batch(seed, epoch, _rows(indices), mask_rate)

    def counted_batch(
        self, seed: int, epoch: int, indices: np.ndarray, mask_rate: float | None = None
    ) -> tuple[dict[str, Tensor], int]:
        """Return the same batch as the method `batch`, and the number of words that begin in the texts of the batch."""
        return self._texts.counted_batch(seed, epoch, _rows(indices), mask_rate)

    def words(self, seed: int, epoch: int, indices: Sequence[int] | np.ndarray) -> np.ndarray:
        """Return, for each pair, the number of words in all texts that a model reads for the pair, int64
        [len(indices)].
        """
        return self._texts.words(seed, epoch, _rows(indices)).reshape(-1, TEXTS_OF_A_PAIR).sum(axis=1)

    def counted(self, batch: Mapping[str, Tensor]) -> tuple[int, ...]:
        """Return the number by which each loss of the batch is divided: the number of labels in chosen texts, and the
        number of pairs.
        """
        chosen = batch["labels"][::TEXTS_OF_A_PAIR]
        return int((chosen != UNLABELLED).sum()), len(chosen)

    def n_tokens(self, batch: dict[str, Tensor]) -> int:
        """Return the number of tokens of a batch, without padding."""
        return self._texts.n_tokens(batch)


def _rows(indices: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return the indices of the two sequences of each pair, in the order of `indices`: int64 [2 * len(indices)]."""
    firsts = TEXTS_OF_A_PAIR * np.asarray(indices, dtype=np.int64)
    return (firsts[:, None] + np.arange(TEXTS_OF_A_PAIR)).ravel()


def pairs_of(shards: "TokenShards", sequence_length: int, end_token: bool, required: bool) -> PreferencePairs:
    """Return the preference pairs of a split. Raises TrainingError naming the shards' manifest for a document that is
    not a pair. If `required` is true, also raises TrainingError if no pair fits into `sequence_length`.
    """
    try:
        pairs = PreferencePairs(PairTexts(shards, shards.special, sequence_length, end_token), shards.n_documents)
    except TrainingError as error:
        raise TrainingError(f"{shards.manifest.path}: {error}") from None
    if required and not len(pairs):
        raise TrainingError(
            f"{shards.manifest.path}: none of the {shards.n_documents:,} pairs fits into sequence_length "
            f"{sequence_length}; expected at most this number of tokens for prompt, text and special tokens"
        )
    return pairs
