"""Unconstrained windows: a seeded draw without replacement from the windows of texts
(docs/papers/reduced-vocabulary.md, "Unconstrained windows").

A text is a document (C4, Wikipedia), a block of so many documents joined by blanks (BookCorpus, whose documents are
sentences), or a whole corpus read as one (CBT, Simple Wikipedia). The authors draw with NumPy's and Python's global
generators; here every text has its own generator, seeded by its name, so that the draw depends neither on the order of
work nor on the number of processes. A text with fewer windows than are drawn gives all it has.

A whole corpus is never in memory: every window gets a random mark, and the windows with the smallest marks are kept,
first per group of files, at the end of all. Its windows do not cross from file to file. The published function puts
blanks between all characters of a Wikipedia article, a slip that the authors' final data do not seem to have; it is
in no reading.
"""

import hashlib
import heapq
import random
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from hatchery.vocabulary.filters import Words
from hatchery.vocabulary.items import MARK_BYTES


class Window(NamedTuple):
    """A drawn window."""

    document: str
    """Name of the document that its first word is of."""
    text_number: int
    """Number of its text in the file."""
    windows: int
    """Number of windows of that text."""
    text: str
    """Its words."""


class Marked(NamedTuple):
    """A window of a corpus that is read as one text, with its random mark and its place."""

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
    """Draw from the texts of one file; `documents` are pairs of name and text, `seed` names seed, source and file."""
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
    """All windows of one file of a corpus that is read as one text, with random marks; the file is streamed."""
    generator = np.random.default_rng(int.from_bytes(hashlib.sha256(seed.encode("utf-8", "replace")).digest()))
    words: list[str] = []
    # Words of the file before those in memory, and where the documents in memory begin.
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


class SmallestMarks:
    """Keeps so many of the windows with the smallest marks."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._heap: list[tuple[int, Marked]] = []

    def offer(self, window: Marked) -> None:
        """Take a window if its mark is small enough so far."""
        entry = (-int.from_bytes(window.mark), window)
        if len(self._heap) < self._number:
            heapq.heappush(self._heap, entry)
        elif entry[0] > self._heap[0][0]:
            heapq.heapreplace(self._heap, entry)

    def in_order(self) -> list[Marked]:
        """The windows that were kept, in the order of the corpus."""
        return sorted((window for _, window in self._heap), key=lambda window: window.place)
