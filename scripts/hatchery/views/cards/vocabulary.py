"""How a vocabulary grows with the text: types against running words, exactly, in bounded memory.

A running word is a white-space piece in lower case without the punctuation, symbols and control characters at its two
ends; what is nothing but those, and the markers that stand for text nobody has ([UNK], [TAB]), is no word. Pre-tokens
follow the pre-tokenizer of LTG-BERT (docs/papers/ltg-bert.md, "Tokenizer"), because the words of that paper's Table 1
are pre-tokens.

Types are counted at log-spaced numbers of running words (ten per factor of ten) in the order of the corpus. A
vocabulary that reaches its number of types stops there and says on how many words it was measured: nothing is sampled
or estimated. For all sources together the curve is the mean over all orders of the words, which has a closed form,
since the order of the sources would make steps.
"""

import heapq
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hatchery.tokenization.special_tokens import TEXT_MARKERS

_STRIPPED = frozenset("PSCZ")
_CONTRACTIONS = ("n't", "'ll", "'re", "'ve", "'m", "'s", "'d")
# The published pattern misses the upper-case possessive, so SHE'S is three pre-tokens and she's is two.
_ISOLATED = [r"\[UNK\]", r"\[unk\]", *_CONTRACTIONS, *(c.upper() for c in _CONTRACTIONS if c != "'s")]
_ISOLATED_PATTERN = rf"(?:{'|'.join(_ISOLATED)})(?!\w)"
_PRE_TOKEN = re.compile(
    rf"""{_ISOLATED_PATTERN} | \[TAB\] | \.+ | \#+ | \d | [^\w\s] | (?:(?!{_ISOLATED_PATTERN})[^\W\d])+""", re.VERBOSE
)


def running_word(piece: str) -> str:
    """The word in a white-space piece, or the empty string when there is none in it."""
    for marker in TEXT_MARKERS:
        piece = piece.replace(marker, "")
    start, end = 0, len(piece)
    while start < end and unicodedata.category(piece[start])[0] in _STRIPPED:
        start += 1
    while end > start and unicodedata.category(piece[end - 1])[0] in _STRIPPED:
        end -= 1
    return piece[start:end].lower()


def count_pre_tokens(piece: str) -> int:
    """Number of pre-tokens in a white-space piece; Unicode normalisation, which may add some, is left out."""
    return 1 if piece.isalpha() else sum(1 for _ in _PRE_TOKEN.finditer(piece))


class PieceTable:
    """Words and pre-token counts of pieces, each computed once: text repeats itself.

    The tables are emptied when they hold `limit` pieces, which bounds memory and changes no result.
    """

    def __init__(self, limit: int = 500_000) -> None:
        self.limit = limit
        self._words = _Words()
        self._pre_tokens = _PreTokens()

    def words(self, pieces: list[str]) -> list[str]:
        """The running words among the pieces, in order."""
        if len(self._words) > self.limit:
            self._words.clear()
        return [word for word in map(self._words.__getitem__, pieces) if word]

    def pre_tokens(self, pieces: list[str]) -> int:
        """Number of pre-tokens in all pieces together."""
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


POINTS_PER_DECADE = 10
# Differences of log-gamma values lose digits in a large corpus; the many rare words are multiplied out instead.
DIRECT_FREQUENCY = 50


def growth_point(index: int) -> int:
    """The number of running words of measuring point `index`: 1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20 and so on."""
    # The first exponents round to 1 more than once.
    first = (0, 3, 5, 6, 7, 8, 9)
    exponent = first[index] if index < len(first) else index - len(first) + POINTS_PER_DECADE
    return round(10 ** (exponent / POINTS_PER_DECADE))


@dataclass
class Vocabulary:
    """The words of one source as they are read; `complete` turns false when `max_types` was reached."""

    max_types: int
    frequencies: Counter[str] = field(default_factory=Counter)
    running_words: int = 0
    points: list[tuple[int, int]] = field(default_factory=list)
    complete: bool = True

    def add(self, words: Sequence[str]) -> None:
        """Add running words in their order."""
        if not self.complete:
            return
        start = 0
        while (point := growth_point(len(self.points))) <= self.running_words + len(words) - start:
            end = start + point - self.running_words
            self._count(words[start:end])
            self.points.append((self.running_words, len(self.frequencies)))
            start = end
        self._count(words[start:] if start else words)
        self.complete = len(self.frequencies) < self.max_types

    def _count(self, words: Sequence[str]) -> None:
        self.frequencies.update(words)
        self.running_words += len(words)


