"""What a segment is: a run of tokens within one document, read from the shards when it is asked for.

The ways of cutting documents (`segmentation`) all give `Segment`; what becomes of them is decided
elsewhere. A segment never crosses from one document to the next, and nothing is copied until its tokens are framed.
"""

from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np

from hatchery.errors import TrainingError
from hatchery.objectives.special_ids import SpecialIds
from hatchery.tokenization.special_tokens import SpecialTokens

# [CLS] and [SEP] around a segment.
N_ADDED_TOKENS = 2


class DocumentTokens(Protocol):
    """An encoded document; `hatchery.tokenization.token_reader.Document` is one."""

    @property
    def ids(self) -> np.ndarray:
        """Token ids [tokens], any unsigned integer type."""

    @property
    def sentence_starts(self) -> np.ndarray:
        """Offsets into `ids` [sentences], int32, ascending, the first is 0."""

    @property
    def word_bits(self) -> np.ndarray:
        """Whether a word starts at a token (or the token is special), eight tokens to a byte, lowest bit first."""

    @property
    def first_bit(self) -> int:
        """The bit of `word_bits` that belongs to the first token."""


class DocumentCollection(Protocol):
    """Documents by number."""

    n_documents: int

    def document(self, index: int) -> DocumentTokens:
        """Document `index`, from 0."""

    def document_lengths(self) -> np.ndarray:
        """Number of tokens of every document, int64 [n_documents]."""


class EncodedSplit(DocumentCollection, Protocol):
    """All that examples need; `hatchery.tokenization.token_reader.TokenShards` is one."""

    vocabulary_size: int

    @property
    def special(self) -> SpecialTokens | SpecialIds:
        """The special tokens among the ids."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Tokens `start` to `end` - 1 of a document."""

    number: int
    """Number of the document."""
    document: DocumentTokens
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
        # Only the bytes of the segment: a whole corpus can be one document (AO-CHILDES).
        first, end = self.document.first_bit + self.start, self.document.first_bit + self.end
        bits = np.unpackbits(self.document.word_bits[first // 8 : (end + 7) // 8], bitorder="little")
        return bits[first % 8 : first % 8 + len(self)].view(np.bool_)

    @property
    def inner_sentence_starts(self) -> np.ndarray:
        """Where sentences start within the document, int32: those inside of the segment, its own start left out."""
        starts = self.document.sentence_starts
        return starts[index_of(starts, self.start, "right") : index_of(starts, self.end, "left")]


class Segments(Protocol):
    """The segments of a split, by number."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Segment: ...


def index_of(ascending: np.ndarray, value: int, side: str) -> int:
    """`np.searchsorted` for one number: "left" counts the entries below `value`, "right" also those equal to it."""
    # A plain integer would be taken as int64, and the whole array be copied to that type at every look-up.
    return int(ascending.searchsorted(ascending.dtype.type(value), side))  # type: ignore[call-overload]


def room_for_tokens(sequence_length: int) -> int:
    """How many tokens of one segment fit in a sequence. Raises TrainingError when `sequence_length` is below 4."""
    if sequence_length < N_ADDED_TOKENS + 2:
        raise TrainingError(f"sequence_length: got {sequence_length}, expected {N_ADDED_TOKENS + 2} or more")
    return sequence_length - N_ADDED_TOKENS
