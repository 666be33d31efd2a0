"""Sentences and spans to sequences that fill a model's input: greedy grouping by number of words.

Source: the reduced-vocabulary paper (docs/papers/reduced-vocabulary.md, "Grouping"). Items are put together, in order,
while the words, times 1.2 tokens per word, stay below the 128 tokens of the input. `as_published` keeps what the
authors' code does: an item is added with a space behind it, and the pieces between spaces are counted, so the last
space makes one empty piece and a sequence has at most 105 words; the sequence before the first item is given out when
that item does not fit it, empty; the last, partial sequence is lost; sequences run across corpora (inferred).
`corrected` counts words, gives out no empty sequence and loses none, ends a sequence with its selection, and separates
the items by newlines, so that sentence boundaries survive. In both, an item longer than a sequence (a span of 110
words) is a sequence of its own.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from hatchery.corpora.sequence_settings import SequenceLength
from hatchery.settings.base import ReadingName


class Item(NamedTuple):
    """An accepted sentence or span, and the name of the selection that it comes from."""

    selection: str
    text: str


class Sequence(NamedTuple):
    """A grouped sequence; `selection` is that of its first item, `items` how many it holds."""

    selection: str
    text: str
    items: int


def grouped(
    items: Iterable[Item], length: SequenceLength, reading: ReadingName, lost: Callable[[Item], None]
) -> Iterator[Sequence]:
    """The sequences of the items of one level, in order; `lost` is called for every item that is in none of them."""
    if reading == "as_published":
        yield from _as_published(items, length, lost)
        return
    for _, part in groupby(items, key=lambda item: item.selection):
        yield from _corrected(part, length, lost)


def _as_published(items: Iterable[Item], length: SequenceLength, lost: Callable[[Item], None]) -> Iterator[Sequence]:
    group: list[Item] = []
    # Splitting an empty text on the space gives one piece already: the empty one behind the last space.
    pieces = 1
    for item in items:
        size = item.text.count(" ") + 1
        if length.holds(pieces + size):
            group.append(item)
            pieces += size
            continue
        selection = group[0].selection if group else item.selection
        yield Sequence(selection, "".join(f"{member.text} " for member in group), len(group))
        group, pieces = [item], 1 + size
    for item in group:
        lost(item)


def _corrected(items: Iterable[Item], length: SequenceLength, lost: Callable[[Item], None]) -> Iterator[Sequence]:
    group: list[str] = []
    words = 0
    selection = ""
    for item in items:
        # A line end inside an item is one of its document's: a sentence boundary like the ones between items.
        lines = [line for part in item.text.splitlines() if (line := " ".join(part.split()))]
        size = sum(line.count(" ") + 1 for line in lines)
        if not size:
            lost(item)
            continue
        if group and not length.holds(words + size):
            yield Sequence(selection, "\n".join(group), len(group))
            group, words = [], 0
        selection = item.selection
        group.append("\n".join(lines))
        words += size
    if group:
        yield Sequence(selection, "\n".join(group), len(group))
