"""The fast test whether a text lies within a vocabulary: C-level set operations over its pieces, with a memory.

A piece (a part without separators) is decided once by the comparison and remembered, so a text costs one split and a
look at two sets, both of which stop at the first piece that settles the matter. ASCII texts are lower-cased and their
separators made blanks by one table, a whole document at a time.
"""

from collections.abc import Sequence, Set

from hatchery.vocabulary.comparison import Comparison

# Enough for the frequent pieces of any corpus, few enough to stay below a hundred megabytes.
_REMEMBERED = 400_000
_REMEMBERED_CHARACTERS = 40


class KnownWords:
    """Tells whether texts hold only words that `comparison` finds in `vocabulary`."""

    def __init__(self, vocabulary: Set[str], comparison: Comparison) -> None:
        self._vocabulary = frozenset(vocabulary)
        self._comparison = comparison
        self._known = {word for word in vocabulary if _is_plain(word)}
        self._unknown: set[str] = set()
        blanks = {ord(separator): " " for separator in comparison.separators}
        self._table = bytes(ord(blanks.get(code, chr(code).lower())) for code in range(128)) + b" " * 128

    def folded(self, text: str) -> str:
        """A text of the same length in which pieces are lower case and divided by blanks.

        It tells the pieces of those parts of `text` that are ASCII; other characters have become blanks.
        """
        return text.encode("ascii", "replace").translate(self._table).decode("ascii")

    def contains(self, text: str) -> bool:
        """Whether every word of `text`, in whatever case, is known."""
        if text.isascii():
            return self.contains_all(self.folded(text).split())
        return self.contains_all(self._comparison.pieces(text.lower()))

    def contains_all(self, pieces: Sequence[str]) -> bool:
        """Whether every word of these pieces is known."""
        if not self._unknown.isdisjoint(pieces):
            return False
        return self._known.issuperset(pieces) or self._decide(pieces)

    def _decide(self, pieces: Sequence[str]) -> bool:
        return all(piece in self._known or self._decide_piece(piece) for piece in pieces)

    def _decide_piece(self, piece: str) -> bool:
        if _is_plain(piece):
            known = piece in self._vocabulary
        else:
            words, _ = self._comparison.words(piece)
            known = all(self._comparison.in_vocabulary(self._vocabulary, word) for word in words)
        if len(piece) <= _REMEMBERED_CHARACTERS:
            memory = self._known if known else self._unknown
            if len(memory) >= _REMEMBERED:
                memory.clear()
            memory.add(piece)
        return known


def _is_plain(piece: str) -> bool:
    """Whether a piece is a word of its own, whatever the comparison."""
    return len(piece) > 1 and piece.isascii() and piece.isalpha()
