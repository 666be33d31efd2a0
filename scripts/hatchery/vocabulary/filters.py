"""Fast selection from documents: sentences and spans within the vocabulary, and windows drawn at random.

The filters return the results of `plain_sentences` and `plain_spans`. A sentence is checked by one set operation. For
spans, most words are never checked: a window is checked from its end, and an unknown word rejects all windows that
contain it. The search continues with the first window after this word, as in the string search of Boyer and Moore.
Known words of earlier windows are not checked again. Only checked words are split into pieces.

Unconstrained windows (docs/papers/reduced-vocabulary.md, "Unconstrained windows") are drawn without replacement from
all windows of a text, with a seed. If a text has fewer windows than must be drawn, all its windows are used. A text is
a document (C4, Wikipedia), several documents joined by spaces (BookCorpus, whose documents are sentences), or a whole
corpus (CBT, Simple Wikipedia). The code of the reduced-vocabulary study uses the global random generators of NumPy and
Python. Here, each text's generator has a seed derived from the text's name. The drawn windows thus depend neither on
the order of processing nor on the number of processes.

A whole corpus is never in memory. Each window gets a random number, and the windows with the smallest numbers are kept,
first in each group of files, then over all files. No window extends over two files.

The study's function for Wikipedia inserts spaces between all characters of an article. The study's final data do not
seem to contain this error, and neither `as_published` nor `corrected` reproduces the error.
"""

import hashlib
import heapq
import random
import re
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from hatchery.corpora.punkt import SentenceSpans
from hatchery.vocabulary.comparison import HYPERLINK, LINK, SHORT, UNKNOWN, KnownWords, Outcome, Rule, counted_words
from hatchery.vocabulary.items import MARK_BYTES


class SentenceFilter:
    """Selects those sentences of documents which a rule accepts."""

    def __init__(self, rule: Rule, sentences: SentenceSpans) -> None:
        self._rule = rule
        self._sentences = sentences
        self._known = KnownWords(rule.vocabulary, rule.comparison)

    def select(self, document: str, examples: bool = False) -> Outcome:
        """Return the result of the selection for a document. If `examples` is true, the result contains one rejected
        sentence for each reason of rejection.
        """
        outcome = Outcome()
        text = document.lower() if self._rule.lower_case else document
        known = self._known
        folded = known.folded(text)
        linked = HYPERLINK in folded
        unknown = 0
        for start, end in self._sentences.spans(text):
            sentence = text[start:end]
            if linked and HYPERLINK in sentence.lower():
                reason = LINK
            elif not (
                known.contains_all(folded[start:end].split()) if sentence.isascii() else known.contains(sentence)
            ):
                # Most rejected sentences contain unknown words. A local variable counts these sentences faster than a
                # dictionary.
                unknown += 1
                if examples:
                    outcome.examples.setdefault(UNKNOWN, sentence)
                continue
            else:
                counted = counted_words(sentence, self._rule.comparison)
                if counted >= self._rule.minimum_counted_words:
                    outcome.accepted.append((sentence, counted))
                    continue
                reason = SHORT
            outcome.rejected[reason] += 1
            if examples:
                outcome.examples.setdefault(reason, sentence)
        outcome.rejected[UNKNOWN] = unknown
        return outcome


# Number of words that are checked together. A larger number costs less per word, but checks more words unnecessarily.
_WORDS_PER_LOOK = 10


class Words:
    """The words of a text, separated by single spaces. The text is not split; only the positions of the spaces are
    stored.

    `number` is the number of words.
    """

    def __init__(self, text: str) -> None:
        # The encoded text has one byte per character, so positions in the encoded text equal positions in the text.
        characters = np.frombuffer(text.encode("ascii", "replace"), np.uint8)
        blanks = (characters == ord(" ")).nonzero()[0]
        # `blank(i)` returns the position of one space as a Python integer. Converting all positions would take longer
        # than the search.
        self.blank = blanks.item
        self._blanks = blanks
        self.number = len(blanks) + 1
        self._text = text

    def between(self, first: int, end: int) -> str:
        """Return the text from word `first` up to word `end` - 1; `end` is at most `number`."""
        start = self.blank(first - 1) + 1 if first else 0
        return self._text[start : self.blank(end - 1) if end < self.number else len(self._text)]

    def at(self, position: int) -> int:
        """Return the index of the word that contains the character at position `position`."""
        return int(np.searchsorted(self._blanks, position))


