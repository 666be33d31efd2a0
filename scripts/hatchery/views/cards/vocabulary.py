"""The words of a corpus: running words, types and hapaxes, exactly, in bounded memory.

A running word is a white-space piece in lower case without punctuation, symbols and control characters at both ends.
Pieces of only such characters, and markers of missing text ([UNK], [TAB]), are no words. Pre-tokens follow the
pre-tokenizer of LTG-BERT (docs/papers/ltg-bert.md, "Tokenizer"), because the words of that paper's Table 1 are
pre-tokens. A vocabulary that reaches its maximum number of types stops there and reports the number of measured words:
no number is sampled or estimated.
"""

import heapq
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from hatchery.tokenization.special_tokens import TEXT_MARKERS

_STRIPPED = frozenset("PSCZ")
_CONTRACTIONS = ("n't", "'ll", "'re", "'ve", "'m", "'s", "'d")
# The published pattern does not match the upper-case possessive, so SHE'S is three pre-tokens and she's is two.
_ISOLATED = [r"\[UNK\]", r"\[unk\]", *_CONTRACTIONS, *(c.upper() for c in _CONTRACTIONS if c != "'s")]
_ISOLATED_PATTERN = rf"(?:{'|'.join(_ISOLATED)})(?!\w)"
_PRE_TOKEN = re.compile(
    rf"""{_ISOLATED_PATTERN} | \[TAB\] | \.+ | \#+ | \d | [^\w\s] | (?:(?!{_ISOLATED_PATTERN})[^\W\d])+""", re.VERBOSE
)


def running_word(piece: str) -> str:
    """Return the word in a white-space piece, or the empty string if there is none."""
    for marker in TEXT_MARKERS:
        piece = piece.replace(marker, "")
    start, end = 0, len(piece)
    while start < end and unicodedata.category(piece[start])[0] in _STRIPPED:
        start += 1
    while end > start and unicodedata.category(piece[end - 1])[0] in _STRIPPED:
        end -= 1
    return piece[start:end].lower()


def count_pre_tokens(piece: str) -> int:
    """Return the number of pre-tokens in a white-space piece.

    Unicode normalisation, which may add some, is left out.
    """
    return 1 if piece.isalpha() else sum(1 for _ in _PRE_TOKEN.finditer(piece))


class PieceTable:
    """Words and pre-token counts of pieces, each computed once, because pieces repeat.

    The tables are emptied when they hold `limit` pieces, which bounds memory and does not change results.
    """

    def __init__(self, limit: int = 500_000) -> None:
        self.limit = limit
        self._words = _Words()
        self._pre_tokens = _PreTokens()

    def words(self, pieces: list[str]) -> list[str]:
        """Return the running words among the pieces, in order."""
        if len(self._words) > self.limit:
            self._words.clear()
        return [word for word in map(self._words.__getitem__, pieces) if word]

    def pre_tokens(self, pieces: list[str]) -> int:
        """Return the number of pre-tokens in all pieces together."""
        if len(self._pre_tokens) > self.limit:
            self._pre_tokens.clear()
        return sum(map(self._pre_tokens.__getitem__, pieces))


class _Words(dict[str, str]):
    def __missing__(self, piece: str) -> str:
        word = self[piece] = running_word(piece)
        return word


class _PreTokens(dict[str, int]):
    def __missing__(self, piece: str) -> int:
        count = self[piece] = count_pre_tokens(piece)
        return count


@dataclass
class Vocabulary:
    """The words of one source in reading order; `complete` becomes false when `max_types` is reached."""

    max_types: int
    frequencies: Counter[str] = field(default_factory=Counter)
    complete: bool = True

    def add(self, words: Sequence[str]) -> None:
        """Add running words."""
        if self.complete:
            self.frequencies.update(words)
            self.complete = len(self.frequencies) < self.max_types


@dataclass(frozen=True)
class VocabularyFacts:
    """A vocabulary in numbers."""

    running_words: int
    types: int
    hapaxes: int
    """Types that occur once."""
    top: list[tuple[str, int]]
    """Most frequent words; equally frequent ones are in the order of their code points."""
    complete: bool


def facts_of(vocabularies: Sequence[Vocabulary], top: int) -> VocabularyFacts:
    """Return the facts of one source, or of several together."""
    merged = Counter[str]()
    for vocabulary in vocabularies:
        merged.update(vocabulary.frequencies)
    return VocabularyFacts(
        running_words=sum(merged.values()),
        types=len(merged),
        hapaxes=sum(1 for count in merged.values() if count == 1),
        top=heapq.nsmallest(top, merged.items(), key=lambda item: (-item[1], item[0])),
        complete=all(vocabulary.complete for vocabulary in vocabularies),
    )
