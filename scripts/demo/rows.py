"""Draws minimal pairs and the rows of labelled tasks, new to the corpora, never the same twice.

Words are drawn into slots, and patterns put sentences together from them. "A did not V.base the N.plural P" names a
slot or a word between blanks; `.base` is a field of what lies in the slot, or a slot that holds the name of one. Names,
nouns and places come from the whole lexicon, unlike those of a scene, so that rows share little but their construction.
What a task tells happened in the past, where verbs agree with nobody: a verb without a field stands in the past, a noun
in the singular.

Rows are drawn in groups, which balance a task, such as two rows that share their words but not their label. Training
and scored rows of one task come from one series of draws, so that no text stands in two of them.

Minimal pairs have BLiMP's format (Warstadt et al. 2020): a sentence of the grammar, and it with one broken constraint.
They come as mirrored twins: where one pair has x in the good and y in the bad sentence, its twin has y in the good and
x in the bad one. A judge that knows only how frequent or how long words are is right in exactly half of the pairs.
"""

import json
import random
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, TypeAlias, TypeVar

from demo import lexicon
from demo.grammar import Item, choose, sentence, text_of
from demo.scenes import Words
from hatchery.errors import ConfigError

THINGS = (*lexicon.ANIMALS, *lexicon.OBJECTS)
CLASSIFIED = tuple(noun for noun in THINGS if noun.category in lexicon.HYPERNYMS)
ADJECTIVES = lexicon.SIZES + lexicon.QUALITIES
# What one person does to another.
PERSON_VERBS = tuple(verb for verb in lexicon.TRANSITIVE if "person" in verb.objects)
# "Helen knew that Tom slept" says that he did; "Helen hoped that Tom slept" does not.
FACTIVE = tuple(verb for verb in lexicon.VERBS if verb.base in {"know", "forget", "see"})
# Names of men and of women.
MEN, WOMEN = ([name for name in lexicon.NAMES if name.gender == gender] for gender in ("masculine", "feminine"))
# The verb of a pattern, plain and negated.
ACTED = ("V", "did not V.base")

Source: TypeAlias = "Sequence[Any] | Callable[[Draw], Any]"


