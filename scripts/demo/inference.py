"""Inference tasks in the format of MNLI, RTE, QNLI, CommitmentBank and HANS.

The same words occur with all labels, so only the relation between premise and hypothesis predicts the label. There is
one exception, as in the original CommitmentBank: verbs such as "hope" make the label neutral. In HANS
(docs/papers/ltg-bert.md, "HANS"), all words of the hypothesis are in the premise: in any order (lexical overlap), as a
contiguous sequence (subsequence), or as a clause (constituent). For each of these heuristics, three templates have the
label 0 (entailment) and three have the label 1.
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
# For each label, variants of three facts: whether the premise is negated, whether the premise contains the specific
# noun, and whether the hypothesis is negated. The sentence without the specific noun contains the noun's hypernym.
_MONOTONE: dict[int, tuple[tuple[bool, bool, bool], ...]] = {
    0: ((False, True, False), (True, False, True)),
    1: ((False, False, False), (True, True, True), (False, False, True), (True, True, False)),
    2: ((False, True, True), (True, False, False)),
}


def _mnli(objects: tuple[str, str], number: str) -> RowTask:
    @labelled("premise", labels=3)
    def mnli(draw: Draw, label: int, group: int) -> TaskRow:
        """Return premise and hypothesis with the label 0 (entailment), 1 (neutral) or 2 (contradiction).

        "Tom found a hammer" entails "Tom found a tool". With premise and hypothesis exchanged, the label is neutral. If
        both sentences are negated, the entailment has the reverse direction. Solving the task requires the categories
        of nouns, the negations of both sentences, and the direction.
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
# The objects of mismatched validation rows are in the plural; no training row has such an object.
MNLI_MISMATCHED = _mnli(("some", "any"), "plural")


@labelled("sentence1")
def rte(draw: Draw, label: int, group: int) -> TaskRow:
    """Return a premise and a hypothesis such as "Every boy slept by the lake" and "Every boy slept" (label 0,
    entailment).

    With "No boy", the entailment has the reverse direction. Solving the task requires the quantifier and the relative
    length of the sentences.
    """
    upward = draw.coin()
    draw(D=("every", "each") if upward else "no", N=PERSONS, Q=ADJECTIVES, V=lexicon.INTRANSITIVE, P=place)
    one, other = ("D Q N V P", "D Q N V") if upward == (label == 0) else ("D Q N V", "D Q N V P")
    return draw.texts(sentence1=one, sentence2=other)


@labelled("sentence")
def qnli(draw: Draw, label: int, group: int) -> TaskRow:
    """Return a question, and a sentence that answers the question (label 0) or does not answer it (label 1).

    "... near the lake" answers "Where did Tom see the dog?", but "... quietly" does not. Solving the task requires the
    question word and the type of the last phrase.
    """
    draw(A_=NAMES, V=GENERAL_VERBS, T=THINGS, n=NUMBERS, W=("where", "how"))
    draw(P=place if (draw.slots["W"] == "where") == (label == 0) else _MANNERS)
    return draw.texts(question="W did A V.base the T.n ?", sentence="A V the T.n P")


@labelled("premise", labels=3)
def cb(draw: Draw, label: int, group: int) -> TaskRow:
    """Return a premise such as "Helen knew that Tom did not thank Jane" and a hypothesis such as "Tom thanked Jane".

    As in the original data set, the labels are 0 (entailment), 1 (contradiction) and 2 (neutral). Solving the task
    requires knowledge of whether the outer verb presupposes its clause, and a comparison of the negations in clause and
    hypothesis.
    """
    draw(A_B_C=NAMES, V=PERSON_VERBS, P=place)
    denied = group % 2
    claimed = draw.coin() if label == 2 else (denied, 1 - denied)[label]
    draw(S=lexicon.CLAUSAL if label == 2 else FACTIVE)
    return draw.texts(premise=f"A S that B {ACTED[denied]} C P", hypothesis=f"B {ACTED[claimed]} C P")


# Templates of HANS: heuristic, subcase, label, premise and hypothesis. Slots: A, B, C and D are persons, V is a verb
# between persons, S an intransitive verb, P a place, N a preposition, K a verb that presupposes its clause, H a verb
# that does not presuppose its clause, and Q an adjective.
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
    """Return three different persons, each as a name or as a noun with "the"."""
    while True:
        names = draw.some(NAMES, 3)
        persons = [name.word if draw.rng.random() < 0.4 else f"the {draw.one(PERSONS)}" for name in names]
        if len(set(persons)) == len(persons):
            return persons


@grouped("premise", numbers=False)
def hans(draw: Draw, group: int) -> list[TaskRow]:
    """Return one row for each subcase of HANS; half of the rows have the label 0 (entailment)."""
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
