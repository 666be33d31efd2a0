"""Segments (consecutive tokens of a document), and the methods that divide documents into segments or pack segments
into sequences.

A segment never contains tokens of two documents, and its tokens are not copied. Sources: for `BabylmSegments`, the
caching script of the BabyLM models (docs/papers/elc-bert.md, "Segments"); for `BncSegments`, the data set of LTG-BERT's
code (docs/papers/ltg-bert.md, "Segments"); for `DocumentSegments`, the reduced-vocabulary study, in which a document is
about as long as a sequence (docs/papers/reduced-vocabulary.md, "Grouping"). `PackedSequences` is Hatchery's own
alternative to methods that omit tokens (BabyLM) or repeat tokens (BNC): every token of the split is in exactly one
packed sequence. At most three int32 numbers per segment are stored in memory.
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

# Number of special tokens that are added to a segment: [CLS] and [SEP].
N_ADDED_TOKENS = 2


class DocumentCollection(Protocol):
    """Interface of a collection of encoded documents, which are requested by index."""

    n_documents: int

    def document(self, index: int) -> "Document":
        """Return the document with the index `index`, counted from 0."""

    def document_lengths(self) -> np.ndarray:
        """Return the number of tokens of every document, int64 [n_documents]."""


@dataclass(frozen=True, slots=True)
class Segment:
    """The tokens `start` to `end` - 1 of a document."""

    number: int
    """Index of the document."""
    document: "Document"
    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start

    def first(self, n_tokens: int) -> Self:
        """Return a segment of the first `n_tokens` tokens; if this segment has at most `n_tokens` tokens, return it
        unchanged.
        """
        return self if n_tokens >= len(self) else replace(self, end=self.start + n_tokens)

    def split_at(self, offset: int) -> tuple[Self, Self]:
        """Return two segments: the tokens before `offset`, and the tokens from `offset` on. `offset` is a position in
        the document.
        """
        return replace(self, end=offset), replace(self, start=offset)

    @property
    def tokens(self) -> np.ndarray:
        """Token ids of the segment [len(self)], a view of the document's ids."""
        return self.document.ids[self.start : self.end]

    @property
    def word_starts(self) -> np.ndarray:
        """Mask, bool [len(self)], that is True at tokens that start a word and at special tokens."""
        return self._flags(self.document.word_bits)

    def text_words(self, special: SpecialIds) -> int:
        """Return the number of words that begin in the segment, by the setting `word_count` of the corpus.

        With `word_count: white_space`, no word begins at a special token, except at the unknown token.
        """
        counts = self.document.word_counts
        if counts is not None:
            return int(counts[self.start : self.end].sum(dtype=np.int64))
        bits, ids = self.document.text_word_bits, self.tokens
        starts = self._flags(self.document.word_bits if bits is None else bits)
        return int(np.count_nonzero(starts & ((ids >= special.n_special) | (ids == special.unknown))))

    def _flags(self, bits: np.ndarray) -> np.ndarray:
        # Read only the bytes of this segment, because a whole corpus can be one document (AO-CHILDES).
        first, end = self.document.first_bit + self.start, self.document.first_bit + self.end
        unpacked = np.unpackbits(bits[first // 8 : (end + 7) // 8], bitorder="little")
        return unpacked[first % 8 : first % 8 + len(self)].view(np.bool_)

    @property
    def inner_sentence_starts(self) -> np.ndarray:
        """Positions, in the document, at which sentences start within the segment, except at the segment's first token:
        int32.
        """
        starts = self.document.sentence_starts
        return starts[index_of(starts, self.start, "right") : index_of(starts, self.end, "left")]


class Segments(Protocol):
    """Interface of the segments of a split, which are requested by index."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Segment: ...

    def places(self) -> np.ndarray:
        """Return the position of each segment's first token in the concatenated tokens of the split, as int64."""


def first_tokens(documents: DocumentCollection) -> np.ndarray:
    """Return, for each document, the position of its first token in the concatenated tokens of the split: int64
    [n_documents].
    """
    lengths = documents.document_lengths()
    return np.cumsum(lengths) - lengths


def index_of(ascending: np.ndarray, value: int, side: str) -> int:
    """Return the number of entries of `ascending` that are below `value` (side "left") or at most `value` (side
    "right").
    """
    # Convert the searched value to the array's dtype. Otherwise numpy would convert the whole array to int64 at each
    # call.
    return int(ascending.searchsorted(ascending.dtype.type(value), side))  # type: ignore[call-overload]


def room_for_tokens(sequence_length: int) -> int:
    """Return the maximum number of text tokens in a sequence that consists of [CLS], one segment and [SEP].

    Raises TrainingError if `sequence_length` is below 4.
    """
    if sequence_length < N_ADDED_TOKENS + 2:
        raise TrainingError(f"sequence_length: got {sequence_length}, expected {N_ADDED_TOKENS + 2} or more")
    return sequence_length - N_ADDED_TOKENS


# Documents are processed in groups with at least this number of sentences, which limits the memory.
_SENTENCES_PER_GROUP = 500_000


class BabylmSegments:
    """Segments of at most `sequence_length` - 2 tokens, in the order of the documents.

    A segment starts at the beginning of a sentence and contains complete sentences until a sentence does not fit. The
    sentence that does not fit is truncated at the end of the segment, and the next segment begins with the same
    sentence, which is now complete. As in the caching script of the BabyLM models (docs/papers/elc-bert.md,
    "Segments"), the tokens of a sentence after its first `sequence_length` - 2 tokens are never used. If the first
    sentence of a document is longer than `sequence_length` - 2 tokens, the first segment occurs twice. Raises
    TrainingError if `sequence_length` is below 4.
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
        """Return the position of each segment's first token in the concatenated tokens of the split, as int64."""
        return first_tokens(self._documents)[self._numbers] + self._starts


def _groups(documents: DocumentCollection) -> Iterator[tuple[int, np.ndarray, list[np.ndarray]]]:
    """Yield groups of documents. A group consists of the index of its first document, the number of tokens of each
    document, and the sentence starts of each document.
    """
    sizes = documents.document_lengths()
    first, sentences, n_sentences = 0, [], 0
    for index in range(documents.n_documents):
        sentences.append(documents.document(index).sentence_starts)
        n_sentences += len(sentences[-1])
        if n_sentences >= _SENTENCES_PER_GROUP or index + 1 == documents.n_documents:
            yield first, sizes[first : index + 1], sentences
            first, sentences, n_sentences = index + 1, [], 0


def _cut(sentence_starts: list[np.ndarray], lengths: np.ndarray, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each segment of a group of documents, the index of its document in the group, and the position of its
    first token in the document. A segment has at most `limit` tokens.
    """
    # Omit documents without tokens, because their sentences belong to no segment.
    counts = np.array([len(starts) if length else 0 for starts, length in zip(sentence_starts, lengths, strict=True)])
    if not counts.sum():
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    document_starts = np.cumsum(lengths) - lengths
    document = np.repeat(np.arange(len(lengths)), counts)
    local = np.concatenate([starts for starts, count in zip(sentence_starts, counts, strict=True) if count])
    starts = local.astype(np.int64) + document_starts[document]
    ends = np.append(starts[1:], lengths.sum())

    # For each sentence, assume that a segment begins at this sentence. `overflow` is the index of the first sentence
    # that does not fit into this segment or is in the next document.
    last = np.cumsum(counts)
    overflow = np.minimum(np.searchsorted(ends, starts + limit, side="right"), last[document])
    # Index a memoryview: this creates Python integers only for the first sentences of segments, but `tolist` would
    # create an integer for every sentence.
    following = np.maximum(overflow, np.arange(len(starts)) + 1).data
    chosen = array("q")
    for first, end in zip((last - counts).tolist(), last.tolist(), strict=True):
        if first < end and overflow[first] == first:
            # As in the caching script of the BabyLM models, a document's first sentence that is too long gives two
            # equal segments.
            chosen.append(first)
        sentence = first
        while sentence < end:
            chosen.append(sentence)
            sentence = following[sentence]
    rows = np.frombuffer(chosen, dtype=np.int64)
    return document[rows], local[rows]


class BncSegments:
    """Overlapping segments: segment k starts at sentence k of the split.

    The following sentences of the same document are appended while the segment is shorter than `sequence_length` - 3
    tokens. Segments are not truncated, so a segment may be much longer than a sequence. The last segments of a document
    are short. Raises TrainingError if `sequence_length` is below 4.
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
        # End the segment with the first sentence with which it is long enough, or with the document's last sentence.
        following = index_of(sentences, start + self._full_from, "left")
        end = sentences.item(following) if following < len(sentences) else len(document.ids)
        return Segment(number, document, start, end)

    def places(self) -> np.ndarray:
        """Return the position of each segment's first token in the concatenated tokens of the split, as int64."""
        firsts = first_tokens(self._documents)
        starts = [self._documents.document(number).sentence_starts + first for number, first in enumerate(firsts)]
        return np.concatenate([np.zeros(0, dtype=np.int64), *starts])


class DocumentSegments:
    """One segment per document: the first `sequence_length` - 2 tokens of the document. Documents without tokens are
    omitted.

    Raises TrainingError if `sequence_length` is below 4.
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
        """Return the position of each segment's first token in the concatenated tokens of the split, as int64."""
        return first_tokens(self._documents)[self._numbers]


class PackedSequences:
    """Packed sequences: each sequence contains consecutive pieces of documents, and every token is in exactly one
    sequence.

    If a sequence is full, its document continues in the next sequence. Every sequence except the last has at most two
    free positions, because a piece needs three positions: [CLS], a token and [SEP]. `FramedPacks` fills the free
    positions with [SEP]. Raises TrainingError if `sequence_length` is below 4.
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
        # `rank` is the index of each piece among the pieces of its document.
        first_pieces = np.cumsum(counts) - counts
        rank = np.arange(len(document)) - first_pieces[document]
        self._numbers = with_tokens.astype(np.int32)[document]
        self._starts = np.where(rank == 0, 0, firsts[document] + (rank - 1) * limit).astype(np.int32)
        joins = (rank == 0) & (rooms[document] < sequence_length)
        self._first_pieces = np.flatnonzero(~joins).astype(np.int32)

    def __len__(self) -> int:
        return len(self._first_pieces)

    def __getitem__(self, index: int) -> list[Segment]:
        """Return the pieces of documents that sequence `index` contains, in order. [CLS] and [SEP] are added to each
        piece later.
        """
        following = index + 1
        end = self._first_pieces.item(following) if following < len(self) else len(self._numbers)
        return [self._piece(piece) for piece in range(self._first_pieces.item(index), end)]

    def places(self) -> np.ndarray:
        """Return the position of each sequence's first token in the concatenated tokens of the split, as int64."""
        firsts = self._first_pieces
        return first_tokens(self._documents)[self._numbers[firsts]] + self._starts[firsts]

    def _piece(self, piece: int) -> Segment:
        number, start = self._numbers.item(piece), self._starts.item(piece)
        document = self._documents.document(number)
        goes_on = piece + 1 < len(self._numbers) and self._numbers.item(piece + 1) == number
        return Segment(number, document, start, self._starts.item(piece + 1) if goes_on else len(document.ids))


def _rooms(lengths: np.ndarray, sequence_length: int) -> Iterator[int]:
    """Yield, for each document, the number of free positions in the sequence in which the document begins. The document
    itself is not counted, because documents are added in order. All `lengths` must be above 0.
    """
    limit = sequence_length - N_ADDED_TOKENS
    room = sequence_length
    # Iterate over a memoryview to save memory, because a memoryview creates Python integers one at a time.
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
