"""Minimal pairs in BLiMP's format (Warstadt et al. 2020): a sentence of the grammar, and it with one broken constraint.

Pairs come as mirrored twins: where one pair has x in the good and y in the bad sentence, its twin has y in the good and
x in the bad one. A judge that knows only how frequent or how long words are is right in exactly half of the pairs.
"""

import random
from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from hatchery.embedded import lexicon
from hatchery.embedded.grammar import (
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
    text_of,
)
from hatchery.embedded.lexicon import Noun, Number
from hatchery.embedded.scenes import Scene, Words, fitting_tense, pick_verb
from hatchery.errors import ConfigError

_REGULAR = tuple(noun for noun in (*lexicon.PERSONS, *lexicon.ANIMALS, *lexicon.OBJECTS) if not noun.irregular)
_IRREGULAR = tuple(noun for noun in (*lexicon.PERSONS, *lexicon.ANIMALS, *lexicon.OBJECTS) if noun.irregular)
_REGULAR_ANIMATE = tuple(noun for noun in (*lexicon.PERSONS, *lexicon.ANIMALS) if not noun.irregular)
_IRREGULAR_ANIMATE = tuple(noun for noun in (*lexicon.PERSONS, *lexicon.ANIMALS) if noun.irregular)
_GENDERED = tuple(noun for noun in lexicon.PERSONS if noun.gender != "neuter")
_MASCULINE = tuple(noun for noun in _GENDERED if noun.gender == "masculine")
_FEMININE = tuple(noun for noun in _GENDERED if noun.gender == "feminine")
_DISTINCT = tuple(verb for verb in lexicon.TRANSITIVE if verb.has_distinct_participle)
_PLURAL_OF = {"this": "these", "that": "those"}
_QUANTIFIERS: dict[Number, tuple[str, ...]] = {
    "singular": ("every", "each"),
    "plural": ("all", "many", "few", "several"),
}


@dataclass(frozen=True)
class Pair:
    """A grammatical sentence and its broken counterpart, as words."""

    good: Words
    bad: Words


Twins = tuple[Pair, Pair]
Draw = Callable[[random.Random], Twins]
Broken = Literal["first", "second"]
Form = Literal["past", "participle"]


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


def determiner_noun(nouns: tuple[Noun, ...], adjective: bool, broken: Broken) -> Draw:
    """ "Tom found this book / books" (the second is broken) or "Tom found this / these book" (the first)."""

    def draw(rng: random.Random) -> Twins:
        scene = Scene.draw(rng)
        noun, demonstrative = choose(rng, nouns), choose(rng, ("this", "that"))
        adjectives = (choose(rng, lexicon.SIZES + lexicon.QUALITIES),) if adjective else ()
        subject, verb = scene.name(), pick_verb(rng, noun)
        tense = fitting_tense(verb, scene.tense())
        place = scene.place() if rng.random() < 0.5 else ()
        words = {"singular": demonstrative, "plural": _PLURAL_OF[demonstrative]}

        def whole(determiner: Number, number: Number) -> Words:
            phrase = noun_phrase(words[determiner], noun, determiner, adjectives, place, number)
            return sentence(realise(Clause(subject, verb, phrase.words, tense)))

        return crossed(whole, lexicon.NUMBERS, lexicon.NUMBERS, broken)

    return draw


def subject_verb(nouns: tuple[Noun, ...], distractor: bool = False, question: bool = False) -> Draw:
    """ "The dogs sleep / sleeps"; with a distractor "The dogs near the box sleep"; as a question "Do / Does"."""

    def draw(rng: random.Random) -> Twins:
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
            return sentence(realise(replace(model, subject=subject, agreement=agreement)), "?" if question else ".")

        return crossed(whole, lexicon.NUMBERS, lexicon.NUMBERS)

    return draw


