"""The grammar of the generated English: it produces grammatical noun phrases, verb groups and clauses.

An instance of `Clause` represents a clause, and `realise` converts this instance to words. Its fields `agreement`,
`noun_number` and `verb_form` normally follow from the subject and the tense. The bad sentence of a minimal pair
overrides one of these fields, and so violates one constraint.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from demo.lexicon import (
    PREPOSITIONS,
    QUALITIES,
    SIZES,
    Gender,
    Noun,
    Number,
    Verb,
)

Tense = Literal["present", "past", "perfect", "progressive", "modal"]
Item = TypeVar("Item")
AGREEING_TENSES: tuple[Tense, ...] = ("present", "progressive", "perfect")
UNINFLECTED_TENSES: tuple[Tense, ...] = ("past", "modal")
EVENT_TENSES: tuple[Tense, ...] = ("past", "past", "perfect", "present")

_DETERMINER_WEIGHTS: dict[Number, dict[str, int]] = {
    "singular": {"the": 8, "a": 7, "this": 3, "that": 3, "every": 2, "each": 2},
    "plural": {
        "the": 8,
        "some": 4,
        "these": 3,
        "those": 3,
        "all": 2,
        "many": 2,
        "few": 2,
        "two": 1,
        "three": 1,
        "several": 1,
    },
}
# Adverbs inside a sentence. "ever" is not listed, because it requires a negative clause or a question. "already" is not
# listed, because it requires an affirmative clause.
ADVERBS = ("always", "often", "sometimes")


def choose(rng: random.Random, items: Sequence[Item]) -> Item:
    """Return one item, with uniform probability.

    This function is faster than `random.choice`, and its result does not depend on Python's version.
    """
    return items[int(rng.random() * len(items))]


def choose_weighted(rng: random.Random, weights: dict[str, int]) -> str:
    """Return one key of `weights`, with a probability proportional to its weight."""
    point = rng.random() * sum(weights.values())
    for key, weight in weights.items():
        point -= weight
        if point < 0:
            return key
    return next(reversed(weights))


@dataclass(frozen=True)
class NounPhrase:
    """A noun phrase with the features on which agreement depends: number and gender."""

    words: tuple[str, ...]
    number: Number
    gender: Gender = "neuter"

    @property
    def reference(self) -> str:
        """Key of the pronouns that can refer to this phrase: "plural", or the gender of a singular phrase."""
        return "plural" if self.number == "plural" else self.gender


@dataclass(frozen=True)
class Clause:
    """A clause before agreement. If `agreement` is set, it replaces the number of the subject. If `verb_form` is set,
    it replaces the form that follows from the tense.
    """

    subject: NounPhrase
    verb: Verb
    complement: tuple[str, ...] = ()
    tense: Tense = "present"
    negated: bool = False
    question: bool = False
    adverb: str = ""
    contracted: bool = False
    agreement: Number | None = None
    verb_form: Literal["past", "participle"] | None = None


def noun_phrase(
    determiner: str,
    noun: Noun,
    number: Number,
    adjectives: Sequence[str] = (),
    modifier: Sequence[str] = (),
    noun_number: Number | None = None,
) -> NounPhrase:
    """Return a noun phrase of determiner, adjectives, noun and a final modifier such as "near the boxes".

    `number` determines agreement. If `noun_number` is set, only the noun has this number, which violates a constraint.
    """
    words = [*adjectives, noun.form(noun_number or number)]
    if determiner == "a" and words[0][0] in "aeiou":
        determiner = "an"
    if determiner:
        words.insert(0, determiner)
    return NounPhrase((*words, *modifier), number, noun.gender)


def pick_determiner(rng: random.Random, number: Number) -> str:
    """Return a random determiner that agrees with the number."""
    return choose_weighted(rng, _DETERMINER_WEIGHTS[number])


def pick_adjectives(rng: random.Random, probability: float = 0.3) -> tuple[str, ...]:
    """Return, with the given probability, one or two adjectives in their usual order; otherwise, return no
    adjective.
    """
    if rng.random() >= probability:
        return ()
    if rng.random() < 0.2:
        return (choose(rng, SIZES), choose(rng, QUALITIES))
    return (choose(rng, SIZES + QUALITIES),)


def pick_modifier(rng: random.Random, noun: Noun) -> tuple[str, ...]:
    """Return a prepositional phrase, whose noun is a distractor for agreement because its number is drawn
    independently.
    """
    number: Number = "plural" if rng.random() < 0.5 else "singular"
    determiner = "the" if rng.random() < 0.6 else pick_determiner(rng, number)
    return (choose(rng, PREPOSITIONS), *noun_phrase(determiner, noun, number).words)


def _verb_group(clause: Clause) -> list[str]:
    """Return the words of a clause's verb group; in a question, the first word is the auxiliary that precedes the
    subject.
    """
    verb, plural = clause.verb, (clause.agreement or clause.subject.number) == "plural"
    negation = ["n't" if clause.contracted else "not"] if clause.negated else []
    middle = [*negation, clause.adverb] if clause.adverb else negation
    match clause.tense:
        case "perfect":
            participle = verb.past if clause.verb_form == "past" else verb.participle
            return ["have" if plural else "has", *middle, participle]
        case "progressive":
            return ["are" if plural else "is", *middle, verb.progressive]
        case "modal":
            return ["did" if clause.question else "could", *middle, verb.base]
        case "past" if not (clause.negated or clause.question):
            return [*middle, verb.participle if clause.verb_form == "participle" else verb.past]
        case "past":
            return ["did", *middle, verb.base]
        case _ if clause.negated or clause.question:
            return ["do" if plural else "does", *middle, verb.base]
        case _:
            return [*middle, verb.base if plural else verb.third]


def realise(clause: Clause) -> list[str]:
    """Return the words of a clause without the final mark; in a question, the auxiliary precedes the subject."""
    group = _verb_group(clause)
    if clause.question:
        inverted = 2 if group[1:2] == ["n't"] else 1
        return [*group[:inverted], *clause.subject.words, *group[inverted:], *clause.complement]
    return [*clause.subject.words, *group, *clause.complement]


def sentence(words: Sequence[str], mark: str = ".") -> tuple[str, ...]:
    """Return a sentence: the words, of which the first is capitalised, and the final mark as a separate word."""
    first, *rest = words
    return (first[0].upper() + first[1:], *rest, mark)


def stated(clause: Clause) -> tuple[str, ...]:
    """Return the clause as a complete sentence with a full stop or a question mark."""
    return sentence(realise(clause), "?" if clause.question else ".")


_GLUED_LEFT = frozenset({".", ",", "?", "!", ":", ";", "n't", "'s", "”"})


def text_of(words: Sequence[str]) -> str:
    """Return the sentence as ordinary text: there is no space before punctuation marks and clitics, and no space inside
    “ ”.
    """
    pieces: list[str] = []
    space = ""
    for word in words:
        pieces.append(word if word in _GLUED_LEFT else space + word)
        space = "" if word == "“" else " "
    return "".join(pieces)
