"""Scenes and sentences about scenes. A scene consists of the persons, animals, things and places that are the topic of
a document.

Pronouns, definite descriptions and category words ("a hammer ... the tool") refer to earlier words, so that, as in real
text, context helps to predict words.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from demo import lexicon
from demo.grammar import (
    ADVERBS,
    EVENT_TENSES,
    Clause,
    Item,
    NounPhrase,
    Tense,
    choose,
    noun_phrase,
    pick_adjectives,
    pick_determiner,
    pick_modifier,
    realise,
    sentence,
    stated,
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
# Verbs that accept objects of every category.
GENERAL_VERBS = tuple(verb for verb in lexicon.TRANSITIVE if set(_VERBS_BY_CATEGORY) <= set(verb.objects))


def fitting_tense(verb: Verb, tense: Tense) -> Tense:
    """Return `tense`; but for a verb of state, return the present tense instead of the progressive."""
    return "present" if tense == "progressive" and verb.base in lexicon.STATIVE else tense


def pick_verb(rng: random.Random, noun: Noun) -> Verb:
    """Return a random verb that accepts `noun` as object.

    With probability 0.5, only verbs that accept few categories of objects are drawn; without this rule, these verbs
    would be rare.
    """
    return choose(rng, (_SPECIFIC_VERBS if rng.random() < 0.5 else _VERBS_BY_CATEGORY)[noun.category])


def named(name: Name) -> NounPhrase:
    """Return the name as a noun phrase."""
    return NounPhrase((name.word,), "singular", name.gender)


@dataclass
class Scene:
    """Persons, animals, things and places of one document, and the random generator of the document."""

    rng: random.Random
    names: list[Name]
    persons: list[Noun]
    animals: list[Noun]
    things: list[Noun]
    places: list[Noun]

    @classmethod
    def draw(cls, rng: random.Random) -> "Scene":
        """Return a random scene: two first names, and nouns for three persons, two animals, three things and two
        places.
        """
        return cls(
            rng,
            names=rng.sample(lexicon.NAMES, 2),
            persons=rng.sample(lexicon.PERSONS, 3),
            animals=rng.sample(lexicon.ANIMALS, 2),
            things=rng.sample(lexicon.OBJECTS, 3),
            places=rng.sample(lexicon.PLACES, 2),
        )

    def one(self, items: Sequence[Item]) -> Item:
        """Return a random item."""
        return choose(self.rng, items)

    def number(self) -> Number:
        """Return the grammatical number "singular" or "plural" with equal probability."""
        return "plural" if self.rng.random() < 0.5 else "singular"

    def tense(self) -> Tense:
        """Return a random tense; the most frequent tenses are those in which the verb shows agreement."""
        return self.one(
            ("present", "present", "present", "progressive", "progressive", "perfect", "perfect", "past", "past"),
        )

    def phrase(self, noun: Noun, number: Number | None = None, modifier: float = 0.0) -> NounPhrase:
        """Return a noun phrase with `noun`; with the probability `modifier`, a phrase with a distracting noun
        follows.
        """
        number = number or self.number()
        attached = pick_modifier(self.rng, self.one(self.things)) if self.rng.random() < modifier else ()
        return noun_phrase(pick_determiner(self.rng, number), noun, number, pick_adjectives(self.rng), attached)

    def name(self) -> NounPhrase:
        """Return one of the scene's names."""
        return named(self.one(self.names))

    def person(self, modifier: float = 0.15) -> NounPhrase:
        """Return a name, or a noun phrase for one or several persons."""
        if self.rng.random() < 0.35:
            return self.name()
        return self.phrase(self.one(self.persons), modifier=modifier)

    def place(self) -> Words:
        """Return a prepositional phrase of place."""
        phrase = noun_phrase("the", self.one(self.places), "singular")
        return (self.one(lexicon.PLACE_PREPOSITIONS), *phrase.words)

    def ending(self) -> Words:
        """Return a phrase of place, an adverb of time or manner, or no words."""
        point = self.rng.random()
        if point < 0.35:
            return self.place()
        return (self.one(lexicon.TIME_ADVERBS),) if point < 0.5 else ()

    def clause(self, subject: NounPhrase | None = None, animal: bool = False, **features: Any) -> Clause:
        """Return a transitive or intransitive clause about a person or an animal; `features` are fields of `Clause`."""
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
            # In a negated clause, "some" becomes "any".
            words = tuple("any" if word == "some" else word for word in words)
        return Clause(subject, verb, words, fitting_tense(verb, tense), **features)


