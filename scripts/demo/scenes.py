"""A scene: a small cast, a place and a few things that recur through one document and give it its topic."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from demo import lexicon
from demo.grammar import (
    Clause,
    Item,
    NounPhrase,
    Tense,
    choose,
    noun_phrase,
    pick_adjectives,
    pick_determiner,
    pick_modifier,
)
from demo.lexicon import Name, Noun, Number, Verb

Words = tuple[str, ...]
_VERBS_BY_CATEGORY = {
    category: tuple(verb for verb in lexicon.TRANSITIVE if category in verb.objects)
    for category in ("person", "animal", *sorted({noun.category for noun in lexicon.OBJECTS}))
}
_SPECIFIC_VERBS = {
    category: tuple(verb for verb in verbs if len(verb.objects) <= 3) or verbs
    for category, verbs in _VERBS_BY_CATEGORY.items()
}
# Verbs that take every category.
GENERAL_VERBS = tuple(verb for verb in lexicon.TRANSITIVE if set(_VERBS_BY_CATEGORY) <= set(verb.objects))


def fitting_tense(verb: Verb, tense: Tense) -> Tense:
    """The tense, or the plain present where a verb of state would stand in the progressive."""
    return "present" if tense == "progressive" and verb.base in lexicon.STATIVE else tense


def pick_verb(rng: random.Random, noun: Noun) -> Verb:
    """A verb for this object; half of the time one that few categories take, so that no verb stays rare."""
    return choose(rng, (_SPECIFIC_VERBS if rng.random() < 0.5 else _VERBS_BY_CATEGORY)[noun.category])


def named(name: Name) -> NounPhrase:
    """The name as a noun phrase."""
    return NounPhrase((name.word,), "singular", name.gender)


@dataclass
class Scene:
    """The cast and the props of one document, and the random generator that tells its story."""

    rng: random.Random
    names: list[Name]
    persons: list[Noun]
    animals: list[Noun]
    things: list[Noun]
    places: list[Noun]

    @classmethod
    def draw(cls, rng: random.Random) -> "Scene":
        """A scene of two names, three kinds of persons, two animals, three things and two places."""
        return cls(
            rng,
            names=rng.sample(lexicon.NAMES, 2),
            persons=rng.sample(lexicon.PERSONS, 3),
            animals=rng.sample(lexicon.ANIMALS, 2),
            things=rng.sample(lexicon.OBJECTS, 3),
            places=rng.sample(lexicon.PLACES, 2),
        )

    def one(self, items: Sequence[Item]) -> Item:
        """One item."""
        return choose(self.rng, items)

    def number(self) -> Number:
        """Singular or plural, equally often."""
        return "plural" if self.rng.random() < 0.5 else "singular"

    def tense(self) -> Tense:
        """A tense; the ones that show agreement are the most frequent."""
        return self.one(
            ("present", "present", "present", "progressive", "progressive", "perfect", "perfect", "past", "past"),
        )

    def phrase(self, noun: Noun, number: Number | None = None, modifier: float = 0.0) -> NounPhrase:
        """A noun phrase about `noun`, with a distracting modifier with probability `modifier`."""
        number = number or self.number()
        attached = pick_modifier(self.rng, self.one(self.things)) if self.rng.random() < modifier else ()
        return noun_phrase(pick_determiner(self.rng, number), noun, number, pick_adjectives(self.rng), attached)

    def name(self) -> NounPhrase:
        """One of the names of the scene."""
        return named(self.one(self.names))

    def person(self, modifier: float = 0.15) -> NounPhrase:
        """A name or a person or several."""
        if self.rng.random() < 0.35:
            return self.name()
        return self.phrase(self.one(self.persons), modifier=modifier)

    def place(self) -> Words:
        """A prepositional phrase of place."""
        phrase = noun_phrase("the", self.one(self.places), "singular")
        return (self.one(lexicon.PLACE_PREPOSITIONS), *phrase.words)

    def ending(self) -> Words:
        """Nothing, a place or an adverb."""
        point = self.rng.random()
        if point < 0.35:
            return self.place()
        return (self.one(lexicon.TIME_ADVERBS),) if point < 0.5 else ()

    def clause(self, subject: NounPhrase | None = None, animal: bool = False, **features: Any) -> Clause:
        """A clause about a person or an animal, transitive or not; `features` are fields of `Clause`."""
        rng = self.rng
        tense: Tense = features.pop("tense", None) or self.tense()
        if animal or (subject is None and rng.random() < 0.25):
            subject = subject or self.phrase(self.one(self.animals), modifier=0.3)
            return Clause(subject, self.one(lexicon.ANIMAL_VERBS), self.ending(), tense, **features)
        subject = subject or self.person()
        if rng.random() < 0.4:
            return Clause(subject, self.one(lexicon.INTRANSITIVE), self.ending(), tense, **features)
        noun = self.one((*self.things, *self.things, *self.animals, *self.persons))
        verb, words = pick_verb(rng, noun), self.phrase(noun).words
        if features.get("negated") or features.get("adverb") in ("never", "ever"):
            # "some" is kept out of the scope of a negation, where "any" stands instead.
            words = tuple("any" if word == "some" else word for word in words)
        return Clause(subject, verb, words, fitting_tense(verb, tense), **features)