def anaphor_number(rng: random.Random) -> Twins:
    """ "The boys admired themselves / himself"."""
    noun, verb = choose(rng, _GENDERED), choose(rng, lexicon.REFLEXIVE)
    tense, adjectives = choose(rng, UNINFLECTED_TENSES), pick_adjectives(rng)
    ending = Scene.draw(rng).place()

    def whole(number: Number, pronoun: str) -> Words:
        return sentence(realise(Clause(noun_phrase("the", noun, number, adjectives), verb, (pronoun, *ending), tense)))

    return crossed(
        whole, lexicon.NUMBERS, (lexicon.REFLEXIVE_PRONOUNS[noun.gender], lexicon.REFLEXIVE_PRONOUNS["plural"])
    )


def anaphor_gender(rng: random.Random) -> Twins:
    """ "The queen admired herself / himself", with nouns and names."""
    verb, tense = choose(rng, lexicon.REFLEXIVE), Scene.draw(rng).tense()
    ending = Scene.draw(rng).place()
    if rng.random() < 0.5:
        he, she = _name(rng, "masculine"), _name(rng, "feminine")
    else:
        he, she = (noun_phrase("the", choose(rng, nouns), "singular") for nouns in (_MASCULINE, _FEMININE))

    def whole(subject: NounPhrase, pronoun: str) -> Words:
        return sentence(realise(Clause(subject, verb, (pronoun, *ending), tense)))

    return crossed(whole, (he, she), ("himself", "herself"))


def _name(rng: random.Random, gender: str) -> NounPhrase:
    return NounPhrase((choose(rng, [name.word for name in lexicon.NAMES if name.gender == gender]),), "singular")


def embedded_reflexive(rng: random.Random) -> Twins:
    """ "Mary says that Tom blames himself / herself": the nearest subject decides, not the first one."""
    outer_verb, verb = choose(rng, lexicon.CLAUSAL), choose(rng, lexicon.REFLEXIVE)
    outer_tense, tense = choose(rng, EVENT_TENSES), Scene.draw(rng).tense()
    man, woman = _name(rng, "masculine"), _name(rng, "feminine")

    def whole(inner: NounPhrase, pronoun: str) -> Words:
        body = realise(Clause(inner, verb, (pronoun,), tense))
        outer = woman if inner is man else man
        return sentence(realise(Clause(outer, outer_verb, ("that", *body), outer_tense)))

    return crossed(whole, (man, woman), ("himself", "herself"))


def past_participle(rng: random.Random) -> Twins:
    """ "Tom has eaten / ate the pear" and "Tom ate / eaten the pear"."""
    scene = Scene.draw(rng)
    verb = choose(rng, _DISTINCT)
    noun = choose(
        rng, [noun for noun in (*lexicon.OBJECTS, *lexicon.ANIMALS, *lexicon.PERSONS) if noun.category in verb.objects]
    )
    clause = Clause(scene.name(), verb, scene.phrase(noun).words)

    def whole(tense: Tense, form: Form) -> Words:
        return sentence(realise(replace(clause, tense=tense, verb_form=form)))

    tenses: tuple[Tense, Tense] = ("perfect", "past")
    forms: tuple[Form, Form] = ("participle", "past")
    return crossed(whole, tenses, forms)


def polarity_adverb(broken: Broken) -> Draw:
    """ "No boy has ever slept" against "Every ... ever" (the first is broken) or "No ... already" (the second)."""

    def draw(rng: random.Random) -> Twins:
        scene = Scene.draw(rng)
        noun, positive = choose(rng, lexicon.PERSONS), choose(rng, ("every", "each"))
        verb, ending = choose(rng, lexicon.INTRANSITIVE), scene.place()

        def whole(determiner: str, adverb: str) -> Words:
            subject = noun_phrase(determiner, noun, "singular")
            return sentence(realise(Clause(subject, verb, ending, "perfect", adverb=adverb)))

        return crossed(whole, ("no", positive), ("ever", "already"), broken)

    return draw


