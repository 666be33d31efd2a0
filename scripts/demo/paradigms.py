"""Paradigms of minimal pairs, each with the violated constraint, the affected words, and the published name of its
phenomenon.
"""

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal

from demo import lexicon
from demo.grammar import (
    AGREEING_TENSES,
    EVENT_TENSES,
    UNINFLECTED_TENSES,
    Clause,
    NounPhrase,
    Tense,
    choose,
    noun_phrase,
    pick_adjectives,
    realise,
    sentence,
    stated,
)
from demo.lexicon import Noun, Number, Verb
from demo.rows import Broken, Draw, Paradigm, Twins, crossed, place
from demo.scenes import Scene, Words, fitting_tense, named, pick_verb

Form = Literal["past", "participle"]
_ANIMATE = (*lexicon.PERSONS, *lexicon.ANIMALS)
_REGULAR_ANIMATE = tuple(noun for noun in _ANIMATE if not noun.irregular)
_IRREGULAR_ANIMATE = tuple(noun for noun in _ANIMATE if noun.irregular)
_REGULAR = (*_REGULAR_ANIMATE, *(noun for noun in lexicon.OBJECTS if not noun.irregular))
_IRREGULAR = (*_IRREGULAR_ANIMATE, *(noun for noun in lexicon.OBJECTS if noun.irregular))
_GENDERED = tuple(noun for noun in lexicon.PERSONS if noun.gender != "neuter")
_MASCULINE, _FEMININE = (
    [noun for noun in lexicon.PERSONS if noun.gender == gender] for gender in ("masculine", "feminine")
)
_DISTINCT = tuple(verb for verb in lexicon.TRANSITIVE if verb.has_distinct_participle)
_PLURAL_OF = {"this": "these", "that": "those"}
_QUANTIFIERS: dict[Number, tuple[str, ...]] = {
    "singular": ("every", "each"),
    "plural": ("all", "many", "few", "several"),
}


def determiner_noun(rng: random.Random, nouns: tuple[Noun, ...], broken: Broken, adjective: bool = False) -> Twins:
    """Return two minimal pairs whose bad sentences violate the agreement of determiner and noun. The good sentence of
    one pair is singular ("Tom found this book"), and the good sentence of the other pair is plural ("Tom found these
    books").

    If `broken` is "second", the bad sentence of a pair has another form of the noun ("this books"); otherwise, it has
    another determiner ("these book").
    """
    scene = Scene.draw(rng)
    noun, demonstrative = choose(rng, nouns), choose(rng, ("this", "that"))
    adjectives = (choose(rng, lexicon.SIZES + lexicon.QUALITIES),) if adjective else ()
    subject, verb = scene.name(), pick_verb(rng, noun)
    tense = fitting_tense(verb, scene.tense())
    place = scene.place() if rng.random() < 0.5 else ()
    words = {"singular": demonstrative, "plural": _PLURAL_OF[demonstrative]}

    def whole(determiner: Number, number: Number) -> Words:
        phrase = noun_phrase(words[determiner], noun, determiner, adjectives, place, number)
        return stated(Clause(subject, verb, phrase.words, tense))

    return crossed(whole, lexicon.NUMBERS, lexicon.NUMBERS, broken)


def subject_verb(
    rng: random.Random, nouns: tuple[Noun, ...], distractor: bool = False, question: bool = False
) -> Twins:
    """Return two minimal pairs whose bad sentences violate the agreement of subject and verb: "The dogs sleep / sleeps"
    and "The dog sleeps / sleep".

    If `distractor` is true, a noun of the other number precedes the verb: "The dogs near the box sleep". If `question`
    is true, the auxiliary agrees: "Do / Does the dogs sleep?".
    """
    scene = Scene.draw(rng)
    noun, between = choose(rng, nouns), choose(rng, scene.things)
    adjectives = pick_adjectives(rng)
    preposition = choose(rng, ("near", "behind", "beside", "with"))
    tense = choose(rng, AGREEING_TENSES)
    model = scene.clause(scene.name(), animal=noun.category == "animal", tense=tense, question=question)

    def whole(number: Number, agreement: Number) -> Words:
        other: Number = "singular" if number == "plural" else "plural"
        modifier = (preposition, "the", between.form(other)) if distractor else ()
        subject = noun_phrase("the", noun, number, adjectives, modifier)
        return stated(replace(model, subject=subject, agreement=agreement))

    return crossed(whole, lexicon.NUMBERS, lexicon.NUMBERS)


def anaphor_number(rng: random.Random) -> Twins:
    """Return two minimal pairs in which the reflexive has the right or the wrong number: "The boys admired themselves /
    himself" and "The boy admired himself / themselves".
    """
    noun, verb = choose(rng, _GENDERED), choose(rng, lexicon.REFLEXIVE)
    tense, adjectives = choose(rng, UNINFLECTED_TENSES), pick_adjectives(rng)
    ending = Scene.draw(rng).place()

    def whole(number: Number, pronoun: str) -> Words:
        return stated(Clause(noun_phrase("the", noun, number, adjectives), verb, (pronoun, *ending), tense))

    return crossed(
        whole, lexicon.NUMBERS, (lexicon.REFLEXIVE_PRONOUNS[noun.gender], lexicon.REFLEXIVE_PRONOUNS["plural"])
    )


