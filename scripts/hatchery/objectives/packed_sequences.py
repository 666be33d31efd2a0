"""Sequences without padding: pieces of documents, each framed, laid one behind the other until a sequence is full.

Our own alternative to the published pipelines, which leave out tokens (BabyLM) or show them many times (BNC): here
every token of the split is in exactly one sequence. The index holds two int32 numbers per piece and one per sequence.
"""

from collections.abc import Iterator

import numpy as np

from hatchery.objectives.segments import N_ADDED_TOKENS, DocumentCollection, Segment, room_for_tokens


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
