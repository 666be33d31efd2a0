"""What the rows of the tasks are made of: words drawn into slots, and patterns that put sentences together from them.

"A did not V.base the N.plural P" names a slot or a word between blanks; `.base` is a field of what lies in the slot, or
a slot that holds the name of one. Names, nouns and places come from the whole lexicon, unlike those of a scene, so that
rows share little but their construction. What a task tells happened in the past, where verbs agree with nobody: a verb
without a field stands in the past, a noun in the singular.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from demo import lexicon
from demo.grammar import Item, choose, sentence, text_of
from demo.scenes import Words

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
