"""Cutting documents into segments of at most one sequence, each of which is a training example.

Source: the caching script of the BabyLM models (ELC-BERT section 3.1; `cache_dataset.py`). Segments are ranges within a
document and never cross from one document to the next; nothing is copied until a segment is read.
"""

from collections.abc import Iterator
from typing import Protocol, Self

import numpy as np

from hatchery.errors import TrainingError

# [CLS] and [SEP] around a segment.
N_ADDED_TOKENS = 2
# Documents are worked on in groups of about so many sentences, which bounds the memory of the build.
_SENTENCES_PER_GROUP = 500_000


class DocumentTokens(Protocol):
    """An encoded document: token ids and the offsets at which its sentences start."""

    @property
    def ids(self) -> np.ndarray:
        """Token ids [tokens], any unsigned integer type."""

    @property
    def sentence_starts(self) -> np.ndarray:
        """Offsets into `ids` [sentences], ascending, the first is 0."""


class DocumentCollection(Protocol):
    """Documents by number; `hatchery.tokenization.token_reader.TokenShards` is one."""

    n_documents: int

    def document(self, index: int) -> DocumentTokens:
        """Document `index`, from 0."""


class SegmentIndex:
    """The segments of a split, in the order of its documents; made by `SegmentIndex.build`.

    `documents`, `starts` and `lengths` (int32, [segments]) say which tokens of which document a segment holds.
    """

    def __init__(
        self,
        ids: list[np.ndarray],
        documents: np.ndarray,
        starts: np.ndarray,
        lengths: np.ndarray,
        sequence_length: int,
    ) -> None:
        # Views of the mapped shards: asking the shards for a document again for each of its segments would unpack the
        # word starts of the whole document, and a whole corpus can be one document (AO-CHILDES).
        self._ids = ids
        self.documents, self.starts, self.lengths = documents, starts, lengths
        self.sequence_length = sequence_length

    @classmethod
    def build(cls, shards: DocumentCollection, sequence_length: int, packed: bool = False) -> Self:
        """Cut all documents of `shards` into segments of at most `sequence_length` - 2 tokens.

        As published (`packed` False), a segment starts at a sentence and takes whole sentences until one does not fit;
        the overflowing sentence is cut at the end of this segment and begins the next one in full. What follows the
        limit within one sentence is never seen, and a document that opens with a sentence beyond the limit yields its
        first segment twice. `packed` True cuts every document into consecutive pieces instead: each token once.
        Raises TrainingError when `sequence_length` is below 4.
        """
        if sequence_length < N_ADDED_TOKENS + 2:
            raise TrainingError(f"sequence_length: got {sequence_length}, expected {N_ADDED_TOKENS + 2} or more")
        limit = sequence_length - N_ADDED_TOKENS
        empty = np.zeros(0, dtype=np.int64)
        all_ids: list[np.ndarray] = []
        documents, starts, lengths = [empty], [empty], [empty]
        for first, ids, sentences in _groups(shards):
            sizes = np.array([len(document) for document in ids], dtype=np.int64)
            cut = _packed_segments(sizes, limit) if packed else _sentence_segments(sentences, sizes, limit)
            documents.append(cut[0] + first)
            starts.append(cut[1])
            lengths.append(np.minimum(limit, sizes[cut[0]] - cut[1]))
            all_ids += ids
        return cls(all_ids, _column(documents), _column(starts), _column(lengths), sequence_length)

    def __len__(self) -> int:
        return len(self.documents)

    def tokens(self, index: int) -> np.ndarray:
        """The token ids of segment `index`, a view of the stored document (1 to sequence_length - 2 of them)."""
        start = self.starts[index]
        return self._ids[self.documents[index]][start : start + self.lengths[index]]


def _column(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts).astype(np.int32)


def _groups(shards: DocumentCollection) -> Iterator[tuple[int, list[np.ndarray], list[np.ndarray]]]:
    """Runs of documents: number of the first one, token ids and sentence starts of each."""
    first, ids, sentences, n_sentences = 0, [], [], 0
    for index in range(shards.n_documents):
        document = shards.document(index)
        ids.append(document.ids)
        sentences.append(document.sentence_starts)
        n_sentences += len(document.sentence_starts)
        if n_sentences >= _SENTENCES_PER_GROUP or index + 1 == shards.n_documents:
            yield first, ids, sentences
            first, ids, sentences, n_sentences = index + 1, [], [], 0


def _packed_segments(lengths: np.ndarray, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """Document and start of consecutive pieces of `limit` tokens; `lengths` are the documents' numbers of tokens."""
    pieces = -(-lengths // limit)
    documents = np.repeat(np.arange(len(lengths)), pieces)
    first_piece = np.cumsum(pieces) - pieces
    return documents, (np.arange(len(documents)) - first_piece[documents]) * limit


def _sentence_segments(
    sentence_starts: list[np.ndarray], lengths: np.ndarray, limit: int
) -> tuple[np.ndarray, np.ndarray]:
    """Document and start of the published segments; all arguments concern one group of documents."""
    # Documents without tokens would have sentences that no segment can hold.
    counts = np.array([len(starts) if length else 0 for starts, length in zip(sentence_starts, lengths, strict=True)])
    if not counts.sum():
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    document_starts = np.cumsum(lengths) - lengths
    document = np.repeat(np.arange(len(lengths)), counts)
    local = np.concatenate([starts for starts, count in zip(sentence_starts, counts, strict=True) if count])
    starts = local.astype(np.int64) + document_starts[document]
    ends = np.append(starts[1:], lengths.sum())

    # The sentence that overflows a segment begun at each sentence, or the first sentence of the next document.
    last = np.cumsum(counts)
    overflow = np.minimum(np.searchsorted(ends, starts + limit, side="right"), last[document])
    following = np.maximum(overflow, np.arange(len(starts)) + 1).tolist()
    chosen: list[int] = []
    for first, end in zip((last - counts).tolist(), last.tolist(), strict=True):
        if first < end and overflow[first] == first:
            # The published script writes the buffer when it appends a sentence, begins a new one with that sentence,
            # and looks at its length only at the next sentence: here the new buffer is the old one.
            chosen.append(first)
        sentence = first
        while sentence < end:
            chosen.append(sentence)
            sentence = following[sentence]
    return document[chosen], local[chosen].astype(np.int64)