def any_or_some(rng: random.Random) -> Twins:
    """ "Tom did not see any / some dogs" and "Tom saw some / any dogs"."""
    scene = Scene.draw(rng)
    noun = choose(rng, (*lexicon.OBJECTS, *lexicon.ANIMALS))
    verb, subject = pick_verb(rng, noun), scene.name()
    tense = choose(rng, EVENT_TENSES[:3])

    def whole(negated: bool, determiner: str) -> Words:
        phrase = noun_phrase(determiner, noun, "plural")
        return sentence(realise(Clause(subject, verb, phrase.words, tense, negated=negated)))

    return crossed(whole, (True, False), ("any", "some"))


def quantifier_noun(broken: Broken) -> Draw:
    """ "Every dog / dogs ran away" (the second is broken) or "Every / All dog ran" (the first), in the past tense."""

    def draw(rng: random.Random) -> Twins:
        scene = Scene.draw(rng)
        noun = choose(rng, (*lexicon.PERSONS, *lexicon.ANIMALS))
        words = {number: choose(rng, _QUANTIFIERS[number]) for number in lexicon.NUMBERS}
        tense = choose(rng, UNINFLECTED_TENSES)
        model = scene.clause(scene.name(), animal=noun.category == "animal", tense=tense)

        def whole(quantifier: Number, number: Number) -> Words:
            phrase = noun_phrase(words[quantifier], noun, quantifier, noun_number=number)
            return sentence(realise(replace(model, subject=phrase)))

        return crossed(whole, lexicon.NUMBERS, lexicon.NUMBERS, broken)

    return draw


def there_agreement(rng: random.Random) -> Twins:
    """ "There is / are a dog near the river"."""
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


_PARADIGMS: dict[tuple[str, str], dict[str, Draw]] = {
    ("morphology", "anaphor_agreement"): {
        "anaphor_gender_agreement": anaphor_gender,
        "anaphor_number_agreement": anaphor_number,
    },
    ("syntax_semantics", "binding"): {"reflexive_in_embedded_clause": embedded_reflexive},
    ("morphology", "determiner_noun_agreement"): {
        "determiner_noun_agreement_1": determiner_noun(_REGULAR, False, "second"),
        "determiner_noun_agreement_2": determiner_noun(_REGULAR, False, "first"),
        "determiner_noun_agreement_irregular_1": determiner_noun(_IRREGULAR, False, "second"),
        "determiner_noun_agreement_irregular_2": determiner_noun(_IRREGULAR, False, "first"),
        "determiner_noun_agreement_with_adjective_1": determiner_noun(_REGULAR, True, "second"),
        "determiner_noun_agreement_with_adj_2": determiner_noun(_REGULAR, True, "first"),
    },
    ("morphology", "subject_verb_agreement"): {
        "regular_plural_subject_verb_agreement_1": subject_verb(_REGULAR_ANIMATE),
        "irregular_plural_subject_verb_agreement_1": subject_verb(_IRREGULAR_ANIMATE),
        "distractor_agreement_prepositional_phrase": subject_verb(_REGULAR_ANIMATE, distractor=True),
        "question_auxiliary_agreement": subject_verb(_REGULAR_ANIMATE, question=True),
    },
    ("morphology", "irregular_forms"): {"irregular_past_participle_verbs": past_participle},
    ("semantics", "npi_licensing"): {
        "npi_ever_licensor": polarity_adverb("first"),
        "npi_ever_adverb": polarity_adverb("second"),
        "npi_any_some": any_or_some,
    },
    ("semantics", "quantifiers"): {
        "quantifier_noun_agreement_1": quantifier_noun("second"),
        "quantifier_noun_agreement_2": quantifier_noun("first"),
    },
    ("syntax", "quantifiers"): {"existential_there_agreement": there_agreement},
}
PARADIGMS = tuple(
    Paradigm(uid, field, term, draw) for (field, term), draws in _PARADIGMS.items() for uid, draw in draws.items()
)


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


def blimp_rows(paradigm: Paradigm, pairs: list[Pair]) -> list[dict[str, Any]]:
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
