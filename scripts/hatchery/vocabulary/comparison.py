"""A plain definition of the selection of text: the words of a text, and the rule that accepts a text
(docs/papers/reduced-vocabulary.md, "Comparison of words", column of the corpora, and "Selection of text").

Both readings lower-case the text for the comparison and reject any text in which `http` occurs (a hyperlink). A numeral
is counted as a word but never looked up. Words are defined as follows:

- Separators. as_published: all but letters, digits and underscore. corrected: all but letters, digits and apostrophes
  within words; ’ and ʼ count as apostrophes.
- Single letters. as_published: neither looked up nor counted. corrected: words like any other.
- Numerals. as_published: a run of digits at the start of a word, with any characters after it (`4th` is a numeral and
  the word `th`, `2nd` is rejected for `nd`). corrected: digits with separators (1,000 3.14 10:30 1/2) and their endings
  (4th, 2nd, 1990s) are one numeral. Digits elsewhere belong to the word (mp3) in both.
- Contractions. as_published: stem and ending are separate words (`don't` is `don` and a dropped `t`; `didn't` is
  rejected for `didn`). corrected: one word, known when the list has it without its apostrophe, or when its stem is
  known and its ending is one of n't, 't, 's, 'd, 'm, 're, 've, 'll; two endings at most (shouldn't've).
- Hyphens separate in both, underscores only in corrected.

The fast path relies on two properties: a text is within the vocabulary exactly when each of its `pieces` is, and two or
more ASCII letters are one word that is known when the vocabulary holds it. So the fast path needs one split and C-level
operations on two sets, and each piece is checked once.

Sentences: lower-case the document, split it with Punkt, check every sentence. Spans: lower-case the document, split it
at single blanks, check the windows of `window_words` words that begin every `stride_words` words, tails included;
overlapping windows are all candidates. A candidate is rejected, for the first of these reasons that holds: it has a
hyperlink, a word outside the vocabulary, or too few counted words. With `lower_case` off the document keeps its case,
Punkt sees it, and only the comparison is lower-cased. The functions `plain_sentences` and `plain_spans` define the
outcome and serve as the baseline of the benchmark; the fast filters have the same outcome.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Protocol

from hatchery.settings.base import ReadingName

HYPERLINK = "http"
"""A text that contains this string, in any case, is rejected."""


class Comparison(Protocol):
    """One reading: the words of a text, and the words that a vocabulary contains."""

    separators: str
    """The ASCII characters that divide a text into pieces."""

    def words(self, text: str) -> tuple[list[str], int]:
        """Return the words of a lower-cased text that are looked up, in order, and the number of its numerals."""
        ...

    def pieces(self, text: str) -> list[str]:
        """Return parts of a lower-cased text, without separators, that contain all its words."""
        ...

    def in_vocabulary(self, vocabulary: Set[str], word: str) -> bool:
        """Return whether a word counts as in the vocabulary."""
        ...


def _ascii_but(kept: str) -> str:
    return "".join(chr(code) for code in range(128) if not re.match(f"[{kept}]", chr(code)))


class AsPublished:
    """The authors' tokens: runs of two or more word characters after digits are replaced by a marker."""

    separators = _ascii_but("A-Za-z0-9_")
    _numerals = re.compile(r"\b\d+")
    _words = re.compile(r"\w\w+")
    _pieces = re.compile(r"\w+")

    def words(self, text: str) -> tuple[list[str], int]:
        """Return as Comparison. In the authors' tokens, the marker of a numeral is the known word `number`."""
        text, numerals = self._numerals.subn(" ", text)
        return self._words.findall(text), numerals

    def pieces(self, text: str) -> list[str]:
        """Return as Comparison."""
        return self._pieces.findall(text)

    def in_vocabulary(self, vocabulary: Set[str], word: str) -> bool:
        """Return as Comparison."""
        return word in vocabulary


class Corrected:
    """Words in the sense of a reader of English."""

    separators = _ascii_but("A-Za-z0-9'")
    _apostrophes = re.compile("[’ʼ]")
    _word = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
    _numeral_or_word = re.compile(
        r"(\d+(?:[.,:/]\d+)*(?:st|nd|rd|th|'?s)?(?![^\W_]|'[^\W_]))|([^\W_]+(?:'[^\W_]+)*)",
    )
    _digit = re.compile(r"\d")
    _pieces = re.compile(r"(?:[^\W_]|')+")
    _endings = ("n't", "'t", "'s", "'d", "'m", "'re", "'ve", "'ll")
    _most_endings = 2

    def words(self, text: str) -> tuple[list[str], int]:
        """Return as Comparison."""
        typed = self._typed(text)
        if not self._digit.search(typed):
            return self._word.findall(typed), 0
        groups = self._numeral_or_word.findall(typed)
        words = [word for _, word in groups if word]
        return words, len(groups) - len(words)

    def pieces(self, text: str) -> list[str]:
        """Return as Comparison."""
        return self._pieces.findall(self._typed(text))

    def in_vocabulary(self, vocabulary: Set[str], word: str) -> bool:
        """Return as Comparison."""
        return self._in_vocabulary(vocabulary, word, self._most_endings)

    def _in_vocabulary(self, vocabulary: Set[str], word: str, endings: int) -> bool:
        if word in vocabulary or ("'" in word and word.replace("'", "") in vocabulary):
            return True
        return endings > 0 and any(
            word.endswith(ending) and self._in_vocabulary(vocabulary, word.removesuffix(ending), endings - 1)
            for ending in self._endings
        )

    def _typed(self, text: str) -> str:
        return text if text.isascii() else self._apostrophes.sub("'", text)


