"""Inference in the shapes of MNLI, RTE, QNLI, CommitmentBank and HANS: does one sentence follow from another?

The same words stand under all labels, and only how premise and hypothesis relate decides. The one exception is that of
CommitmentBank itself: verbs such as "hope" make the premise neutral. HANS (evaluation.md 7) has inferences that look
right because the words of the hypothesis all stand in the premise: in any order (lexical overlap), side by side
(subsequence), or as a clause of their own (constituent). Each has three kinds of pairs where that is right (label 0)
and three where it is wrong (1).
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

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
from hatchery.embedded.grammar import Clause, NounPhrase, choose, noun_phrase, realise, sentence, text_of
from hatchery.embedded.lexicon import (
    ANIMAL_VERBS,
    CLAUSAL,
    HYPERNYMS,
    INTRANSITIVE,
    NUMBERS,
    PERSONS,
    PREPOSITIONS,
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


_KNOWING = tuple(verb for verb in VERBS if verb.base in {"know", "forget", "see"})


@dataclass(frozen=True)
class Subcase:
    """One kind of pair; `premise` and `hypothesis` are patterns of blank-separated slots and words.

    Slots: A, B, C persons; V a verb between persons; S, T verbs without object; P a place; N a preposition; K a verb
    that presupposes its clause, H one that does not; Q an adjective, D plural persons.
    """

    heuristic: str
    name: str
    label: int
    premise: str
    hypothesis: str


SUBCASES = (
    Subcase("lexical_overlap", "le_conjunction", 0, "A V B and C P", "A V C P"),
    Subcase("lexical_overlap", "le_around_prepositional_phrase", 0, "A N B V C", "A V C"),
    Subcase("lexical_overlap", "le_around_relative_clause", 0, "A that V B S P", "A S P"),
    Subcase("lexical_overlap", "ln_subject_object_swap", 1, "A V B P", "B V A P"),
    Subcase("lexical_overlap", "ln_relative_clause", 1, "A that V B S P", "B V A"),
    Subcase("lexical_overlap", "ln_conjunction", 1, "A and B V C P", "A V B P"),
    Subcase("subsequence", "se_conjunction", 0, "A and B V C P", "B V C P"),
    Subcase("subsequence", "se_adjective", 0, "Q D V A P", "D V A P"),
    Subcase("subsequence", "se_PP_on_obj", 0, "A V B N C", "A V B"),
    Subcase("subsequence", "sn_PP_on_subject", 1, "A N B V C", "B V C"),
    Subcase("subsequence", "sn_relative_clause_on_subject", 1, "A that V B S P", "B S P"),
    Subcase("subsequence", "sn_NP/S", 1, "A K B S P", "A K B"),
    Subcase("constituent", "ce_embedded_under_verb", 0, "A K that B S P", "B S P"),
    Subcase("constituent", "ce_conjunction", 0, "A S P , and B V C", "B V C"),
    Subcase("constituent", "ce_after_because_clause", 0, "because A V B , C S P", "A V B"),
    Subcase("constituent", "cn_embedded_under_verb", 1, "A H that B S P", "B S P"),
    Subcase("constituent", "cn_disjunction", 1, "A S P , or B V C", "B V C"),
    Subcase("constituent", "cn_embedded_under_if", 1, "if A V B , C S P", "A V B"),
)


def _person(rng: random.Random, name: NounPhrase) -> Words:
    return name.words if rng.random() < 0.4 else noun_phrase("the", choose(rng, PERSONS), "singular").words


def _slots(rng: random.Random) -> dict[str, Words]:
    """Material for every slot, no two persons alike."""
    while True:
        persons = [_person(rng, name) for name in draw_names(rng, 3)]
        if len(set(persons)) == len(persons):
            break
    used = {words[-1] for words in persons}
    plural = choose(rng, [noun.plural for noun in PERSONS if noun.singular not in used])
    return {
        **dict(zip("ABC", persons, strict=True)),
        "V": (choose(rng, PERSON_VERBS).past,),
        "S": (choose(rng, ANIMAL_VERBS).past,),
        "P": draw_place(rng),
        "N": (choose(rng, PREPOSITIONS),),
        "K": (choose(rng, _KNOWING).past,),
        "H": (choose(rng, CLAUSAL).past,),
        "Q": (choose(rng, ADJECTIVES),),
        "D": (plural,),
    }


def _filled(pattern: str, slots: dict[str, Words]) -> str:
    return text_of(sentence([word for piece in pattern.split() for word in slots.get(piece, (piece,))]))


def overlap_rows(rng: random.Random, group: int) -> list[Row]:
    """One row for every subcase, entailed and not entailed ones in equal numbers."""
    rows = []
    for number, subcase in enumerate(SUBCASES):
        slots = _slots(rng)
        rows.append(
            {
                "premise": _filled(subcase.premise, slots),
                "hypothesis": _filled(subcase.hypothesis, slots),
                "label": subcase.label,
                "heuristic": subcase.heuristic,
                "subcase": subcase.name,
                "template": f"temp{number + 1}",
            }
        )
    return rows


HANS = RowTask(overlap_rows, ("premise",))
