"""Inference in the shapes of MNLI, RTE, QNLI, CommitmentBank and HANS: does one sentence follow from another?

The same words stand under all labels, and only how premise and hypothesis relate decides. The one exception is that of
CommitmentBank itself: verbs such as "hope" make the premise neutral. HANS (docs/papers/ltg-bert.md, "HANS") has
inferences that look right because the words of the hypothesis all stand in the premise: in any order (lexical overlap),
side by side (subsequence), or as a clause of their own (constituent). Each has three kinds of pairs where that is right
(label 0) and three where it is wrong (1).
"""

from demo import lexicon
from demo.lexicon import NAMES, NUMBERS, PERSONS
from demo.rows import (
    ACTED,
    ADJECTIVES,
    CLASSIFIED,
    FACTIVE,
    PERSON_VERBS,
    THINGS,
    Draw,
    RowTask,
    TaskRow,
    grouped,
    labelled,
    place,
)
from demo.scenes import GENERAL_VERBS

_MANNERS = tuple(adverb for adverb in lexicon.TIME_ADVERBS if adverb.endswith("ly"))
# (premise negated, premise about the narrower noun, hypothesis negated); the hypothesis has the other noun.
_MONOTONE: dict[int, tuple[tuple[bool, bool, bool], ...]] = {
    0: ((False, True, False), (True, False, True)),
    1: ((False, False, False), (True, True, True), (False, False, True), (True, True, False)),
    2: ((False, True, True), (True, False, False)),
}


def _mnli(objects: tuple[str, str], number: str) -> RowTask:
    @labelled("premise", labels=3)
    def mnli(draw: Draw, label: int, group: int) -> TaskRow:
        """ "Tom found a hammer" entails "Tom found a tool" (0); the other way round it is neutral (1); negated, it
        contradicts (2), and negation turns the direction of entailment round.

        Solved by the categories of nouns, by the polarity of both sentences and by the direction, all together.
        """
        denied, narrow, denied_too = _MONOTONE[label][group % len(_MONOTONE[label])]
        draw(N=CLASSIFIED, A_=NAMES, V=GENERAL_VERBS, P=place)
        nouns = (f"N.hypernym.{number}", f"N.{number}")
        return draw.texts(
            premise=f"A {ACTED[denied]} {objects[denied]} {nouns[narrow]} P",
            hypothesis=f"A {ACTED[denied_too]} {objects[denied_too]} {nouns[not narrow]} P",
        )

    return mnli


MNLI = _mnli(("a", "a"), "singular")
# The mismatched genre speaks of several things, as no training row does.
MNLI_MISMATCHED = _mnli(("some", "any"), "plural")


@labelled("sentence1")
def rte(draw: Draw, label: int, group: int) -> TaskRow:
    """ "Every boy slept by the lake" entails "Every boy slept" (0), with "No boy" it is the other way round (1).

    Solved by the quantifier and by which of the sentences is the longer one; either alone tells nothing.
    """
    upward = draw.coin()
    draw(D=("every", "each") if upward else "no", N=PERSONS, Q=ADJECTIVES, V=lexicon.INTRANSITIVE, P=place)
    one, other = ("D Q N V P", "D Q N V") if upward == (label == 0) else ("D Q N V", "D Q N V P")
    return draw.texts(sentence1=one, sentence2=other)


@labelled("sentence")
def qnli(draw: Draw, label: int, group: int) -> TaskRow:
    """ "Where did Tom see the dog?" is answered (0) by "... near the lake", not (1) by "... quietly".

    Solved by the question word together with the kind of the sentence's last phrase.
    """
    draw(A_=NAMES, V=GENERAL_VERBS, T=THINGS, n=NUMBERS, W=("where", "how"))
    draw(P=place if (draw.slots["W"] == "where") == (label == 0) else _MANNERS)
    return draw.texts(question="W did A V.base the T.n ?", sentence="A V the T.n P")


