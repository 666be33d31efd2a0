"""Minimal pairs in BLiMP's format (Warstadt et al. 2020): a sentence of the grammar, and it with one broken constraint.

Pairs come as mirrored twins: where one pair has x in the good and y in the bad sentence, its twin has y in the good and
x in the bad one. A judge that knows only how frequent or how long words are is right in exactly half of the pairs.
"""

import random
from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import Literal, TypeVar

from demo.grammar import text_of
from demo.scenes import Words
from hatchery.errors import ConfigError


@dataclass(frozen=True)
class Pair:
    """A grammatical sentence and its broken counterpart, as words."""

    good: Words
    bad: Words


Twins = tuple[Pair, Pair]
Draw = Callable[[random.Random], Twins]
Broken = Literal["first", "second"]


@dataclass(frozen=True)
class Paradigm:
    """One phenomenon tested in one way; `draw` makes two mirrored pairs from fresh material."""

    uid: str
    field: str
    term: str
    draw: Draw


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
