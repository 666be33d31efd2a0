"""Plain facts that tasks are about: who did what to whom, and where, as clauses of the grammar.

Names, nouns and places are drawn from the whole lexicon, unlike those of a scene, so that rows share little but their
construction.
"""

import random
from collections.abc import Sequence

from hatchery.embedded.grammar import Clause, NounPhrase, choose, noun_phrase, realise, sentence, text_of
from hatchery.embedded.lexicon import (
    ANIMALS,
    HYPERNYMS,
    NAMES,
    OBJECTS,
    PLACE_PREPOSITIONS,
    PLACES,
    QUALITIES,
    SIZES,
    TRANSITIVE,
    Gender,
    Noun,
    Number,
    Verb,
)
from hatchery.embedded.scenes import GENERAL_VERBS, Words

THINGS = (*ANIMALS, *OBJECTS)
CLASSIFIED = tuple(noun for noun in THINGS if noun.category in HYPERNYMS)
ADJECTIVES = SIZES + QUALITIES
# What one person does to another.
PERSON_VERBS = tuple(verb for verb in TRANSITIVE if "person" in verb.objects)


def tell(clause: Clause, mark: str = ".") -> str:
    """The clause as the text of one sentence."""
    return text_of(sentence(realise(clause), mark))


def ask(clause: Clause, question_word: str = "") -> str:
    """The clause as a question: "Did Tom find the dog?", or "Where did Tom find?" with a question word."""
    words = realise(
        Clause(clause.subject, clause.verb, clause.complement, clause.tense, negated=clause.negated, question=True)
    )
    return text_of(sentence([question_word, *words] if question_word else words, "?"))


def distinct(rng: random.Random, items: Sequence, count: int) -> list:
    """`count` different items, in random order."""
    return rng.sample(items, count)


def draw_names(rng: random.Random, count: int, gender: Gender | None = None) -> list[NounPhrase]:
    """`count` different names, of one gender if it is given."""
    names = [name for name in NAMES if gender in (None, name.gender)]
    return [NounPhrase((name.word,), "singular", name.gender) for name in distinct(rng, names, count)]


def the(noun: Noun, number: Number = "singular", adjectives: Sequence[str] = ()) -> Words:
    """ "the dog", "the red dogs"."""
    return noun_phrase("the", noun, number, adjectives).words


def a(noun: Noun, adjectives: Sequence[str] = ()) -> Words:
    """ "a dog", "an old dog"."""
    return noun_phrase("a", noun, "singular", adjectives).words


def draw_place(rng: random.Random) -> Words:
    """ "near the lake"."""
    return (choose(rng, PLACE_PREPOSITIONS), *the(choose(rng, PLACES)))


def past(subject: NounPhrase, verb: Verb, *complement: Words, negated: bool = False) -> Clause:
    """A clause in the past with its complements in order."""
    return Clause(subject, verb, tuple(word for part in complement for word in part), "past", negated=negated)


def draw_verb(rng: random.Random) -> Verb:
    """A verb that takes every kind of object, so that the object says nothing about it."""
    return choose(rng, GENERAL_VERBS)