def anaphor_gender(rng: random.Random) -> Twins:
    """Return two minimal pairs in which the reflexive has the right or the wrong gender: "The queen admired herself /
    himself" and "The king admired himself / herself".
    """
    verb, tense = choose(rng, lexicon.REFLEXIVE), Scene.draw(rng).tense()
    ending = Scene.draw(rng).place()
    if rng.random() < 0.5:
        he, she = _name(rng, "masculine"), _name(rng, "feminine")
    else:
        he, she = (noun_phrase("the", choose(rng, nouns), "singular") for nouns in (_MASCULINE, _FEMININE))

    def whole(subject: NounPhrase, pronoun: str) -> Words:
        return stated(Clause(subject, verb, (pronoun, *ending), tense))

    return crossed(whole, (he, she), ("himself", "herself"))


def _name(rng: random.Random, gender: str) -> NounPhrase:
    return NounPhrase((choose(rng, [name.word for name in lexicon.NAMES if name.gender == gender]),), "singular")


def embedded_reflexive(rng: random.Random) -> Twins:
    """Return two minimal pairs: "Mary says that Tom blames himself / herself" and "Tom says that Mary blames herself /
    himself". The nearest subject determines the gender of the reflexive.
    """
    outer_verb, verb = choose(rng, lexicon.CLAUSAL), choose(rng, lexicon.REFLEXIVE)
    outer_tense, tense = choose(rng, EVENT_TENSES), Scene.draw(rng).tense()
    man, woman = _name(rng, "masculine"), _name(rng, "feminine")

    def whole(inner: NounPhrase, pronoun: str) -> Words:
        body = realise(Clause(inner, verb, (pronoun,), tense))
        outer = woman if inner is man else man
        return stated(Clause(outer, outer_verb, ("that", *body), outer_tense))

    return crossed(whole, (man, woman), ("himself", "herself"))


def past_participle(rng: random.Random) -> Twins:
    """Return two minimal pairs. In the bad sentence of one pair, the past tense replaces a participle: "Tom has eaten /
    ate the pear". In the bad sentence of the other pair, a participle replaces the past tense: "Tom ate / eaten the
    pear".
    """
    scene = Scene.draw(rng)
    verb = choose(rng, _DISTINCT)
    noun = choose(
        rng, [noun for noun in (*lexicon.OBJECTS, *lexicon.ANIMALS, *lexicon.PERSONS) if noun.category in verb.objects]
    )
    clause = Clause(scene.name(), verb, scene.phrase(noun).words)

    def whole(tense: Tense, form: Form) -> Words:
        return stated(replace(clause, tense=tense, verb_form=form))

    tenses: tuple[Tense, Tense] = ("perfect", "past")
    forms: tuple[Form, Form] = ("participle", "past")
    return crossed(whole, tenses, forms)


def polarity_adverb(rng: random.Random, broken: Broken) -> Twins:
    """Return two minimal pairs, with the good sentences "No boy has ever slept" and "Every boy has already slept".

    The bad sentence of the first pair has "Every" instead of "No" if `broken` is "first", and "already" instead of
    "ever" if `broken` is "second". In the second pair, the words change in the opposite direction.
    """
    scene = Scene.draw(rng)
    noun, positive = choose(rng, lexicon.PERSONS), choose(rng, ("every", "each"))
    verb, ending = choose(rng, lexicon.INTRANSITIVE), scene.place()

    def whole(determiner: str, adverb: str) -> Words:
        subject = noun_phrase(determiner, noun, "singular")
        return stated(Clause(subject, verb, ending, "perfect", adverb=adverb))

    return crossed(whole, ("no", positive), ("ever", "already"), broken)


def any_or_some(rng: random.Random) -> Twins:
    """Return two minimal pairs that exchange "any" and "some": "Tom did not see any / some dogs" and "Tom saw some /
    any dogs".
    """
    scene = Scene.draw(rng)
    noun = choose(rng, (*lexicon.OBJECTS, *lexicon.ANIMALS))
    verb, subject = pick_verb(rng, noun), scene.name()
    tense = choose(rng, EVENT_TENSES[:3])

    def whole(negated: bool, determiner: str) -> Words:
        phrase = noun_phrase(determiner, noun, "plural")
        return stated(Clause(subject, verb, phrase.words, tense, negated=negated))

    return crossed(whole, (True, False), ("any", "some"))


