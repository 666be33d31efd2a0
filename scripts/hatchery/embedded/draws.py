"""What the rows of the tasks are made of: words drawn in the order of the calls, and sentences put together from them.

Names, nouns and places come from the whole lexicon, unlike those of a scene, so that rows share little but their
construction. What a task tells happened in the past, where verbs agree with nobody.
"""

import random
from collections.abc import Mapping, Sequence
from itertools import chain

from hatchery.embedded import lexicon
from hatchery.embedded.grammar import Item, choose, noun_phrase, sentence, text_of
from hatchery.embedded.lexicon import Gender, Noun, Number, Verb
from hatchery.embedded.scenes import GENERAL_VERBS, Words

THINGS = (*lexicon.ANIMALS, *lexicon.OBJECTS)
CLASSIFIED = tuple(noun for noun in THINGS if noun.category in lexicon.HYPERNYMS)
ADJECTIVES = lexicon.SIZES + lexicon.QUALITIES
# What one person does to another.
PERSON_VERBS = tuple(verb for verb in lexicon.TRANSITIVE if "person" in verb.objects)
# "Helen knew that Tom slept" says that he did; "Helen hoped that Tom slept" does not.
FACTIVE = tuple(verb for verb in lexicon.VERBS if verb.base in {"know", "forget", "see"})


class Draw:
    """The draws of one group of rows; every call takes the next number of `rng`."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def one(self, items: Sequence[Item]) -> Item:
        """One item."""
        return choose(self.rng, items)

    def some(self, items: Sequence[Item], count: int) -> list[Item]:
        """`count` different items, in random order."""
        return self.rng.sample(items, count)

    def coin(self) -> bool:
        """True or false."""
        return self.rng.random() < 0.5

    def names(self, count: int, gender: Gender | None = None) -> list[Words]:
        """`count` different names, of one gender if it is given."""
        return [(name.word,) for name in self.some([n for n in lexicon.NAMES if gender in (None, n.gender)], count)]

    def verb(self) -> Verb:
        """A verb that takes every kind of object, so that the object says nothing about it."""
        return self.one(GENERAL_VERBS)

    def adjective(self) -> Words:
        """ "red"."""
        return (self.one(ADJECTIVES),)

    def thing(self) -> Words:
        """ "the dog", "the hammers"."""
        return the(self.one(THINGS), self.one(lexicon.NUMBERS))

    def place(self) -> Words:
        """ "near the lake"."""
        return (self.one(lexicon.PLACE_PREPOSITIONS), *the(self.one(lexicon.PLACES)))


def the(noun: Noun, number: Number = "singular", adjectives: Sequence[str] = ()) -> Words:
    """ "the dog", "the red dogs"."""
    return noun_phrase("the", noun, number, adjectives).words


def a(noun: Noun, adjectives: Sequence[str] = ()) -> Words:
    """ "a dog", "an old dog"."""
    return noun_phrase("a", noun, "singular", adjectives).words


def did(subject: Words, verb: Verb, *rest: Words, negated: bool = False) -> Words:
    """The words of a clause in the past."""
    return (*subject, *(("did", "not", verb.base) if negated else (verb.past,)), *chain(*rest))


def said(*parts: str | Sequence[str], mark: str = ".") -> str:
    """The text of a sentence; a part is words, or one text of words."""
    return text_of(sentence([*chain(*(part.split() if isinstance(part, str) else part for part in parts))], mark))


def told(subject: Words, verb: Verb, *rest: Words, negated: bool = False) -> str:
    """ "Tom did not find the dog."."""
    return said(did(subject, verb, *rest, negated=negated))


def asked(word: str, subject: Words, verb: Verb, *rest: Words) -> str:
    """ "Where did Tom find the dog?"; without a question word "Did Tom find the dog?"."""
    return said(word, "did", subject, verb.base, *rest, mark="?")


def filled(pattern: str, slots: Mapping[str, Words]) -> str:
    """The text of a sentence whose words between blanks are slots, or stand for themselves."""
    return said(*(slots.get(piece, (piece,)) for piece in pattern.split()))