def statement(scene: Scene) -> Words:
    """Return an affirmative statement, sometimes with an adverb of frequency."""
    adverb = scene.one(ADVERBS) if scene.rng.random() < 0.12 else ""
    return stated(scene.clause(adverb=adverb))


def negation(scene: Scene) -> Words:
    """Return a negative statement; about two thirds of these statements contain a word that requires a negation (ever,
    any).
    """
    kind = scene.rng.random()
    if kind < 0.3:
        return stated(scene.clause(negated=True, adverb="ever" if scene.rng.random() < 0.5 else ""))
    if kind < 0.5:
        return stated(scene.clause(adverb="never"))
    polarity = any_or_some(scene, negated=True)
    return polarity if kind < 0.8 else quantified(scene, negative=True)


def any_or_some(scene: Scene, negated: bool) -> Words:
    """Return a sentence such as "Tom did not see any dogs" if `negated` is true, otherwise such as "Tom saw some
    dogs".
    """
    noun = scene.one((*scene.things, *scene.animals))
    determiner = "any" if negated else "some"
    phrase = noun_phrase(determiner, noun, "plural", pick_adjectives(scene.rng, 0.2))
    verb = pick_verb(scene.rng, noun)
    tense = scene.one(EVENT_TENSES)
    return stated(Clause(scene.person(), verb, phrase.words, tense, negated=negated))


def quantified(scene: Scene, negative: bool) -> Words:
    """Return a sentence whose quantifier determines the adverb: "No dog has ever slept" or "Every dog has already
    slept".
    """
    noun = scene.one(scene.persons)
    subject = noun_phrase("no" if negative else scene.one(("every", "each")), noun, "singular")
    clause = scene.clause(subject, tense="perfect", adverb="ever" if negative else "already")
    return stated(clause)


def reflexive(scene: Scene) -> Words:
    """Return a sentence with a reflexive pronoun: himself, herself or themselves."""
    subject = scene.person(modifier=0.0)
    while subject.reference == "neuter":
        subject = scene.person(modifier=0.0)
    complement = (lexicon.REFLEXIVE_PRONOUNS[subject.reference], *scene.ending())
    negated = scene.rng.random() < 0.1
    return stated(Clause(subject, scene.one(lexicon.REFLEXIVE), complement, scene.tense(), negated=negated))


def description(scene: Scene) -> Words:
    """Return a sentence that describes a person, an animal or a thing, such as "Helen is very tired"."""
    subject = (
        scene.person()
        if scene.rng.random() < 0.5
        else scene.phrase(scene.one(scene.animals + scene.things), modifier=0.3)
    )
    quality = (
        scene.one(lexicon.MOODS)
        if subject.gender != "neuter"
        else scene.one(("small", "big", "old", "pretty", "strange"))
    )
    present = scene.rng.random() < 0.6
    copula = ("are" if present else "were") if subject.number == "plural" else ("is" if present else "was")
    return sentence([*subject.words, copula, *(("very",) if scene.rng.random() < 0.3 else ()), quality])


def existence(scene: Scene) -> Words:
    """Return a sentence such as "There is a dog in the garden"."""
    number = scene.number()
    determiners = ("a", "a", "no") if number == "singular" else ("many", "few", "some", "no", "two", "three")
    noun = scene.one((*scene.animals, *scene.things, *scene.persons))
    phrase = noun_phrase(scene.one(determiners), noun, number, pick_adjectives(scene.rng))
    return sentence(["there", "are" if number == "plural" else "is", *phrase.words, *scene.place()])


def report(scene: Scene) -> Words:
    """Return reported speech such as "Tom says that ..."."""
    name = scene.name()
    verb = scene.one(lexicon.CLAUSAL)
    if scene.rng.random() < 0.3:
        inner = scene.one(scene.names)
        body = Clause(
            named(inner), scene.one(lexicon.REFLEXIVE), (lexicon.REFLEXIVE_PRONOUNS[inner.gender],), scene.tense()
        )
    else:
        body = scene.clause()
    return stated(Clause(name, verb, ("that", *realise(body)), "present" if scene.rng.random() < 0.5 else "past"))


