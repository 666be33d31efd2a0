"""Texts that a card shows: accepted ones chosen by hash, so that the choice depends on neither order nor chance.

Of every source the documents with the smallest SHA-256 of their names are shown, from a paragraph that the same hash
picks: the first lines of a book say little about the book.
"""

import hashlib
import heapq
from dataclasses import dataclass, field


@dataclass(frozen=True, order=True)
class Sample:
    """One text as it is shown; `key` orders samples, the smallest are kept."""

    key: str
    doc_id: str
    split: str
    text: str


@dataclass
class SampleChoice:
    """The `number` samples of one source with the smallest keys; holds excerpts, never whole documents."""

    number: int
    characters: int
    _heap: list[tuple[int, str, Sample]] = field(default_factory=list)

    def offer(self, doc_id: str, split: str, text: str) -> None:
        """Consider a document; blank ones are passed over."""
        if not self.number:
            return
        key = hashlib.sha256(f"sample/{doc_id}".encode()).hexdigest()
        # A heap with the largest key first: what is offered must beat the worst that is kept.
        rank = -int(key, 16)
        if len(self._heap) == self.number and rank <= self._heap[0][0]:
            return
        if not text or text.isspace():
            return
        item = (rank, doc_id, Sample(key, doc_id, split, excerpt(text, int(key[:8], 16), self.characters)))
        (heapq.heappush if len(self._heap) < self.number else heapq.heapreplace)(self._heap, item)

    def chosen(self) -> list[Sample]:
        """The kept samples by key."""
        return sorted(sample for _, _, sample in self._heap)


def excerpt(text: str, number: int, characters: int) -> str:
    """At most about `characters` of the text from paragraph `number` (modulo their number) on, cut between words."""
    starts = [0]
    while (blank := text.find("\n\n", starts[-1])) >= 0:
        starts.append(blank + 2)
    start = starts[number % len(starts)]
    # Near the end of the text there would be little to read; a document that fits is shown whole.
    if len(text) - start < characters:
        start = max((s for s in starts if len(text) - s >= characters), default=0)
    return shortened(text[start : start + characters + 1].lstrip("\n"), characters)


def shortened(text: str, characters: int) -> str:
    """The text, or its beginning with an ellipsis when it is longer than `characters`."""
    if len(text) <= characters:
        return text.rstrip()
    head = text[:characters]
    cut = max(head.rfind(" "), head.rfind("\n"))
    return f"{head[: cut if cut > characters // 2 else characters].rstrip()} …"
