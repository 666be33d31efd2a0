"""Definition of the selection of text: the division of a text into words, and the rule that accepts a text
(docs/papers/reduced-vocabulary.md, "Comparison of words" and "Selection of text").

There are two versions, `as_published` (the code of the reduced-vocabulary study) and `corrected`. Both lower-case the
text, reject a text that contains `http` (a hyperlink), and count numerals as words without looking them up in the
vocabulary. They differ as follows:

- Separators of words. `as_published`: all characters except letters, digits and underscores. `corrected`: all
  characters except letters, digits, and apostrophes within words; ’ and ʼ are also apostrophes. Hyphens are separators
  in both versions.
- Single letters. `as_published`: single letters are neither looked up nor counted. `corrected`: single letters are
  looked up and counted like other words.
- Numerals. `as_published`: the digits at the beginning of a word are a numeral, even if other characters follow (`4th`
  is a numeral and the word `th`; `2nd` is rejected because of `nd`). `corrected`: digits with separators (1,000 3.14
  10:30 1/2) and endings (4th, 2nd, 1990s) are one numeral. In both versions, digits after a letter belong to the word
  (mp3).
- Contractions. `as_published`: stem and ending are separate words (`don't` is `don` and an ignored `t`; `didn't` is
  rejected because of `didn`). `corrected`: a contraction is one word. A contraction is known if the vocabulary contains
  it without apostrophe, or if its stem is known and its ending is one of n't, 't, 's, 'd, 'm, 're, 've, 'll. Two
  endings are allowed (shouldn't've).

Selection of sentences: the document is lower-cased and split by Punkt, and each sentence is a candidate.

Selection of spans: the document is lower-cased and split at single spaces. A window of `window_words` words begins
every `stride_words` words, and each window is a candidate. Windows may overlap, and the last windows may be shorter.

A candidate is rejected if it contains a hyperlink, a word outside of the vocabulary, or too few counted words; the
first of these reasons is recorded. If `lower_case` is false, the original document is split, and only the comparison
with the vocabulary uses lower case.

The functions `plain_sentences` and `plain_spans` define the results and are the baseline of the benchmark. The fast
filters return equal results. They divide a text at separators into pieces, and check sets of pieces instead of words.
This is correct for two reasons. First, all words of a text are known if and only if all words of each piece are known.
Second, a piece of two or more ASCII letters is one word.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Protocol

from hatchery.settings.base import ReadingName

HYPERLINK = "http"
"""A text that contains this string, in upper or lower case, is rejected."""


class Comparison(Protocol):
    """Interface of the two ways (`as_published` and `corrected`) of comparing a text with a vocabulary: the division of
    the text into words, and the lookup of a word in the vocabulary.
    """

    separators: str
    """ASCII characters that separate the pieces of a text."""

    def words(self, text: str) -> tuple[list[str], int]:
        """Return two values for a lower-cased text: the words that must be looked up, in text order, and the number of
        numerals.
        """
        ...

    def pieces(self, text: str) -> list[str]:
        """Divide a lower-cased text at separators (such as spaces), and return the pieces. No word extends over two
        pieces.
        """
        ...

    def in_vocabulary(self, vocabulary: Set[str], word: str) -> bool:
        """Return True if the vocabulary contains `word` or, in the version `corrected`, another form of `word`."""
        ...


def _ascii_but(kept: str) -> str:
    return "".join(chr(code) for code in range(128) if not re.match(f"[{kept}]", chr(code)))


class AsPublished:
    """The comparison of a text with a vocabulary as in the code of the reduced-vocabulary study: numerals are removed;
    each sequence of two or more remaining word characters is a word.
    """

    separators = _ascii_but("A-Za-z0-9_")
    _numerals = re.compile(r"\b\d+")
    _words = re.compile(r"\w\w+")
    _pieces = re.compile(r"\w+")

    def words(self, text: str) -> tuple[list[str], int]:
        """See `Comparison.words`. Numerals are removed. The code of the reduced-vocabulary study instead replaces a
        numeral by `number`, a word of the study's vocabulary.
        """
        text, numerals = self._numerals.subn(" ", text)
        return self._words.findall(text), numerals

    def pieces(self, text: str) -> list[str]:
        """See `Comparison.pieces`."""
        return self._pieces.findall(text)

    def in_vocabulary(self, vocabulary: Set[str], word: str) -> bool:
        """See `Comparison.in_vocabulary`. Only `word` itself is looked up."""
        return word in vocabulary


class Corrected:
    """The corrected comparison of a text with a vocabulary: a numeral is one word, and a contraction is one word."""

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
        """See `Comparison.words`."""
        typed = self._typed(text)
        if not self._digit.search(typed):
            return self._word.findall(typed), 0
        groups = self._numeral_or_word.findall(typed)
        words = [word for _, word in groups if word]
        return words, len(groups) - len(words)

    def pieces(self, text: str) -> list[str]:
        """See `Comparison.pieces`."""
        return self._pieces.findall(self._typed(text))

    def in_vocabulary(self, vocabulary: Set[str], word: str) -> bool:
        """See `Comparison.in_vocabulary`. A contraction is also looked up without its apostrophe, and by its stem."""
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


# Maximum number of pieces in each of the two caches (known and unknown pieces). This number suffices for the frequent
# pieces of a corpus. Two full caches take about 80 MB if pieces have 8 ASCII characters, and about 220 MB at most.
_REMEMBERED = 400_000
_REMEMBERED_CHARACTERS = 40


class KnownWords:
    """Tests whether all words of a text are known: contained in `vocabulary` by the rules of `comparison`."""

    def __init__(self, vocabulary: Set[str], comparison: Comparison) -> None:
        self._vocabulary = frozenset(vocabulary)
        self._comparison = comparison
        self._known = {word for word in vocabulary if _is_plain(word)}
        self._unknown: set[str] = set()
        blanks = {ord(separator): " " for separator in comparison.separators}
        self._table = bytes(ord(blanks.get(code, chr(code).lower())) for code in range(128)) + b" " * 128

    def folded(self, text: str) -> str:
        """Return the text in lower case, with separators and non-ASCII characters replaced by spaces. The result is as
        long as `text`, so a position in the result is the same position in `text`.
        """
        return text.encode("ascii", "replace").translate(self._table).decode("ascii")

    def contains(self, text: str) -> bool:
        """Return True if all words of `text` are known. `text` need not be in lower case."""
        if text.isascii():
            return self.contains_all(self.folded(text).split())
        return self.contains_all(self._comparison.pieces(text.lower()))

    def contains_all(self, pieces: Sequence[str]) -> bool:
        """Return True if all words in `pieces` are known. Pieces are parts of a lower-cased text, divided by
        separators.
        """
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
    """Return True if a piece of text consists of two or more ASCII letters. Such a piece is one word in both versions
    of the comparison (`as_published` and `corrected`).
    """
    return len(piece) > 1 and piece.isascii() and piece.isalpha()


LINK = "hyperlink"
UNKNOWN = "out_of_vocabulary"
SHORT = "too_short"
REASONS = (LINK, UNKNOWN, SHORT)


@dataclass(frozen=True)
class Rule:
    """The rule that accepts or rejects a text."""

    vocabulary: Set[str]
    comparison: Comparison
    minimum_counted_words: int
    lower_case: bool


@dataclass(slots=True)
class Outcome:
    """The result of a selection for one document.

    `accepted` contains each accepted text with its number of counted words (see `counted_words`), and `rejected`
    contains the number of rejected candidates (sentences or windows) by reason.
    """

    accepted: list[tuple[str, int]] = field(default_factory=list)
    rejected: dict[str, int] = field(default_factory=lambda: dict.fromkeys(REASONS, 0))
    examples: dict[str, str] = field(default_factory=dict)
    """First rejected candidate by reason of the rejection; empty if a filter was called without `examples`."""


def verdict(text: str, rule: Rule) -> tuple[str | None, int]:
    """Return two values for a candidate (a sentence or window): the reason for its rejection (None if it is accepted),
    and the number of its counted words (see `counted_words`).
    """
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
    """Return the number of words of a text that count towards `minimum_counted_words`: numerals, and words that must be
    looked up in the vocabulary.
    """
    words, numerals = comparison.words(text.lower())
    return len(words) + numerals


def windows(text: str, window_words: int, stride_words: int) -> Iterator[str]:
    """Yield the windows of a text. A window of `window_words` words begins every `stride_words` words; the last windows
    may be shorter. Words are separated by exactly one space, so two consecutive spaces enclose an empty word.
    """
    words = text.split(" ")
    for start in range(0, len(words), stride_words):
        yield " ".join(words[start : start + window_words])


def plain_sentences(document: str, rule: Rule, split: Callable[[str], Iterable[str]]) -> Outcome:
    """Return the result of the selection of sentences; the function `split` (Punkt) divides the document into
    sentences.
    """
    return _judged(split(document.lower() if rule.lower_case else document), rule)


def plain_spans(document: str, rule: Rule, window_words: int, stride_words: int) -> Outcome:
    """Return the result of the selection of spans from a document."""
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
