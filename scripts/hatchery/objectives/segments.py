"""Segments, runs of tokens within one document, and the ways of cutting documents into them or packing them.

A segment never crosses from one document to the next, and nothing is copied until its tokens are framed. Sources: the
caching script of the BabyLM models (docs/papers/elc-bert.md, "Segments"); the data set of LTG-BERT's code
(docs/papers/ltg-bert.md, "Segments") for the overlapping windows of the BNC models; the reduced-vocabulary study
(docs/papers/reduced-vocabulary.md, "Grouping"), whose corpora are grouped into documents of about one sequence. Packed
sequences are our own alternative to pipelines that leave out tokens (BabyLM) or show them many times (BNC): every token
of the split is in exactly one of them. Indexes are small: three int32 numbers per segment, or one number per document,
and nothing per sentence.
"""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np

from hatchery.errors import TrainingError
from hatchery.objectives.special_ids import SpecialIds

if TYPE_CHECKING:
    from hatchery.tokenization.token_shards import Document

# [CLS] and [SEP] around a segment.
N_ADDED_TOKENS = 2


class DocumentCollection(Protocol):
    """Documents by number."""

    n_documents: int

    def document(self, index: int) -> "Document":
        """Document `index`, from 0."""

    def document_lengths(self) -> np.ndarray:
        """Number of tokens of every document, int64 [n_documents]."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Tokens `start` to `end` - 1 of a document."""

    number: int
    """Number of the document."""
    document: "Document"
    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start

    def first(self, n_tokens: int) -> Self:
        """The first `n_tokens` tokens; the whole segment where it has no more."""
        return self if n_tokens >= len(self) else replace(self, end=self.start + n_tokens)

    def split_at(self, offset: int) -> tuple[Self, Self]:
        """The tokens before `offset` (counted in the document, like `start`), and those from there on."""
        return replace(self, end=offset), replace(self, start=offset)

    @property
    def tokens(self) -> np.ndarray:
        """The token ids [len(self)], a view of the stored document."""
        return self.document.ids[self.start : self.end]

    @property
    def word_starts(self) -> np.ndarray:
        """Bool [len(self)]; True at special tokens too."""
        return self._flags(self.document.word_bits)

    def text_words(self, special: SpecialIds) -> int:
        """The number of words that begin in the segment, by the rule of its corpus.

        Of words between white space, special tokens but the unknown one begin none.
        """
        counts = self.document.word_counts
        if counts is not None:
            return int(counts[self.start : self.end].sum(dtype=np.int64))
        bits, ids = self.document.text_word_bits, self.tokens
        starts = self._flags(self.document.word_bits if bits is None else bits)
        return int(np.count_nonzero(starts & ((ids >= special.n_special) | (ids == special.unknown))))

    def _flags(self, bits: np.ndarray) -> np.ndarray:
        # Only the bytes of the segment: a whole corpus can be one document (AO-CHILDES).
        first, end = self.document.first_bit + self.start, self.document.first_bit + self.end
        unpacked = np.unpackbits(bits[first // 8 : (end + 7) // 8], bitorder="little")
        return unpacked[first % 8 : first % 8 + len(self)].view(np.bool_)

    @property
    def inner_sentence_starts(self) -> np.ndarray:
        """Where sentences start within the document, int32: those inside of the segment, its own start left out."""
        starts = self.document.sentence_starts
        return starts[index_of(starts, self.start, "right") : index_of(starts, self.end, "left")]


class Segments(Protocol):
    """The segments of a split, by number."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Segment: ...

    def places(self) -> np.ndarray:
        """The token of the split that each segment begins with, int64 [len]."""


def first_tokens(documents: DocumentCollection) -> np.ndarray:
    """The number, from 0, of the first token of every document in the split: int64 [n_documents]."""
    lengths = documents.document_lengths()
    return np.cumsum(lengths) - lengths


def index_of(ascending: np.ndarray, value: int, side: str) -> int:
    """`np.searchsorted` for one number: "left" counts the entries below `value`, "right" also those equal to it."""
    # A plain integer would be taken as int64, and the whole array be copied to that type at every look-up.
    return int(ascending.searchsorted(ascending.dtype.type(value), side))  # type: ignore[call-overload]


def room_for_tokens(sequence_length: int) -> int:
    """How many tokens of one segment fit in a sequence. Raises TrainingError when `sequence_length` is below 4."""
    if sequence_length < N_ADDED_TOKENS + 2:
        raise TrainingError(f"sequence_length: got {sequence_length}, expected {N_ADDED_TOKENS + 2} or more")
    return sequence_length - N_ADDED_TOKENS


# Documents are worked on in groups of about so many sentences, which bounds the memory of the build.
_SENTENCES_PER_GROUP = 500_000


class BabylmSegments:
    """Segments in the order of the documents, each of at most `sequence_length` - 2 tokens.

    A segment starts at a sentence and takes whole sentences until one does not fit; the overflowing sentence is cut at
    the end of this segment and begins the next one in full. What follows the limit within one sentence is never seen,
    and a document that opens with a sentence beyond the limit yields its first segment twice, as published. Raises
    TrainingError when `sequence_length` is below 4.
    """

    def __init__(self, documents: DocumentCollection, sequence_length: int) -> None:
        limit = room_for_tokens(sequence_length)
        self._documents = documents
        empty = np.zeros(0, dtype=np.int32)
        numbers, starts, lengths = [empty], [empty], [empty]
        for first, sizes, sentences in _groups(documents):
            number, start = _cut(sentences, sizes, limit)
            numbers.append((number + first).astype(np.int32))
            starts.append(start.astype(np.int32))
            lengths.append(np.minimum(limit, sizes[number] - start).astype(np.int32))
        self._numbers, self._starts, self._lengths = map(np.concatenate, (numbers, starts, lengths))

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, index: int) -> Segment:
        number, start = self._numbers.item(index), self._starts.item(index)
        return Segment(number, self._documents.document(number), start, start + self._lengths.item(index))

    def places(self) -> np.ndarray:
        """The token of the split that each segment begins with, int64 [len]."""
        return first_tokens(self._documents)[self._numbers] + self._starts


def _groups(documents: DocumentCollection) -> Iterator[tuple[int, np.ndarray, list[np.ndarray]]]:
    """Runs of documents: number of the first one, number of tokens and sentence starts of each."""
    sizes = documents.document_lengths()
    first, sentences, n_sentences = 0, [], 0
    for index in range(documents.n_documents):
        sentences.append(documents.document(index).sentence_starts)
        n_sentences += len(sentences[-1])
        if n_sentences >= _SENTENCES_PER_GROUP or index + 1 == documents.n_documents:
            yield first, sizes[first : index + 1], sentences
            first, sentences, n_sentences = index + 1, [], 0


def _cut(sentence_starts: list[np.ndarray], lengths: np.ndarray, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """Document and start of the segments of one group of documents."""
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
    # The memoryview makes one Python integer per step of the walk, not one per sentence.
    following = np.maximum(overflow, np.arange(len(starts)) + 1).data
    chosen = array("q")
    for first, end in zip((last - counts).tolist(), last.tolist(), strict=True):
        if first < end and overflow[first] == first:
            # The published script writes the buffer when it appends a sentence, begins a new one with that sentence,
            # and looks at its length only at the next sentence: here the new buffer is the old one.
            chosen.append(first)
        sentence = first
        while sentence < end:
            chosen.append(sentence)
            sentence = following[sentence]
    rows = np.frombuffer(chosen, dtype=np.int64)
    return document[rows], local[rows]


class BncSegments:
    """Segment k starts at sentence k of the split; there are as many segments as sentences.

    Following sentences of the same document are appended while the segment is shorter than `sequence_length` - 3.
    Nothing is cut here: a segment may be far longer than a sequence, and the last sentences of a document are short
    segments. Raises TrainingError when `sequence_length` is below 4.
    """

    def __init__(self, documents: DocumentCollection, sequence_length: int) -> None:
        self._full_from = room_for_tokens(sequence_length) - 1
        self._documents = documents
        counts = (len(documents.document(index).sentence_starts) for index in range(documents.n_documents))
        self._sentences_until = np.cumsum(np.fromiter(counts, dtype=np.int64, count=documents.n_documents))

    def __len__(self) -> int:
        return int(self._sentences_until[-1]) if len(self._sentences_until) else 0

    def __getitem__(self, index: int) -> Segment:
        number = index_of(self._sentences_until, index, "right")
        document = self._documents.document(number)
        sentences = document.sentence_starts
        sentence = index - self._sentences_until.item(number) + len(sentences)
        start = sentences.item(sentence)
        # A segment ends where a sentence ends: at the first one that makes it long enough, or with the document.
        following = index_of(sentences, start + self._full_from, "left")
        end = sentences.item(following) if following < len(sentences) else len(document.ids)
        return Segment(number, document, start, end)

    def places(self) -> np.ndarray:
        """The token of the split that each segment begins with, int64 [len]."""
        firsts = first_tokens(self._documents)
        starts = [self._documents.document(number).sentence_starts + first for number, first in enumerate(firsts)]
        return np.concatenate([np.zeros(0, dtype=np.int64), *starts])


class DocumentSegments:
    """The first `sequence_length` - 2 tokens of every document that has any.

    Raises TrainingError when `sequence_length` is below 4.
    """

    def __init__(self, documents: DocumentCollection, sequence_length: int) -> None:
        self._limit = room_for_tokens(sequence_length)
        self._documents = documents
        self._numbers = np.flatnonzero(documents.document_lengths()).astype(np.int32)

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, index: int) -> Segment:
        number = self._numbers.item(index)
        document = self._documents.document(number)
        return Segment(number, document, 0, min(len(document.ids), self._limit))

    def places(self) -> np.ndarray:
        """The token of the split that each segment begins with, int64 [len]."""
        return first_tokens(self._documents)[self._numbers]


class PackedSequences:
    """The pieces of documents that share a sequence, by sequence.

    A document goes on in the next sequence where one is full, and the next document begins where the last one ended. A
    room of one or two positions cannot hold a framed token: it is left free (whoever frames the pieces fills it), so
    that every sequence but the very last one has at most two free positions. Raises TrainingError when
    `sequence_length` is below 4.
    """

    def __init__(self, documents: DocumentCollection, sequence_length: int) -> None:
        limit = room_for_tokens(sequence_length)
        self._documents = documents
        lengths = documents.document_lengths()
        with_tokens = np.flatnonzero(lengths)
        lengths = lengths[with_tokens]
        rooms = np.fromiter(_rooms(lengths, sequence_length), dtype=np.int32, count=len(lengths))
        firsts = np.minimum(lengths, rooms - N_ADDED_TOKENS)
        counts = 1 - (firsts - lengths) // limit
        document = np.repeat(np.arange(len(lengths), dtype=np.int32), counts)
        # The number of each piece within its document.
        first_pieces = np.cumsum(counts) - counts
        rank = np.arange(len(document)) - first_pieces[document]
        self._numbers = with_tokens.astype(np.int32)[document]
        self._starts = np.where(rank == 0, 0, firsts[document] + (rank - 1) * limit).astype(np.int32)
        joins = (rank == 0) & (rooms[document] < sequence_length)
        self._first_pieces = np.flatnonzero(~joins).astype(np.int32)

    def __len__(self) -> int:
        return len(self._first_pieces)

    def __getitem__(self, index: int) -> list[Segment]:
        """The pieces of sequence `index`, in order; with [CLS] and [SEP] around each they fill it."""
        following = index + 1
        end = self._first_pieces.item(following) if following < len(self) else len(self._numbers)
        return [self._piece(piece) for piece in range(self._first_pieces.item(index), end)]

    def places(self) -> np.ndarray:
        """The token of the split that each sequence begins with, int64 [len]."""
        firsts = self._first_pieces
        return first_tokens(self._documents)[self._numbers[firsts]] + self._starts[firsts]

    def _piece(self, piece: int) -> Segment:
        number, start = self._numbers.item(piece), self._starts.item(piece)
        document = self._documents.document(number)
        goes_on = piece + 1 < len(self._numbers) and self._numbers.item(piece + 1) == number
        return Segment(number, document, start, self._starts.item(piece + 1) if goes_on else len(document.ids))


def _rooms(lengths: np.ndarray, sequence_length: int) -> Iterator[int]:
    """How many positions are left in the sequence in which each document begins; `lengths` int64 are above 0."""
    limit = sequence_length - N_ADDED_TOKENS
    room = sequence_length
    # The memoryview makes one Python integer at a time.
    for length in np.ascontiguousarray(lengths).data:
        yield room
        rest = length + N_ADDED_TOKENS - room
        if rest <= 0:
            room = -rest
        else:
            tail = rest % limit
            room = limit - tail if tail else 0
        if room <= N_ADDED_TOKENS:
            room = sequence_length
