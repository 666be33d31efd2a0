"""Sentences and spans to sequences that fill a model's input: the settings, and greedy grouping by number of words.

Source: the reduced-vocabulary paper (docs/papers/reduced-vocabulary.md, "Grouping"). Items are put together, in order,
while the words, times 1.2 tokens per word, stay below the 128 tokens of the input. `as_published` keeps what the
authors' code does: an item is added with a space behind it, and the pieces between spaces are counted, so the last
space makes one empty piece and a sequence has at most 105 words; the sequence before the first item is given out when
that item does not fit it, empty; the last, partial sequence is lost; sequences run across corpora (inferred).
`corrected` counts words, gives out no empty sequence and loses none, ends a sequence with its selection, and separates
the items by newlines, so that sentence boundaries survive. In both, an item longer than a sequence (a span of 110
words) is a sequence of its own.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated, Literal, NamedTuple

from annotated_types import MinLen

from hatchery.corpora.settings import Sharded
from hatchery.settings.base import Count, Natural, Positive, Range, ReadingName, RefusedError, Settings
from hatchery.settings.fields import Unique

Amount = Natural | Annotated[float, Range(ge=0, lt=1)]


@dataclass(frozen=True)
class SequenceLength(Settings):
    """How long a sequence may become, in subwords and in subwords per word."""

    tokens: Count = 128
    """Length of the model's input."""
    tokens_per_word: Positive = 1.2
    """Subwords of a word, as the study estimates them."""

    def holds(self, words: int) -> bool:
        """Whether so many words fit."""
        return words * self.tokens_per_word < self.tokens


@dataclass(frozen=True, kw_only=True)
class SequenceGroup(Settings):
    """One level: selections whose items are grouped together, apart from those of the other levels."""

    level: Literal["sentence", "span"]
    """What is grouped."""
    selections: Annotated[tuple[str, ...], MinLen(1), Unique()]
    """Names of the selections, in grouping order."""
    quotas: dict[str, Count] = dataclasses.field(default_factory=dict)
    """So many texts of a selection, drawn before grouping; all where a selection is not named."""
    maximum_sequences: Count | None = None
    """Grouping stops after so many sequences; null groups all."""
    development: Amount = 0
    """A number of development sequences, or with a decimal point their share."""
    test: Amount = 0
    """A number of test sequences, or with a decimal point their share."""
    set_aside: Amount = 0
    """Sequences used for nothing; a number or a share."""

    def __post_init__(self) -> None:
        for name in self.quotas:
            if name not in self.selections:
                raise RefusedError(f"quotas.{name}", "there is no such selection in the group")


@dataclass(frozen=True, kw_only=True)
class SequenceKeys(Settings):
    """Selections of text, grouped into sequences of a model's input length."""

    reading: ReadingName = "corrected"
    """as_published repeats the authors' grouping, slips included."""
    seed: Natural = 0
    """Draws quotas and held-out sequences."""
    length: SequenceLength = dataclasses.field(default_factory=SequenceLength)
    """How long a sequence may become."""
    groups: Annotated[tuple[SequenceGroup, ...], MinLen(1)]
    """The levels, in the order of the sequences."""

    def __post_init__(self) -> None:
        for what, names in (("selection", self.selections), ("level", [group.level for group in self.groups])):
            if len(set(names)) < len(names):
                raise RefusedError("groups", f"a {what} occurs twice among {', '.join(names)}")

    @property
    def selections(self) -> list[str]:
        """Names of all selections, in grouping order."""
        return [name for group in self.groups for name in group.selections]


@dataclass(frozen=True, kw_only=True)
class SequenceSettings(SequenceKeys, Sharded):
    """A corpus of sequences."""


def number_of(amount: float, total: int) -> int:
    """A number of sequences: itself, or a share of the total, rounded to the nearest."""
    return int(amount * total + 0.5) if isinstance(amount, float) else amount


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