class Draw:
    """The draws of one group of rows; every call takes the next numbers of `rng`."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.slots: dict[str, Any] = {}

    def __call__(self, **sources: Source) -> None:
        """Fill slots in the order given: each with one item of its source, or with what a function of the draws says.

        `A_B` are two slots with different items, `A_` is one slot drawn like them. A source that is text is its item.
        """
        for slot, source in sources.items():
            if callable(source):
                self.slots[slot] = source(self)
            elif isinstance(source, str):
                self.slots[slot] = source
            elif "_" in slot:
                names = slot.strip("_").split("_")
                self.slots.update(zip(names, self.some(source, len(names)), strict=True))
            else:
                self.slots[slot] = self.one(source)

    def one(self, items: Sequence[Item]) -> Item:
        """One item."""
        return choose(self.rng, items)

    def some(self, items: Sequence[Item], count: int) -> list[Item]:
        """`count` different items, in random order."""
        return self.rng.sample(items, count)

    def coin(self) -> bool:
        """True or false."""
        return self.rng.random() < 0.5

    def text(self, *patterns: str) -> str:
        """The text of the sentences, one after the other; a pattern that asks ends with its own mark."""
        return " ".join(text_of(self._sentence(pattern)) for pattern in patterns)

    def each(self, *patterns: str) -> tuple[str, ...]:
        """The text of each sentence."""
        return tuple(map(self.text, patterns))

    def texts(self, **patterns: str) -> dict[str, Any]:
        """The fields of a row, each one sentence."""
        return {name: self.text(pattern) for name, pattern in patterns.items()}

    def _sentence(self, pattern: str) -> Words:
        said = pattern.removesuffix(" ?")
        words = [word for piece in said.split() for word in self._words(piece)]
        articles = ("an" if word == "a" and after[0] in "aeiou" else word for word, after in pairwise((*words, ".")))
        return sentence([*articles], "." if said == pattern else "?")

    def _words(self, piece: str) -> Iterator[str]:
        slot, *fields = piece.split(".")
        if slot not in self.slots:
            return iter((piece,))
        value = self.slots[slot]
        for name in fields:
            value = getattr(value, self.slots.get(name, name))
        return iter(value if isinstance(value, tuple) else str(value).split())


def place(draw: Draw) -> Words:
    """ "near the lake"."""
    return (draw.one(lexicon.PLACE_PREPOSITIONS), "the", draw.one(lexicon.PLACES).singular)


@dataclass(frozen=True)
class Pair:
    """A grammatical sentence and its broken counterpart, as words."""

    good: Words
    bad: Words


Twins = tuple[Pair, Pair]
Broken = Literal["first", "second"]


@dataclass(frozen=True)
class Paradigm:
    """One phenomenon tested in one way; `draw` makes two mirrored pairs from fresh material."""

    uid: str
    field: str
    term: str
    draw: Callable[[random.Random], Twins]


_Part = TypeVar("_Part")
_Other = TypeVar("_Other")


def crossed(
    whole: Callable[[_Part, _Other], Words],
    first: tuple[_Part, _Part],
    second: tuple[_Other, _Other],
    broken: Broken = "second",
) -> Twins:
    """The twins of a sentence of two parts that must fit: what is `broken` in the bad ones is the other of the two."""
    (a, b), (x, y) = first, second
    if broken == "first":
        return Pair(whole(a, x), whole(b, x)), Pair(whole(b, y), whole(a, y))
    return Pair(whole(a, x), whole(a, y)), Pair(whole(b, y), whole(b, x))


def draw_pairs(paradigm: Paradigm, count: int, seed: int, taken: Container[str]) -> list[Pair]:
    """`count` different pairs (rounded down to whole twins) whose sentences are not in `taken`.

    Raises ConfigError when the paradigm cannot make that many.
    """
    rng = random.Random(f"{seed}/minimal_pairs/{paradigm.uid}")
    pairs: list[Pair] = []
    seen: set[str] = set()
    attempts = 0
    while len(pairs) < count - count % 2:
        attempts += 1
        if attempts > 50 * count + 1000:
            raise ConfigError(f"pairs_per_paradigm: {paradigm.uid} cannot make {count} different pairs")
        twins = paradigm.draw(rng)
        texts = [text_of(words) for pair in twins for words in (pair.good, pair.bad)]
        if any(text in taken or text in seen for text in texts):
            continue
        seen.update(texts)
        pairs.extend(twins)
    return pairs


def blimp_rows(paradigm: Paradigm, pairs: list[Pair]) -> list[dict[str, object]]:
    """The pairs as rows of a BLiMP file."""
    return [
        {
            "sentence_good": text_of(pair.good),
            "sentence_bad": text_of(pair.bad),
            "field": paradigm.field,
            "linguistics_term": paradigm.term,
            "UID": paradigm.uid,
            "simple_LM_method": True,
            "one_prefix_method": False,
            "two_prefix_method": False,
            "lexically_identical": False,
            "pairID": str(index),
        }
        for index, pair in enumerate(pairs)
    ]


TaskRow = dict[str, Any]
_SENTENCE_END = re.compile(r"(?<=[.?!])\s+")
# Sentences up to this many words ("Yes.", "It is near the lake.") recur in any text; of them only whole texts count.
_SHORT = 5


@dataclass(frozen=True)
class RowTask:
    """`make` draws the rows of the group with this number; `fresh` names the fields whose texts must be new.

    Fresh fields hold no sentence of the corpora beyond a few words, and those of two groups never agree. Rows stand in
    random order, most with their numbers; those that come numbered (of passages, of pairs) stay as they were drawn.
    """

    make: Callable[[Draw, int], list[TaskRow]]
    fresh: tuple[str, ...]
    name: str = ""
    numbers: bool = True

    def key(self, row: TaskRow) -> tuple[str, ...]:
        """What makes two rows the same, in whatever order they name their texts."""
        return tuple(sorted(row[name] for name in self.fresh))


def grouped(*fresh: str, numbers: bool = True) -> Callable[[Callable[[Draw, int], list[TaskRow]]], RowTask]:
    """The task of a function that makes the rows of a group; it is called like the function."""
    return lambda make: RowTask(make, fresh, make.__name__, numbers)


def labelled(*fresh: str, labels: int = 2) -> Callable[[Callable[[Draw, int, int], TaskRow]], RowTask]:
    """The same of a function that makes the row of one label, without the label; a group has one row for each."""

    def task(make: Callable[[Draw, int, int], TaskRow]) -> RowTask:
        def group_of(draw: Draw, group: int) -> list[TaskRow]:
            return [{**make(draw, label, group), "label": label} for label in range(labels)]

        return RowTask(group_of, fresh, make.__name__)

    return task


def draw_splits(
    stream: str, splits: Mapping[str, tuple[RowTask, int]], taken: Container[str]
) -> dict[str, list[TaskRow]]:
    """For every split its number of rows, rounded down to whole groups (but at least one), shuffled and numbered.

    `stream` names the random draws, seed included. Raises ConfigError when a task cannot make that many.
    """
    seen: set[tuple[str, ...]] = set()
    return {split: _draw(f"{stream}/{split}", *asked, taken, seen) for split, asked in splits.items()}


def _draw(stream: str, task: RowTask, count: int, taken: Container[str], seen: set[tuple[str, ...]]) -> list[TaskRow]:
    rng = random.Random(stream)
    rows: list[TaskRow] = []
    groups = 0
    for _ in range(50 * count + 1000):
        group = task.make(Draw(rng), groups)
        if groups and len(rows) + len(group) > count:
            return rows if rows[0].keys() & {"idx", "row"} else shuffled(rng, rows, task.numbers)
        keys = {task.key(row) for row in group}
        if not keys & seen and not any(_known(row[name], taken) for row in group for name in task.fresh):
            seen |= keys
            rows += group
            groups += 1
    raise ConfigError(f"examples_per_suite_task: {stream} cannot make {count} different rows")


def shuffled(rng: random.Random, rows: list[TaskRow], numbers: bool = True) -> list[TaskRow]:
    """The rows in random order, with their numbers or without."""
    rng.shuffle(rows)
    return [{**row, "idx": index} if numbers else row for index, row in enumerate(rows)]


def _known(text: str, taken: Container[str]) -> bool:
    """Whether the text, or a sentence of it with more than a few words, stands in `taken`."""
    parts = (part for part in _SENTENCE_END.split(text) if len(part.split()) > _SHORT)
    return text in taken or any(part in taken for part in parts)


def json_lines(rows: list[TaskRow]) -> bytes:
    """The rows as a JSON-lines file."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