def quantifier_noun(rng: random.Random, broken: Broken) -> Twins:
    """Return two minimal pairs, with good sentences such as "Every dog ran" and "All dogs ran". The verb shows no
    number.

    The bad sentence of the first pair has "All" instead of "Every" if `broken` is "first", and "dogs" instead of "dog"
    if `broken` is "second". In the second pair, the words change in the opposite direction.
    """
    scene = Scene.draw(rng)
    noun = choose(rng, (*lexicon.PERSONS, *lexicon.ANIMALS))
    words = {number: choose(rng, _QUANTIFIERS[number]) for number in lexicon.NUMBERS}
    tense = choose(rng, UNINFLECTED_TENSES)
    model = scene.clause(scene.name(), animal=noun.category == "animal", tense=tense)

    def whole(quantifier: Number, number: Number) -> Words:
        phrase = noun_phrase(words[quantifier], noun, quantifier, noun_number=number)
        return stated(replace(model, subject=phrase))

    return crossed(whole, lexicon.NUMBERS, lexicon.NUMBERS, broken)


def there_agreement(rng: random.Random) -> Twins:
    """Return two minimal pairs with the right and the wrong copula: "There is / are a dog near the river" and "There
    are / is two dogs near the river".
    """
    scene = Scene.draw(rng)
    noun, adjectives, place = (
        choose(rng, (*lexicon.ANIMALS, *lexicon.OBJECTS, *lexicon.PERSONS)),
        pick_adjectives(rng),
        scene.place(),
    )
    plural = choose(rng, ("many", "few", "some", "two", "three"))

    def whole(number: Number, copula: str) -> Words:
        phrase = noun_phrase("a" if number == "singular" else plural, noun, number, adjectives)
        return sentence(["there", copula, *phrase.words, *place])

    return crossed(whole, lexicon.NUMBERS, ("is", "are"))


def object_or_none(rng: random.Random) -> Twins:
    """Return two minimal pairs that exchange a transitive and an intransitive verb: "Tom carried / slept the pear" and
    "Tom slept / carried by the lake".
    """
    noun = choose(rng, lexicon.OBJECTS)
    if rng.random() < 0.5:
        subject = named(rng.sample(lexicon.NAMES, 1)[0])
    else:
        subject = noun_phrase("the", choose(rng, lexicon.PERSONS), choose(rng, lexicon.NUMBERS))
    verb, tense = pick_verb(rng, noun), choose(rng, UNINFLECTED_TENSES)
    verbs = (verb, choose(rng, lexicon.INTRANSITIVE))
    complements = (noun_phrase("the", noun, choose(rng, lexicon.NUMBERS)).words, place(Draw(rng)))

    def whole(verb: Verb, complement: Words) -> Words:
        return stated(Clause(subject, verb, complement, tense))

    return crossed(whole, verbs, complements, broken="first")


_PARADIGMS: dict[tuple[str, str], dict[str, Callable[[random.Random], Twins]]] = {
    ("morphology", "anaphor_agreement"): {
        "anaphor_gender_agreement": anaphor_gender,
        "anaphor_number_agreement": anaphor_number,
    },
    ("syntax_semantics", "binding"): {"reflexive_in_embedded_clause": embedded_reflexive},
    ("morphology", "determiner_noun_agreement"): {
        "determiner_noun_agreement_1": partial(determiner_noun, nouns=_REGULAR, broken="second"),
        "determiner_noun_agreement_2": partial(determiner_noun, nouns=_REGULAR, broken="first"),
        "determiner_noun_agreement_irregular_1": partial(determiner_noun, nouns=_IRREGULAR, broken="second"),
        "determiner_noun_agreement_irregular_2": partial(determiner_noun, nouns=_IRREGULAR, broken="first"),
        "determiner_noun_agreement_with_adjective_1": partial(
            determiner_noun, nouns=_REGULAR, broken="second", adjective=True
        ),
        "determiner_noun_agreement_with_adj_2": partial(
            determiner_noun, nouns=_REGULAR, broken="first", adjective=True
        ),
    },
    ("morphology", "subject_verb_agreement"): {
        "regular_plural_subject_verb_agreement_1": partial(subject_verb, nouns=_REGULAR_ANIMATE),
        "irregular_plural_subject_verb_agreement_1": partial(subject_verb, nouns=_IRREGULAR_ANIMATE),
        "distractor_agreement_prepositional_phrase": partial(subject_verb, nouns=_REGULAR_ANIMATE, distractor=True),
        "question_auxiliary_agreement": partial(subject_verb, nouns=_REGULAR_ANIMATE, question=True),
    },
    ("morphology", "irregular_forms"): {"irregular_past_participle_verbs": past_participle},
    ("semantics", "npi_licensing"): {
        "npi_ever_licensor": partial(polarity_adverb, broken="first"),
        "npi_ever_adverb": partial(polarity_adverb, broken="second"),
        "npi_any_some": any_or_some,
    },
    ("semantics", "quantifiers"): {
        "quantifier_noun_agreement_1": partial(quantifier_noun, broken="second"),
        "quantifier_noun_agreement_2": partial(quantifier_noun, broken="first"),
    },
    ("syntax", "quantifiers"): {"existential_there_agreement": there_agreement},
}
PARADIGMS = tuple(
    Paradigm(uid, field, term, draw) for (field, term), draws in _PARADIGMS.items() for uid, draw in draws.items()
)
ARGUMENT_STRUCTURE = Paradigm("transitive_or_intransitive", "syntax", "argument_structure", object_or_none)
