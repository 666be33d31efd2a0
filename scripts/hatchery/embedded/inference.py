"""Inference tasks in the shapes of MNLI, RTE, QNLI and CommitmentBank: does one sentence follow from another?

The same words stand under all labels, and only how premise and hypothesis relate decides. The one exception is that of
CommitmentBank itself: verbs such as "hope" make the premise neutral.
"""

import random
from collections.abc import Callable
from dataclasses import replace

from hatchery.embedded.facts import (
    ADJECTIVES,
    CLASSIFIED,
    PERSON_VERBS,
    THINGS,
    ask,
    draw_names,
    draw_place,
    draw_verb,
    past,
    tell,
    the,
)
from hatchery.embedded.grammar import Clause, choose, noun_phrase, realise
from hatchery.embedded.lexicon import (
    CLAUSAL,
    HYPERNYMS,
    INTRANSITIVE,
    NUMBERS,
    PERSONS,
    TIME_ADVERBS,
    VERBS,
    Noun,
    Number,
)
from hatchery.embedded.rows import Row, RowTask
from hatchery.embedded.scenes import Words

# (premise negated, premise about the narrower noun, hypothesis negated); the hypothesis has the other noun.
_MONOTONE: dict[int, tuple[tuple[bool, bool, bool], ...]] = {
    0: ((False, True, False), (True, False, True)),
    1: ((False, False, False), (True, True, True), (False, False, True), (True, True, False)),
    2: ((False, True, True), (True, False, False)),
}
# "Helen knew that Tom slept" says that he did; "Helen hoped that Tom slept" does not.
FACTIVE = tuple(verb for verb in VERBS if verb.base in {"know", "forget", "see"})
_MANNERS = tuple(word for word in TIME_ADVERBS if word.endswith("ly"))


def three_way_rows(number: Number) -> Callable[[random.Random, int], list[Row]]:
    """MNLI: "Tom found a hammer" entails "Tom found a tool" (0); the other way round it is neutral (1); negated, it
    contradicts (2), and negation turns the direction of entailment round.

    Solved by the categories of nouns, by the polarity of both sentences and by the direction, all together.
    """

    def make(rng: random.Random, group: int) -> list[Row]:
        rows = []
        for label, kinds in _MONOTONE.items():
            premise_negated, narrow, negated = kinds[group % len(kinds)]
            noun = choose(rng, CLASSIFIED)
            subject, verb, place = draw_names(rng, 1)[0], draw_verb(rng), draw_place(rng)
            nouns = (noun, HYPERNYMS[noun.category]) if narrow else (HYPERNYMS[noun.category], noun)
            texts = [
                tell(past(subject, verb, _indefinite(each, number, denied), place, negated=denied))
                for each, denied in zip(nouns, (premise_negated, negated), strict=True)
            ]
            rows.append({"premise": texts[0], "hypothesis": texts[1], "label": label})
        return rows

    return make


def _indefinite(noun: Noun, number: Number, negated: bool) -> Words:
    determiner = "a" if number == "singular" else "any" if negated else "some"
    return noun_phrase(determiner, noun, number).words


def two_way_rows(rng: random.Random, group: int) -> list[Row]:
    """RTE: "Every boy slept by the lake" entails "Every boy slept" (0), with "No boy" it is the other way round (1).

    Solved by the quantifier and by which of the sentences is the longer one; either alone tells nothing.
    """
    rows = []
    for label in (0, 1):
        upward = rng.random() < 0.5
        determiner = choose(rng, ("every", "each")) if upward else "no"
        subject = noun_phrase(determiner, choose(rng, PERSONS), "singular", (choose(rng, ADJECTIVES),))
        short = past(subject, choose(rng, INTRANSITIVE))
        long = replace(short, complement=draw_place(rng))
        from_long = upward == (label == 0)
        premise, hypothesis = (long, short) if from_long else (short, long)
        rows.append({"sentence1": tell(premise), "sentence2": tell(hypothesis), "label": label})
    return rows


def answering_rows(rng: random.Random, group: int) -> list[Row]:
    """QNLI: "Where did Tom see the dog?" is answered (0) by "... near the lake", not (1) by "... quietly".

    Solved by the question word together with the kind of the sentence's last phrase.
    """
    rows = []
    for label in (0, 1):
        (subject,), verb, thing = draw_names(rng, 1), draw_verb(rng), the(choose(rng, THINGS), choose(rng, NUMBERS))
        asks_place = rng.random() < 0.5
        says_place = asks_place == (label == 0)
        ending = draw_place(rng) if says_place else (choose(rng, _MANNERS),)
        question = ask(past(subject, verb, thing), "where" if asks_place else "how")
        rows.append({"question": question, "sentence": tell(past(subject, verb, thing, ending)), "label": label})
    return rows


def commitment_rows(rng: random.Random, group: int) -> list[Row]:
    """CommitmentBank: "Helen knew that Tom did not thank Jane" and "Tom thanked Jane": 0 entailment, 1 contradiction,
    2 neutral, the order of that data set.

    Solved by whether the outer verb presupposes its clause, and by the polarities of clause and hypothesis.
    """
    rows = []
    for label in (0, 1, 2):
        speaker, subject, person = draw_names(rng, 3)
        verb, place = choose(rng, PERSON_VERBS), draw_place(rng)
        denied = bool(group % 2)
        claimed = denied if label == 0 else not denied if label == 1 else rng.random() < 0.5
        outer = choose(rng, CLAUSAL if label == 2 else FACTIVE)
        inner = past(subject, verb, person.words, place, negated=denied)
        premise = Clause(speaker, outer, ("that", *realise(inner)), "past")
        rows.append({"premise": tell(premise), "hypothesis": tell(replace(inner, negated=claimed)), "label": label})
    return rows


THREE_WAY = RowTask(three_way_rows("singular"), ("premise",))
# The mismatched genre speaks of several things, as no training row does.
THREE_WAY_MISMATCHED = RowTask(three_way_rows("plural"), ("premise",))
TWO_WAY = RowTask(two_way_rows, ("sentence1",))
ANSWERING = RowTask(answering_rows, ("sentence",))
COMMITMENT = RowTask(commitment_rows, ("premise",))
