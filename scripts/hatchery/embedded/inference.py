"""Inference in the shapes of MNLI, RTE, QNLI, CommitmentBank and HANS: does one sentence follow from another?

The same words stand under all labels, and only how premise and hypothesis relate decides. The one exception is that of
CommitmentBank itself: verbs such as "hope" make the premise neutral. HANS (evaluation.md 7) has inferences that look
right because the words of the hypothesis all stand in the premise: in any order (lexical overlap), side by side
(subsequence), or as a clause of their own (constituent). Each has three kinds of pairs where that is right (label 0)
and three where it is wrong (1).
"""

from hatchery.embedded import lexicon
from hatchery.embedded.draws import CLASSIFIED, FACTIVE, PERSON_VERBS, Draw, asked, did, filled, said, the, told
from hatchery.embedded.grammar import noun_phrase
from hatchery.embedded.lexicon import Number
from hatchery.embedded.rows import Row, RowTask, grouped, labelled
from hatchery.embedded.scenes import Words

# (premise negated, premise about the narrower noun, hypothesis negated); the hypothesis has the other noun.
_MONOTONE: dict[int, tuple[tuple[bool, bool, bool], ...]] = {
    0: ((False, True, False), (True, False, True)),
    1: ((False, False, False), (True, True, True), (False, False, True), (True, True, False)),
    2: ((False, True, True), (True, False, False)),
}
_MANNERS = tuple(word for word in lexicon.TIME_ADVERBS if word.endswith("ly"))


def _mnli(number: Number) -> RowTask:
    @labelled("premise", labels=3)
    def mnli(draw: Draw, label: int, group: int) -> Row:
        """ "Tom found a hammer" entails "Tom found a tool" (0); the other way round it is neutral (1); negated, it
        contradicts (2), and negation turns the direction of entailment round.

        Solved by the categories of nouns, by the polarity of both sentences and by the direction, all together.
        """
        premise_negated, narrow, negated = _MONOTONE[label][group % len(_MONOTONE[label])]
        noun = draw.one(CLASSIFIED)
        (subject,), verb, place = draw.names(1), draw.verb(), draw.place()
        texts = []
        for is_narrow, denied in ((narrow, premise_negated), (not narrow, negated)):
            determiner = "a" if number == "singular" else "any" if denied else "some"
            thing = noun_phrase(determiner, noun if is_narrow else lexicon.HYPERNYMS[noun.category], number).words
            texts.append(told(subject, verb, thing, place, negated=denied))
        return {"premise": texts[0], "hypothesis": texts[1]}

    return mnli


MNLI = _mnli("singular")
# The mismatched genre speaks of several things, as no training row does.
MNLI_MISMATCHED = _mnli("plural")


@labelled("sentence1")
def rte(draw: Draw, label: int, group: int) -> Row:
    """ "Every boy slept by the lake" entails "Every boy slept" (0), with "No boy" it is the other way round (1).

    Solved by the quantifier and by which of the sentences is the longer one; either alone tells nothing.
    """
    upward = draw.coin()
    determiner = draw.one(("every", "each")) if upward else "no"
    subject = noun_phrase(determiner, draw.one(lexicon.PERSONS), "singular", draw.adjective()).words
    short = did(subject, draw.one(lexicon.INTRANSITIVE))
    long = (*short, *draw.place())
    premise, hypothesis = (long, short) if upward == (label == 0) else (short, long)
    return {"sentence1": said(premise), "sentence2": said(hypothesis)}


@labelled("sentence")
def qnli(draw: Draw, label: int, group: int) -> Row:
    """ "Where did Tom see the dog?" is answered (0) by "... near the lake", not (1) by "... quietly".

    Solved by the question word together with the kind of the sentence's last phrase.
    """
    (subject,), verb, thing, asks_place = draw.names(1), draw.verb(), draw.thing(), draw.coin()
    ending = draw.place() if asks_place == (label == 0) else (draw.one(_MANNERS),)
    question = asked("where" if asks_place else "how", subject, verb, thing)
    return {"question": question, "sentence": told(subject, verb, thing, ending)}


@labelled("premise", labels=3)
def cb(draw: Draw, label: int, group: int) -> Row:
    """ "Helen knew that Tom did not thank Jane" and "Tom thanked Jane": 0 entailment, 1 contradiction, 2 neutral, the
    order of that data set.

    Solved by whether the outer verb presupposes its clause, and by the polarities of clause and hypothesis.
    """
    speaker, subject, person = draw.names(3)
    verb, place, denied = draw.one(PERSON_VERBS), draw.place(), bool(group % 2)
    claimed = (denied, not denied)[label] if label < 2 else draw.coin()
    outer = draw.one(lexicon.CLAUSAL if label == 2 else FACTIVE)
    premise = said(speaker, outer.past, "that", did(subject, verb, person, place, negated=denied))
    return {"premise": premise, "hypothesis": told(subject, verb, person, place, negated=claimed)}


# Heuristic, subcase and label; premise and hypothesis as patterns. Slots: A, B, C persons; V a verb between persons;
# S a verb without object; P a place; N a preposition; K a verb that presupposes its clause, H one that does not;
# Q an adjective, D plural persons.
SUBCASES = (
    ("lexical_overlap", "le_conjunction", 0, "A V B and C P", "A V C P"),
    ("lexical_overlap", "le_around_prepositional_phrase", 0, "A N B V C", "A V C"),
    ("lexical_overlap", "le_around_relative_clause", 0, "A that V B S P", "A S P"),
    ("lexical_overlap", "ln_subject_object_swap", 1, "A V B P", "B V A P"),
    ("lexical_overlap", "ln_relative_clause", 1, "A that V B S P", "B V A"),
    ("lexical_overlap", "ln_conjunction", 1, "A and B V C P", "A V B P"),
    ("subsequence", "se_conjunction", 0, "A and B V C P", "B V C P"),
    ("subsequence", "se_adjective", 0, "Q D V A P", "D V A P"),
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


def _slots(draw: Draw) -> dict[str, Words]:
    """Material for every slot, no two persons alike."""
    while True:
        names = draw.names(3)
        persons = [name if draw.rng.random() < 0.4 else the(draw.one(lexicon.PERSONS)) for name in names]
        if len(set(persons)) == len(persons):
            break
    used = {words[-1] for words in persons}
    plural = draw.one([noun.plural for noun in lexicon.PERSONS if noun.singular not in used])
    verbs = {"V": PERSON_VERBS, "S": lexicon.ANIMAL_VERBS}
    return {
        **dict(zip("ABC", persons, strict=True)),
        **{slot: (draw.one(among).past,) for slot, among in verbs.items()},
        "P": draw.place(),
        "N": (draw.one(lexicon.PREPOSITIONS),),
        "K": (draw.one(FACTIVE).past,),
        "H": (draw.one(lexicon.CLAUSAL).past,),
        "Q": draw.adjective(),
        "D": (plural,),
    }


@grouped("premise")
def hans(draw: Draw, group: int) -> list[Row]:
    """One row for every subcase, entailed and not entailed ones in equal numbers."""
    rows = []
    for number, (heuristic, name, label, premise, hypothesis) in enumerate(SUBCASES, start=1):
        slots = _slots(draw)
        texts = {"premise": filled(premise, slots), "hypothesis": filled(hypothesis, slots)}
        rows.append(texts | {"label": label, "heuristic": heuristic, "subcase": name, "template": f"temp{number}"})
    return rows
