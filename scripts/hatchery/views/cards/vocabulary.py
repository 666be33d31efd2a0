"""Exact counts of running words, types and hapaxes of a corpus, in bounded memory.

A running word is a whitespace-separated piece of text, lower-cased, without punctuation, symbols and control characters
at both ends. A piece that consists only of these characters is not counted. The markers [UNK] and [TAB] are not counted
either. The words in Table 1 of the LTG-BERT paper are pre-tokens of LTG-BERT's pre-tokenizer (docs/papers/ltg-bert.md,
"Tokenizer"), so pre-tokens are counted, too.

Counting stops at the maximum number of types, and the number of words counted so far is reported: no number is sampled
or estimated.
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
# The published pattern omits the upper-case possessive 'S. SHE'S is therefore split into three pre-tokens (SHE, ', S),
# but she's into two (she, 's).
_ISOLATED = [r"\[UNK\]", r"\[unk\]", *_CONTRACTIONS, *(c.upper() for c in _CONTRACTIONS if c != "'s")]
_ISOLATED_PATTERN = rf"(?:{'|'.join(_ISOLATED)})(?!\w)"
_PRE_TOKEN = re.compile(
    rf"""{_ISOLATED_PATTERN} | \[TAB\] | \.+ | \#+ | \d | [^\w\s] | (?:(?!{_ISOLATED_PATTERN})[^\W\d])+""", re.VERBOSE
)


def running_word(piece: str) -> str:
    """Return the running word in a piece of text between white space: the piece in lower case, without punctuation,
    symbols and control characters at its ends. The result is empty if no word remains.
    """
    for marker in TEXT_MARKERS:
        piece = piece.replace(marker, "")
    start, end = 0, len(piece)
    while start < end and unicodedata.category(piece[start])[0] in _STRIPPED:
        start += 1
    while end > start and unicodedata.category(piece[end - 1])[0] in _STRIPPED:
        end -= 1
    return piece[start:end].lower()


def count_pre_tokens(piece: str) -> int:
    """Return the number of pre-tokens in a piece of text between white space.

    The tokenizer normalises the text (Unicode) before it splits the text into pre-tokens. This function does not
    normalise the text, so its result may differ from the number of the tokenizer's pre-tokens.
    """
    return 1 if piece.isalpha() else sum(1 for _ in _PRE_TOKEN.finditer(piece))


class PieceTable:
    """Two caches for pieces of text between white space. One contains the word of each piece (in lower case, without
    punctuation at its ends), the other the number of pre-tokens of each piece. Caches save time because most pieces
    occur repeatedly.

    `words` and `pre_tokens` first empty their cache if it holds more than `limit` pieces. This bounds the memory and
    does not change results.
    """

    def __init__(self, limit: int = 500_000) -> None:
        self.limit = limit
        self._words = _Words()
        self._pre_tokens = _PreTokens()

    def words(self, pieces: list[str]) -> list[str]:
        """Return the word of each piece, in lower case and without punctuation at its ends. Pieces without a word are
        left out.
        """
        if len(self._words) > self.limit:
            self._words.clear()
        return [word for word in map(self._words.__getitem__, pieces) if word]

    def pre_tokens(self, pieces: list[str]) -> int:
        """Return the total number of pre-tokens in `pieces`, which are texts without white space."""
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
    """Frequencies of the words of one source; words are in lower case, without punctuation at their ends. At
    `max_types` types, `add` sets `complete` to False and counts no more words.
    """

    max_types: int
    frequencies: Counter[str] = field(default_factory=Counter)
    complete: bool = True

    def add(self, words: Sequence[str]) -> None:
        """Count `words` (each occurrence counts), unless `max_types` was reached."""
        if self.complete:
            self.frequencies.update(words)
            self.complete = len(self.frequencies) < self.max_types


@dataclass(frozen=True)
class VocabularyFacts:
    """Number of words (each occurrence counts), number of types (different words), number of hapaxes, and the most
    frequent words. Words are in lower case, without punctuation at their ends.
    """

    running_words: int
    types: int
    hapaxes: int
    """Number of types that occur once."""
    top: list[tuple[str, int]]
    """(word, frequency) of the most frequent words; words with equal frequency are sorted by code points."""
    complete: bool


def facts_of(vocabularies: Sequence[Vocabulary], top: int) -> VocabularyFacts:
    """Return vocabulary statistics of one or several sources together, with the `top` most frequent words."""
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