@labelled("premise", labels=3)
def cb(draw: Draw, label: int, group: int) -> TaskRow:
    """ "Helen knew that Tom did not thank Jane" and "Tom thanked Jane": 0 entailment, 1 contradiction, 2 neutral, the
    order of that data set.

    Solved by whether the outer verb presupposes its clause, and by the polarities of clause and hypothesis.
    """
    draw(A_B_C=NAMES, V=PERSON_VERBS, P=place)
    denied = group % 2
    claimed = draw.coin() if label == 2 else (denied, 1 - denied)[label]
    draw(S=lexicon.CLAUSAL if label == 2 else FACTIVE)
    return draw.texts(premise=f"A S that B {ACTED[denied]} C P", hypothesis=f"B {ACTED[claimed]} C P")


# Heuristic, subcase and label; premise and hypothesis as patterns. Slots: A, B, C persons; V a verb between persons;
# S a verb without object; P a place; N a preposition; K a verb that presupposes its clause, H one that does not;
# Q an adjective, D a person.
SUBCASES = (
    ("lexical_overlap", "le_conjunction", 0, "A V B and C P", "A V C P"),
    ("lexical_overlap", "le_around_prepositional_phrase", 0, "A N B V C", "A V C"),
    ("lexical_overlap", "le_around_relative_clause", 0, "A that V B S P", "A S P"),
    ("lexical_overlap", "ln_subject_object_swap", 1, "A V B P", "B V A P"),
    ("lexical_overlap", "ln_relative_clause", 1, "A that V B S P", "B V A"),
    ("lexical_overlap", "ln_conjunction", 1, "A and B V C P", "A V B P"),
    ("subsequence", "se_conjunction", 0, "A and B V C P", "B V C P"),
    ("subsequence", "se_adjective", 0, "Q D.plural V A P", "D.plural V A P"),
    ("subsequence", "se_PP_on_obj", 0, "A V B N C", "A V B"),
    ("subsequence", "sn_PP_on_subject", 1, "A N B V C", "B V C"),
    ("subsequence", "sn_relative_clause_on_subject", 1, "A that V B S P", "B S P"),
    ("subsequence", "sn_NP/S", 1, "A K B S P", "A K B"),
    ("constituent", "ce_embedded_under_verb", 0, "A K that B S P", "B S P"),
    ("constituent", "ce_conjunction", 0, "A S P , and B V C", "B V C"),
    ("constituent", "ce_after_because_clause", 0, "because A V B , C S P", "A V B"),
    ("constituent", "cn_embedded_under_verb", 1, "A H that B S P", "B S P"),
    ("constituent", "cn_disjunction", 1, "A S P , or B V C", "B V C"),
    ("constituent", "cn_embedded_under_if", 1, "if A V B , C S P", "A V B"),
)


def _persons(draw: Draw) -> list[str]:
    """Three names and persons, no two alike."""
    while True:
        names = draw.some(NAMES, 3)
        persons = [name.word if draw.rng.random() < 0.4 else f"the {draw.one(PERSONS)}" for name in names]
        if len(set(persons)) == len(persons):
            return persons


@grouped("premise", numbers=False)
def hans(draw: Draw, group: int) -> list[TaskRow]:
    """One row for every subcase, entailed and not entailed ones in equal numbers."""
    rows = []
    for number, (heuristic, name, label, premise, hypothesis) in enumerate(SUBCASES, start=1):
        persons = _persons(draw)
        draw.slots = dict(zip("ABC", persons, strict=True))
        others = [noun for noun in PERSONS if f"the {noun}" not in persons]
        draw(D=others, V=PERSON_VERBS, S=lexicon.ANIMAL_VERBS, P=place, N=lexicon.PREPOSITIONS)
        draw(K=FACTIVE, H=lexicon.CLAUSAL, Q=ADJECTIVES)
        texts = draw.texts(premise=premise, hypothesis=hypothesis)
        rows.append(texts | {"label": label, "heuristic": heuristic, "subcase": name, "template": f"temp{number}"})
    return rows
