"""The kinds of sentences that documents tell about a scene.

Pronouns, definite descriptions and category words ("a hammer ... the tool") refer back to what was mentioned, so that
context helps to predict words, as it does in real text.
"""

from dataclasses import replace

from demo import lexicon
from demo.grammar import (
    ADVERBS,
    EVENT_TENSES,
    Clause,
    NounPhrase,
    noun_phrase,
    pick_adjectives,
    realise,
    sentence,
    stated,
)
from demo.lexicon import Noun
from demo.scenes import GENERAL_VERBS, Scene, Words, named, pick_verb


def statement(scene: Scene) -> Words:
    """A plain statement, sometimes with an adverb of frequency."""
    adverb = scene.one(ADVERBS) if scene.rng.random() < 0.12 else ""
    return stated(scene.clause(adverb=adverb))


def negation(scene: Scene) -> Words:
    """A negative statement; half of them hold a word that needs the negation (ever, any)."""
    kind = scene.rng.random()
    if kind < 0.3:
        return stated(scene.clause(negated=True, adverb="ever" if scene.rng.random() < 0.5 else ""))
    if kind < 0.5:
        return stated(scene.clause(adverb="never"))
    polarity = any_or_some(scene, negated=True)
    return polarity if kind < 0.8 else quantified(scene, negative=True)


def any_or_some(scene: Scene, negated: bool) -> Words:
    """ "Tom did not see any dogs" when negated, "Tom saw some dogs" otherwise."""
    noun = scene.one((*scene.things, *scene.animals))
    determiner = "any" if negated else "some"
    phrase = noun_phrase(determiner, noun, "plural", pick_adjectives(scene.rng, 0.2))
    verb = pick_verb(scene.rng, noun)
    tense = scene.one(EVENT_TENSES)
    return stated(Clause(scene.person(), verb, phrase.words, tense, negated=negated))


def quantified(scene: Scene, negative: bool) -> Words:
    """ "No dog has ever slept here" or "Every dog has already slept": the adverb follows the quantifier."""
    noun = scene.one(scene.persons)
    subject = noun_phrase("no" if negative else scene.one(("every", "each")), noun, "singular")
    clause = scene.clause(subject, tense="perfect", adverb="ever" if negative else "already")
    return stated(clause)


def reflexive(scene: Scene) -> Words:
    """A person who acts on himself, herself or themselves."""
    subject = scene.person(modifier=0.0)
    while subject.reference == "neuter":
        subject = scene.person(modifier=0.0)
    complement = (lexicon.REFLEXIVE_PRONOUNS[subject.reference], *scene.ending())
    negated = scene.rng.random() < 0.1
    return stated(Clause(subject, scene.one(lexicon.REFLEXIVE), complement, scene.tense(), negated=negated))


def description(scene: Scene) -> Words:
    """Somebody is tired, something is red."""
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
    """There is a dog in the garden."""
    number = scene.number()
    determiners = ("a", "a", "no") if number == "singular" else ("many", "few", "some", "no", "two", "three")
    noun = scene.one((*scene.animals, *scene.things, *scene.persons))
    phrase = noun_phrase(scene.one(determiners), noun, number, pick_adjectives(scene.rng))
    return sentence(["there", "are" if number == "plural" else "is", *phrase.words, *scene.place()])


def report(scene: Scene) -> Words:
    """Somebody says or thinks that something is so."""
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
    """Two or three sentences about one person: the name first, then pronouns of its gender."""
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
    """A thing and then the same thing by the name of its category: knowledge about words.

    The verbs take every category, so that only the noun tells which category word follows.
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
    """Something and then the part of it that follows: without the place, without who said it, or as an answer."""
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
    """A hammer is a tool; hammers are tools; every hammer is a tool."""
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
    """A yes-no question with the auxiliary before the subject, sometimes with ever or any."""
    if scene.rng.random() < 0.2:
        noun = scene.one((*scene.things, *scene.animals))
        phrase = noun_phrase("any", noun, "plural")
        return stated(Clause(scene.person(), pick_verb(scene.rng, noun), phrase.words, "past", question=True))
    adverb = "ever" if scene.rng.random() < 0.2 else ""
    return stated(scene.clause(question=True, adverb=adverb))


def where_question(scene: Scene) -> list[Words]:
    """Where is the dog? It is near the river."""
    number = scene.number()
    noun = scene.one((*scene.things, *scene.animals))
    phrase = noun_phrase("the", noun, number)
    copula, pronoun = ("are", "they") if number == "plural" else ("is", "it")
    return [sentence(["where", copula, *phrase.words], "?"), sentence([pronoun, copula, *scene.place()])]