@dataclass(frozen=True)
class VocabularyFacts:
    """A vocabulary in numbers; `points` are (running words, types), the last one at the end of what was measured."""

    running_words: int
    types: int
    hapaxes: int
    """Types that occur once."""
    points: list[tuple[int, float]]
    top: list[tuple[str, int]]
    """Most frequent words, equally frequent ones in the order of their code points."""
    complete: bool

    def types_at(self, words: int) -> float | None:
        """Types in the first `words` running words, None where that is no measuring point."""
        return dict(self.points).get(words)

    def growth_exponent(self) -> float | None:
        """Slope of log types over log words, fitted to the points of the last factor of ten (Heaps' exponent).

        None for fewer than 100 words.
        """
        if self.running_words < 100:
            return None
        last = [(math.log(x), math.log(y)) for x, y in self.points if 10 * x >= self.running_words]
        mean_x, mean_y = (math.fsum(column) / len(last) for column in zip(*last, strict=True))
        spread = math.fsum((x - mean_x) ** 2 for x, _ in last)
        return math.fsum((x - mean_x) * (y - mean_y) for x, y in last) / spread


def facts_of(vocabulary: Vocabulary, top: int) -> VocabularyFacts:
    """The facts of one source, types counted in the order of the corpus."""
    points = [(x, float(y)) for x, y in vocabulary.points]
    end = (vocabulary.running_words, float(len(vocabulary.frequencies)))
    if vocabulary.running_words and points[-1] != end:
        points.append(end)
    return _facts(vocabulary.frequencies, points, top, vocabulary.complete)


def facts_of_all(vocabularies: Iterable[Vocabulary], top: int) -> VocabularyFacts:
    """The facts of all sources together, with the expected curve; empties the vocabularies to save memory."""
    merged: Counter[str] = Counter()
    complete = True
    for vocabulary in vocabularies:
        complete = complete and vocabulary.complete
        if merged:
            merged.update(vocabulary.frequencies)
        else:
            merged, vocabulary.frequencies = vocabulary.frequencies, Counter()
        vocabulary.frequencies.clear()
    return _facts(merged, expected_growth(merged), top, complete)


def expected_growth(frequencies: Counter[str]) -> list[tuple[int, float]]:
    """Expected types among n words drawn without replacement, at the measuring points and at the end.

    A word of frequency f among N is missed with probability C(N - f, n) / C(N, n) (Baayen, Word Frequency
    Distributions, 2001, chapter 2); rounded to one decimal.
    """
    total = sum(frequencies.values())
    if not total:
        return []
    spectrum = sorted(Counter(frequencies.values()).items())
    points: list[tuple[int, float]] = []
    while (n := growth_point(len(points))) < total:
        missed = math.fsum(types * _missed(frequency, n, total) for frequency, types in spectrum)
        points.append((n, round(len(frequencies) - missed, 1)))
    return [*points, (total, float(len(frequencies)))]


def _missed(frequency: int, drawn: int, total: int) -> float:
    """Probability that a word of this frequency is not among `drawn` of `total` words drawn without replacement."""
    if drawn > total - frequency:
        return 0.0
    if frequency <= DIRECT_FREQUENCY:
        return math.prod(1 - drawn / (total - index) for index in range(frequency))
    left = total - frequency
    return math.exp(
        math.lgamma(left + 1) - math.lgamma(left - drawn + 1) - math.lgamma(total + 1) + math.lgamma(total - drawn + 1)
    )


def _facts(frequencies: Counter[str], points: list[tuple[int, float]], top: int, complete: bool) -> VocabularyFacts:
    return VocabularyFacts(
        running_words=sum(frequencies.values()),
        types=len(frequencies),
        hapaxes=sum(1 for count in frequencies.values() if count == 1),
        points=points,
        top=heapq.nsmallest(top, frequencies.items(), key=lambda item: (-item[1], item[0])),
        complete=complete,
    )