class SpanFilter:
    """Selects those windows of documents (spans) which a rule accepts."""

    def __init__(self, rule: Rule, window_words: int, stride_words: int) -> None:
        self._rule = rule
        self._window = window_words
        self._stride = stride_words
        self._known = KnownWords(rule.vocabulary, rule.comparison)

    def select(self, document: str, examples: bool = False) -> Outcome:
        """Return the result of the selection for a document. If `examples` is true, the result contains one rejected
        window for each reason of rejection.
        """
        outcome = Outcome()
        words = Words(document)
        folded = self._known.folded(document)
        linked = self._linked(folded, words) if HYPERLINK in folded else frozenset()
        if linked:
            outcome.rejected[LINK] = len(linked)
            if examples:
                outcome.examples[LINK] = self._text(words, min(linked))
        stride, number = self._stride, words.number
        unknown = 0
        begin = 0
        # All words with indices from `begin` up to `proved` - 1 are known.
        proved = 0
        while begin < number:
            if linked and begin // stride in linked:
                begin += stride
                continue
            end = min(begin + self._window, number)
            unknown_word = self._unknown_word(document, folded, words, max(begin, proved), end)
            proved = end
            if unknown_word < 0:
                self._take(self._text(words, begin // stride), outcome, examples)
                begin += stride
                continue
            following = unknown_word - unknown_word % stride + stride
            if examples and not unknown:
                outcome.examples[UNKNOWN] = self._text(words, begin // stride)
            unknown += (following - begin) // stride
            if linked:
                unknown -= sum(begin <= link * stride < following for link in linked)
            begin = following
        outcome.rejected[UNKNOWN] = unknown
        return outcome

    def _unknown_word(self, document: str, folded: str, words: Words, low: int, end: int) -> int:
        """Check the words `low` to `end` - 1 in groups of consecutive words, from the last group to the first. Stop at
        a group with an unknown word, and return the index of the group's first word. Return -1 if all words are known.

        A group has at most _WORDS_PER_LOOK words, which are between the starts of two consecutive windows (spans).
        """
        stride, blank, contains_all = self._stride, words.blank, self._known.contains_all
        ascii_only = document.isascii()
        stop = blank(end - 1) if end < words.number else len(document)
        while end > low:
            first = max(low, end - _WORDS_PER_LOOK, (end - 1) // stride * stride)
            before = blank(first - 1) if first else -1
            if ascii_only or document[before + 1 : stop].isascii():
                contained = contains_all(folded[before + 1 : stop].split())
            else:
                contained = self._known.contains(document[before + 1 : stop])
            if not contained:
                return first
            end, stop = first, before
        return -1

    def _take(self, text: str, outcome: Outcome, examples: bool) -> None:
        counted = counted_words(text, self._rule.comparison)
        if counted >= self._rule.minimum_counted_words:
            outcome.accepted.append((text, counted))
            return
        outcome.rejected[SHORT] += 1
        if examples:
            outcome.examples.setdefault(SHORT, text)

    def _text(self, words: Words, index: int) -> str:
        start = index * self._stride
        text = words.between(start, min(start + self._window, words.number))
        return text.lower() if self._rule.lower_case else text

    def _linked(self, folded: str, words: Words) -> frozenset[int]:
        """Return the indices of those windows (spans) of a document that contain a hyperlink. `folded` is the result of
        `KnownWords.folded` for the document.
        """
        linked: set[int] = set()
        for match in re.finditer(HYPERLINK, folded):
            word = words.at(match.start())
            first = max(0, (word - self._window) // self._stride + 1)
            linked.update(range(first, word // self._stride + 1))
        return frozenset(linked)


class Window(NamedTuple):
    """A window of consecutive words, drawn at random from a text."""

    document: str
    """Name of the document that contains the first word of the window."""
    text_number: int
    """Index, among the texts of the file, of the text from which the window was drawn."""
    windows: int
    """Number of all windows of the text from which the window was drawn."""
    text: str
    """Words of the window, separated by spaces."""


class Marked(NamedTuple):
    """A window of consecutive words, for the case that the whole corpus is one text.

    `mark` is the random number that determines whether the window is selected. `place` is the position of the window:
    (index of the file, index of the window's first word among the words of the file).
    """

    mark: bytes
    place: tuple[int, int]
    document: str
    text: str


Documents = Iterable[tuple[str, str]]


def drawn_windows(
    documents: Documents,
    documents_per_text: int,
    windows_per_text: int,
    window_words: int,
    stride_words: int,
    seed: str,
) -> Iterator[Window]:
    """Join each `documents_per_text` consecutive documents of one file, and draw up to `windows_per_text` windows from
    each joined text. Yield the windows in the order in which they occur in the file.

    Each of `documents` is a pair of name and text. `seed` contains the seed of the settings and the names
    of source and file.
    """
    waiting = iter(documents)
    number = 0
    while block := list(islice(waiting, documents_per_text)):
        starts = np.cumsum([0, *(text.count(" ") + 1 for _, text in block)])
        words = Words(" ".join(text for _, text in block))
        total = -(-words.number // stride_words)
        chosen = random.Random(f"{seed}/{number}").sample(range(total), min(windows_per_text, total))
        for index in sorted(chosen):
            start = index * stride_words
            name = block[int(np.searchsorted(starts, start, side="right")) - 1][0]
            yield Window(name, number, total, words.between(start, min(start + window_words, words.number)))
        number += 1


def marked_windows(
    documents: Documents, window_words: int, stride_words: int, seed: str, file_number: int
) -> Iterator[Marked]:
    """Yield all windows of one file, each with a random number. If the whole corpus is one text, the windows with the
    smallest random numbers are selected.

    The file is read document by document.
    """
    generator = np.random.default_rng(int.from_bytes(hashlib.sha256(seed.encode("utf-8", "replace")).digest()))
    words: list[str] = []
    # `before` is the number of words that were already removed from memory. `begins` contains, for each document in
    # memory, the index of the document's first word, and the document's name.
    before = 0
    begins: deque[tuple[int, str]] = deque()

    def window(start: int) -> Marked:
        while len(begins) > 1 and begins[1][0] <= before + start:
            begins.popleft()
        text = " ".join(words[start : start + window_words])
        return Marked(generator.bytes(MARK_BYTES), (file_number, before + start), begins[0][1], text)

    start = 0
    for name, text in documents:
        begins.append((before + len(words), name))
        words.extend(text.split(" "))
        while start + window_words <= len(words):
            yield window(start)
            start += stride_words
        done = min(start, len(words))
        del words[:done]
        before += done
        start -= done
    while start < len(words):
        yield window(start)
        start += stride_words


def smallest_marks(windows: Iterable[Marked], number: int) -> list[Marked]:
    """Return the `number` windows with the smallest random numbers, in the order of the corpus.

    No other windows are stored in memory.
    """
    return sorted(heapq.nsmallest(number, windows), key=lambda window: window.place)
