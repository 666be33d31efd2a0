"""Draws minimal pairs and rows of labelled tasks. No drawn text also occurs in the corpora, and no two groups of rows
contain equal texts.

Words are drawn into slots, and patterns combine the slots to sentences. A pattern such as "A did not V.base the
N.plural P" consists of slots and words. In `V.base`, V is a slot, and `base` is a field of the word in this slot. A
slot can also contain the name of the field: in `T.n`, the slot n may contain "plural". Names, nouns and places come
from the whole lexicon, and not from a scene of a few words, so that rows have little in common except their
construction. Sentences are in the past tense, in which the verb does not show agreement: a verb without a field is in
the past tense, and a noun without a field is singular.

Rows are drawn in groups that balance a task, such as two rows with equal words and different labels. Training and
evaluation rows of a task come from one series of draws, so that no text is both in the training rows and in the
evaluation rows.

Minimal pairs have the format of BLiMP (Warstadt et al. 2020): a grammatical sentence, and the same sentence with one
violated constraint. Each pair has a mirrored twin. If the good sentence of a pair contains x and its bad sentence
contains y, the good sentence of the twin contains y and its bad sentence contains x. So a model that judges sentences
only by the frequency or length of words is right in exactly half of the pairs.
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
# Verbs that can have a person as object.
PERSON_VERBS = tuple(verb for verb in lexicon.TRANSITIVE if "person" in verb.objects)
# Verbs that presuppose their clause: "Helen knew that Tom slept" implies that Tom slept, but "Helen hoped ..." does
# not.
FACTIVE = tuple(verb for verb in lexicon.VERBS if verb.base in {"know", "forget", "see"})
# Names of men, and names of women.
MEN, WOMEN = ([name for name in lexicon.NAMES if name.gender == gender] for gender in ("masculine", "feminine"))
# Parts of a pattern that contain its verb, first affirmative, then negated.
ACTED = ("V", "did not V.base")

Source: TypeAlias = "Sequence[Any] | Callable[[Draw], Any]"


class Draw:
    """The random draws of one group of rows; `slots` contains the drawn words by name of the slot."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.slots: dict[str, Any] = {}

    def __call__(self, **sources: Source) -> None:
        """Fill slots in the given order. Each keyword is a slot with its source, and a sequence as source provides a
        random item for the slot.

        A source can also be a text, or a function; then the slot contains the text, or the value that the function
        returns for this object. A keyword `A_B` fills the two slots A and B with different items of the source. A
        keyword `A_` fills only the slot A, with the random draw of `some` instead of `one`.
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
        """Return a random item."""
        return choose(self.rng, items)

    def some(self, items: Sequence[Item], count: int) -> list[Item]:
        """Return `count` different items in random order."""
        return self.rng.sample(items, count)

    def coin(self) -> bool:
        """Return True or False, with equal probability."""
        return self.rng.random() < 0.5

    def text(self, *patterns: str) -> str:
        """Replace every slot in each pattern by the word that was drawn for this slot, and return the resulting
        sentences as one text; a pattern that ends in " ?" is a question.
        """
        return " ".join(text_of(self._sentence(pattern)) for pattern in patterns)

    def each(self, *patterns: str) -> tuple[str, ...]:
        """Return one text for each pattern; every slot of a pattern is replaced by the word that was drawn for this
        slot.
        """
        return tuple(map(self.text, patterns))

    def texts(self, **patterns: str) -> dict[str, Any]:
        """Return one text for each field of a row. `patterns` maps each field to a pattern; every slot of a pattern is
        replaced by the word that was drawn for this slot.
        """
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
    """Return a prepositional phrase such as "near the lake"."""
    return (draw.one(lexicon.PLACE_PREPOSITIONS), "the", draw.one(lexicon.PLACES).singular)


@dataclass(frozen=True)
class Pair:
    """A minimal pair: a grammatical sentence, and its counterpart with a violated constraint, each as a sequence of
    words.
    """

    good: Words
    bad: Words


Twins = tuple[Pair, Pair]
Broken = Literal["first", "second"]


@dataclass(frozen=True)
class Paradigm:
    """One type of minimal pairs within a phenomenon; the function `draw` returns two new pairs, in which the good and
    the bad form change places.
    """

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
    """Return two minimal pairs in which the good and the bad form change places. The function `whole` makes a sentence
    from two parts: `first` contains the two values of the first part, and `second` the two values of the second part.

    A good sentence combines the first value of both parts, or the second value of both parts. A bad sentence has the
    other value of the part `broken`.
    """
    (a, b), (x, y) = first, second
    if broken == "first":
        return Pair(whole(a, x), whole(b, x)), Pair(whole(b, y), whole(a, y))
    return Pair(whole(a, x), whole(a, y)), Pair(whole(b, y), whole(b, x))


def draw_pairs(paradigm: Paradigm, count: int, seed: int, taken: Container[str]) -> list[Pair]:
    """Return `count` different pairs (an odd `count` is rounded down) whose sentences are not in `taken`.

    Raises ConfigError if the paradigm has too few different pairs.
    """
    rng = random.Random(f"{seed}/minimal_pairs/{paradigm.uid}")
    pairs: list[Pair] = []
    seen: set[str] = set()
    attempts = 0
    while len(pairs) < count - count % 2:
        attempts += 1
        if attempts > 50 * count + 1000:
            raise ConfigError(
                f"pairs_per_paradigm: {paradigm.uid} cannot make {count} different pairs; set a smaller number"
            )
        twins = paradigm.draw(rng)
        texts = [text_of(words) for pair in twins for words in (pair.good, pair.bad)]
        if any(text in taken or text in seen for text in texts):
            continue
        seen.update(texts)
        pairs.extend(twins)
    return pairs


def blimp_rows(paradigm: Paradigm, pairs: list[Pair]) -> list[dict[str, object]]:
    """Return the pairs as rows of a BLiMP file."""
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
# A sentence with at most this number of words ("Yes.", "It is near the lake.") may also occur in the corpora, unless it
# is the complete text of a row.
_SHORT = 5


@dataclass(frozen=True)
class RowTask:
    """A task: `make` draws the rows of a group by the group's index, and `fresh` names the fields of a row that contain
    new texts.

    No sentence of new texts is in the corpora, except for very short sentences, and no two groups have equal texts.
    Rows are shuffled and, if `numbers` is true, numbered. If `make` has numbered the rows (by passage or pair), they
    keep their order.
    """

    make: Callable[[Draw, int], list[TaskRow]]
    fresh: tuple[str, ...]
    name: str = ""
    numbers: bool = True

    def key(self, row: TaskRow) -> tuple[str, ...]:
        """Return the texts of a row as a sorted key, so that rows with equal texts in another order have equal keys."""
        return tuple(sorted(row[name] for name in self.fresh))


def grouped(*fresh: str, numbers: bool = True) -> Callable[[Callable[[Draw, int], list[TaskRow]]], RowTask]:
    """Return a decorator that converts a function to a task. `fresh` and `numbers` are the fields of `RowTask`.

    The function returns the rows of a group, and the task has the function's name.
    """
    return lambda make: RowTask(make, fresh, make.__name__, numbers)


def labelled(*fresh: str, labels: int = 2) -> Callable[[Callable[[Draw, int, int], TaskRow]], RowTask]:
    """Return a decorator that converts a function to a task, as `grouped` does.

    The function returns one row for a given label, and a group consists of one row per label.
    """

    def task(make: Callable[[Draw, int, int], TaskRow]) -> RowTask:
        def group_of(draw: Draw, group: int) -> list[TaskRow]:
            return [{**make(draw, label, group), "label": label} for label in range(labels)]

        return RowTask(group_of, fresh, make.__name__)

    return task


def draw_splits(
    stream: str, splits: Mapping[str, tuple[RowTask, int]], taken: Container[str]
) -> dict[str, list[TaskRow]]:
    """Return the rows of each split. A task draws its rows in groups, so the requested number of rows is rounded down
    to complete groups; a split has at least one group.

    `stream` is the seed of the random draws. Raises ConfigError if a task has too few different rows.
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
    raise ConfigError(f"examples_per_suite_task: {stream} cannot make {count} different rows; set a smaller number")


def shuffled(rng: random.Random, rows: list[TaskRow], numbers: bool = True) -> list[TaskRow]:
    """Return the rows in random order. If `numbers` is true, the field `idx` of a row is its index."""
    rng.shuffle(rows)
    return [{**row, "idx": index} if numbers else row for index, row in enumerate(rows)]


def _known(text: str, taken: Container[str]) -> bool:
    """Return True if the text, or one of its sentences of more than _SHORT words, is in `taken`."""
    parts = (part for part in _SENTENCE_END.split(text) if len(part.split()) > _SHORT)
    return text in taken or any(part in taken for part in parts)


def json_lines(rows: list[TaskRow]) -> bytes:
    """Return the rows as JSON lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