def follow_up(scene: Scene) -> list[Words]:
    """Return two sentences about one person: the first sentence contains the name, the second contains pronouns of the
    same gender.
    """
    name = scene.one(scene.names)
    pronoun = NounPhrase((lexicon.SUBJECT_PRONOUNS[name.gender],), "singular", name.gender)
    first = stated(scene.clause(named(name)))
    if scene.rng.random() < 0.5:
        return [first, stated(scene.clause(pronoun))]
    thing = noun_phrase(lexicon.POSSESSIVES[name.gender], scene.one(scene.things + scene.animals), scene.number())
    helper = scene.phrase(scene.one(scene.persons))
    helping = Clause(
        helper, pick_verb(scene.rng, scene.persons[0]), (lexicon.OBJECT_PRONOUNS[name.gender],), scene.tense()
    )
    mood = sentence([*pronoun.words, "is" if scene.rng.random() < 0.5 else "was", scene.one(lexicon.MOODS)])
    owner = stated(Clause(pronoun, scene.one(GENERAL_VERBS), thing.words, scene.tense()))
    return [first, scene.one((mood, owner, stated(helping)))]


def restatement(scene: Scene) -> list[Words]:
    """Return a sentence with a noun, and a second sentence that names the same thing by its category.

    Such pairs of sentences teach the meaning of nouns: the verbs accept every category, so only the noun predicts the
    category word.
    """
    noun = scene.one(
        [noun for noun in (*scene.animals, *scene.things) if noun.category in lexicon.HYPERNYMS]
        or [lexicon.ANIMALS[0]],
    )
    category = lexicon.HYPERNYMS[noun.category]
    number = scene.number()
    subject, verb, tense = scene.name(), scene.one(GENERAL_VERBS), scene.one(EVENT_TENSES)
    determiner = scene.one(("a", "this", "that") if number == "singular" else ("some", "these", "two"))
    first = Clause(subject, verb, noun_phrase(determiner, noun, number, pick_adjectives(scene.rng, 0.2)).words, tense)
    again = Clause(subject, verb, noun_phrase("a" if number == "singular" else "some", category, number).words, tense)
    form = scene.rng.random()
    if form < 0.5:
        return [stated(first), stated(again)]
    if form < 0.75:
        return [stated(first), sentence(["so", *realise(again)])]
    definite = noun_phrase("the", category, number)
    quality = scene.one(("small", "big", "old", "pretty", "strange"))
    return [stated(first), sentence([*definite.words, "were" if number == "plural" else "was", quality])]


def echo(scene: Scene) -> list[Words]:
    """Return a pair of sentences of one of three kinds: a sentence with a place, and the same sentence without the
    place; a report ("Tom said that ..."), and the reported sentence; a yes-no question, and its answer.
    """
    noun = scene.one((*scene.animals, *scene.things))
    known = noun_phrase("the", noun, scene.number())
    fact = Clause(scene.name(), scene.one(GENERAL_VERBS), known.words, scene.one(EVENT_TENSES))
    again = stated(fact)
    form = scene.rng.random()
    if form < 0.25:
        speaker = NounPhrase((scene.one(scene.names).word,), "singular")
        return [stated(Clause(speaker, lexicon.CLAUSAL[0], ("that", *realise(fact)), "past")), again]
    if form < 0.5:
        return [stated(replace(fact, question=True)), again]
    return [sentence([*realise(fact), *scene.place()]), again]


def definition(scene: Scene, noun: Noun | None = None) -> Words:
    """Return a definition of a noun: "A hammer is a tool", "Hammers are tools" or "Every hammer is a tool"."""
    noun = noun or scene.one(
        [noun for noun in (*lexicon.ANIMALS, *lexicon.OBJECTS, *lexicon.PLACES) if noun.category in lexicon.HYPERNYMS],
    )
    category = lexicon.HYPERNYMS[noun.category]
    number = scene.number()
    determiner = scene.one(("a", "every", "each")) if number == "singular" else scene.one(("", "all"))
    left = noun_phrase(determiner, noun, number)
    right = noun_phrase("a" if number == "singular" else "", category, number)
    return sentence([*left.words, "are" if number == "plural" else "is", *right.words])


def question(scene: Scene) -> Words:
    """Return a yes-no question, sometimes with "ever" or "any"."""
    if scene.rng.random() < 0.2:
        noun = scene.one((*scene.things, *scene.animals))
        phrase = noun_phrase("any", noun, "plural")
        return stated(Clause(scene.person(), pick_verb(scene.rng, noun), phrase.words, "past", question=True))
    adverb = "ever" if scene.rng.random() < 0.2 else ""
    return stated(scene.clause(question=True, adverb=adverb))


def where_question(scene: Scene) -> list[Words]:
    """Return a question and its answer, such as "Where is the dog? It is near the river"."""
    number = scene.number()
    noun = scene.one((*scene.things, *scene.animals))
    phrase = noun_phrase("the", noun, number)
    copula, pronoun = ("are", "they") if number == "plural" else ("is", "it")
    return [sentence(["where", copula, *phrase.words], "?"), sentence([pronoun, copula, *scene.place()])]
