"""What the selection of text means, written the plain way (docs/papers/reduced-vocabulary.md, "Selection of text").

Sentences: lower-case the document, split it with Punkt, look at every sentence. Spans: lower-case the document, split
it at single blanks, look at the windows of `window_words` words that begin every `stride_words` words, tails included;
overlapping windows are all candidates. A candidate is rejected, for the first of these reasons that holds: it has a
hyperlink, a word outside the vocabulary, or too few counted words. With `lower_case` off the document keeps its case,
Punkt sees it, and only the comparison is lower-cased.

The functions here define the outcome and serve as the baseline of the benchmark; the fast filters promise the same.
"""

from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass, field

from hatchery.vocabulary.comparison import HYPERLINK, Comparison

LINK = "hyperlink"
UNKNOWN = "out_of_vocabulary"
SHORT = "too_short"
REASONS = (LINK, UNKNOWN, SHORT)


@dataclass(frozen=True)
class Rule:
    """When a text is accepted."""

    vocabulary: Set[str]
    comparison: Comparison
    minimum_counted_words: int
    lower_case: bool


@dataclass(slots=True)
class Outcome:
    """The candidates of one document: accepted texts with their counted words, and how many were rejected and why."""

    accepted: list[tuple[str, int]] = field(default_factory=list)
    rejected: dict[str, int] = field(default_factory=lambda: dict.fromkeys(REASONS, 0))
    examples: dict[str, str] = field(default_factory=dict)
    """The first rejected candidate of each reason, where examples were asked for."""


def verdict(text: str, rule: Rule) -> tuple[str | None, int]:
    """Why a candidate is rejected (None: it is accepted), and the number of its counted words."""
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
    """Number of words and numerals of a text."""
    words, numerals = comparison.words(text.lower())
    return len(words) + numerals


def windows(text: str, window_words: int, stride_words: int) -> Iterator[str]:
    """The windows of a text: words divided by single blanks, so that line breaks stay inside words."""
    words = text.split(" ")
    for start in range(0, len(words), stride_words):
        yield " ".join(words[start : start + window_words])


def plain_sentences(document: str, rule: Rule, split: Callable[[str], Iterable[str]]) -> Outcome:
    """The outcome of the sentences of a document that `split` finds (Punkt on the whole document)."""
    return _judged(split(document.lower() if rule.lower_case else document), rule)


def plain_spans(document: str, rule: Rule, window_words: int, stride_words: int) -> Outcome:
    """The outcome of the windows of a document."""
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