COMPARISONS: dict[ReadingName, Comparison] = {"as_published": AsPublished(), "corrected": Corrected()}


# Enough for the frequent pieces of any corpus, but below a hundred megabytes.
_REMEMBERED = 400_000
_REMEMBERED_CHARACTERS = 40


class KnownWords:
    """Tests whether texts contain only words that `comparison` finds in `vocabulary`."""

    def __init__(self, vocabulary: Set[str], comparison: Comparison) -> None:
        self._vocabulary = frozenset(vocabulary)
        self._comparison = comparison
        self._known = {word for word in vocabulary if _is_plain(word)}
        self._unknown: set[str] = set()
        blanks = {ord(separator): " " for separator in comparison.separators}
        self._table = bytes(ord(blanks.get(code, chr(code).lower())) for code in range(128)) + b" " * 128

    def folded(self, text: str) -> str:
        """Return a text of the same length with lower-case pieces separated by blanks.

        Only the ASCII parts of `text` keep their pieces; other characters become blanks.
        """
        return text.encode("ascii", "replace").translate(self._table).decode("ascii")

    def contains(self, text: str) -> bool:
        """Return whether every word of `text`, in any case, is known."""
        if text.isascii():
            return self.contains_all(self.folded(text).split())
        return self.contains_all(self._comparison.pieces(text.lower()))

    def contains_all(self, pieces: Sequence[str]) -> bool:
        """Return whether every word of these pieces is known."""
        if not self._unknown.isdisjoint(pieces):
            return False
        known = self._known
        return known.issuperset(pieces) or all(piece in known or self._decide(piece) for piece in pieces)

    def _decide(self, piece: str) -> bool:
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
    """Return whether a piece is one word in every comparison."""
    return len(piece) > 1 and piece.isascii() and piece.isalpha()


LINK = "hyperlink"
UNKNOWN = "out_of_vocabulary"
SHORT = "too_short"
REASONS = (LINK, UNKNOWN, SHORT)


@dataclass(frozen=True)
class Rule:
    """The rule that accepts a text."""

    vocabulary: Set[str]
    comparison: Comparison
    minimum_counted_words: int
    lower_case: bool


@dataclass(slots=True)
class Outcome:
    """The candidates of one document: accepted texts with their counted words, and numbers of rejected texts
    by reason.
    """

    accepted: list[tuple[str, int]] = field(default_factory=list)
    rejected: dict[str, int] = field(default_factory=lambda: dict.fromkeys(REASONS, 0))
    examples: dict[str, str] = field(default_factory=dict)
    """The first rejected candidate of each reason, if examples were requested."""


def verdict(text: str, rule: Rule) -> tuple[str | None, int]:
    """Return why a candidate is rejected (None if it is accepted), and the number of its counted words."""
    text = text.lower()
    words, numerals = rule.comparison.words(text)
    counted = len(words) + numerals
    if HYPERLINK in text:
        return LINK, counted
    for word in words:
        if not rule.comparison.in_vocabulary(rule.vocabulary, word):
            return UNKNOWN, counted
    return (SHORT if counted < rule.minimum_counted_words else None), counted


def counted_words(text: str, comparison: Comparison) -> int:
    """Return the number of words and numerals of a text."""
    words, numerals = comparison.words(text.lower())
    return len(words) + numerals


def windows(text: str, window_words: int, stride_words: int) -> Iterator[str]:
    """Yield the windows of a text: words separated by single blanks, so that line breaks are inside words."""
    words = text.split(" ")
    for start in range(0, len(words), stride_words):
        yield " ".join(words[start : start + window_words])


def plain_sentences(document: str, rule: Rule, split: Callable[[str], Iterable[str]]) -> Outcome:
    """Return the outcome of the sentences of a document that `split` finds (Punkt on the whole document)."""
    return _judged(split(document.lower() if rule.lower_case else document), rule)


def plain_spans(document: str, rule: Rule, window_words: int, stride_words: int) -> Outcome:
    """Return the outcome of the windows of a document."""
    return _judged(windows(document.lower() if rule.lower_case else document, window_words, stride_words), rule)


def _judged(candidates: Iterable[str], rule: Rule) -> Outcome:
    outcome = Outcome()
    for text in candidates:
        reason, counted = verdict(text, rule)
        if reason is None:
            outcome.accepted.append((text, counted))
        else:
            outcome.rejected[reason] += 1
            outcome.examples.setdefault(reason, text)
    return outcome
