"""Minimal pairs of the BabyLM archive beside BLiMP's: the supplement's five files, and what a verb takes.

Pairs come as mirrored twins, as all minimal pairs of the language do: what stands in the good text of one pair stands
in the bad text of its twin (evaluation.md 4.2). In the supplement, question and answer are divided by a newline. The
verbs of argument structure are exchanged: the one that needs an object is good here and bad there.
"""

import random
from collections.abc import Callable, Sequence
from itertools import pairwise

from hatchery.embedded.draws import CLASSIFIED, PERSON_VERBS, THINGS, Draw, a, asked, did, said, the
from hatchery.embedded.grammar import (
    UNINFLECTED_TENSES,
    Clause,
    NounPhrase,
    choose,
    noun_phrase,
    pick_adjectives,
    realise,
    sentence,
)
from hatchery.embedded.lexicon import HYPERNYMS, INTRANSITIVE, MOODS, NUMBERS, OBJECTS, PERSONS, Verb
from hatchery.embedded.minimal_pairs import Paradigm, Twins, crossed
from hatchery.embedded.rows import Row, RowTask
from hatchery.embedded.scenes import Words, pick_verb

# Good and bad text of a pair.
Contrast = tuple[str, str]
# The fragment, the contrast, and the pairs of one group.
Contrasts = tuple[str, str, list[Contrast]]


def hypernym(draw: Draw, group: int) -> Contrasts:
    """ "Tom found a hammer, so Tom found a tool" and not the other way round; under a negation the other way round."""
    (subject,), verb, place = draw.names(1), draw.verb(), draw.place()
    noun = draw.one(CLASSIFIED)

    def both(first_narrow: bool, negated: bool) -> str:
        order = (noun, HYPERNYMS[noun.category])[:: 1 if first_narrow else -1]
        first, second = (did(subject, verb, a(each), place, negated=negated) for each in order)
        return said(first, ", so", second)

    pairs = [(both(not negated, negated), both(negated, negated)) for negated in (False, True)]
    return verb.base, "inclusion_direction", pairs


def _exchanged(questions: Sequence[str], answers: Sequence[str]) -> list[Contrast]:
    """Each of two questions with its answer, not with the other one's."""
    return [(f"{questions[i]}\n{answers[i]}", f"{questions[i]}\n{answers[1 - i]}") for i in (0, 1)]


def _answers(draw: Draw) -> dict[str, tuple[str, str]]:
    """Question and fitting answer for each question word."""
    one, two = draw.names(2)
    verb, noun, number = draw.one(PERSON_VERBS), draw.one(THINGS), draw.one(NUMBERS)
    verb_of_thing, thing, place = draw.verb(), the(noun, number, pick_adjectives(draw.rng)), draw.place()
    copula, pronoun = ("are", "they") if number == "plural" else ("is", "it")
    return {
        "where": (said("where", copula, thing, mark="?"), said(pronoun, copula, place)),
        "whether": (asked("", one, verb, two, place), "Yes."),
        "who": (said("who", verb_of_thing.past, thing, mark="?"), said(two)),
        "what": (asked("what", one, verb_of_thing, place), said(thing)),
    }


_EASY = tuple(pairwise(("where", "whether", "who", "where", "what", "whether")))


def qa_congruence_easy(draw: Draw, group: int) -> Contrasts:
    """A question of one kind with the answer of its kind, not with the answer of another kind."""
    kinds = _EASY[group % len(_EASY)]
    questions, answers = zip(*(_answers(draw)[kind] for kind in kinds), strict=True)
    return "_".join(kinds), "answer_type", _exchanged(questions, answers)


def qa_congruence_tricky(draw: Draw, group: int) -> Contrasts:
    """The wrong answer repeats words of the question: "Where did Tom see the dog?" - "Near the lake." / "The dog."."""
    (subject,), verb, place = draw.names(1), draw.verb(), draw.place()
    thing = draw.thing()
    questions = [asked("where", subject, verb, thing), asked("what", subject, verb, place)]
    return "where_what", "answer_type_with_lure", _exchanged(questions, [said(place), said(thing)])


def subject_aux_inversion(draw: Draw, group: int) -> Contrasts:
    """ "Has the boy that is watching the dog slept?", not "Is the boy that watching the dog has slept?": the auxiliary
    of the main clause comes first, not the nearer one."""
    noun, thing = the(draw.one(PERSONS), "singular", pick_adjectives(draw.rng)), the(draw.one(THINGS))
    inner = draw.one([verb for verb in PERSON_VERBS if verb.base in {"watch", "draw", "follow", "help", "visit"}])
    outer, place = draw.one(INTRANSITIVE), draw.place()
    forms = [{"is": verb.progressive, "has": verb.participle} for verb in (inner, outer)]
    pairs = []
    for near, main in (("is", "has"), ("has", "is")):
        good = said(main, noun, "that", near, forms[0][near], thing, forms[1][main], place, mark="?")
        bad = said(near, noun, "that", forms[0][near], thing, main, forms[1][main], place, mark="?")
        pairs.append((good, bad))
    return outer.base, "main_or_embedded_auxiliary", pairs


def turn_taking(draw: Draw, group: int) -> Contrasts:
    """The answer takes up whom the question was about: he for Tom, she for Helen; it or they for one or several."""
    place, mood = draw.place(), draw.one(MOODS)
    if group % 2:
        people = [*draw.names(1, "masculine"), *draw.names(1, "feminine")]
        verb, thing = draw.verb(), the(draw.one(THINGS))
        questions = [asked("", person, verb, thing, place) for person in people]
        answers = [said("yes ,", pronoun, "was", mood) for pronoun in ("he", "she")]
        return "question_answer", "gender_of_pronoun", _exchanged(questions, answers)
    noun, adjectives = draw.one(THINGS), pick_adjectives(draw.rng)
    copulas = dict(zip(NUMBERS, ("is", "are"), strict=True))
    questions = [said("where", copula, the(noun, number, adjectives), mark="?") for number, copula in copulas.items()]
    answers = [said("it is", place), said("they are", place)]
    return "question_answer", "number_of_pronoun", _exchanged(questions, answers)


def _task(contrasts: Callable[[Draw, int], Contrasts]) -> RowTask:
    def make(rng: random.Random, group: int) -> list[Row]:
        fragment, contrast, pairs = contrasts(Draw(rng), group)
        return [
            {
                "row": len(pairs) * group + index,
                "fragment": fragment,
                "contrast": contrast,
                "sentence_good": good,
                "sentence_bad": bad,
            }
            for index, (good, bad) in enumerate(pairs)
        ]

    return RowTask(make, ("sentence_good", "sentence_bad"))


SUPPLEMENT = {
    make.__name__: _task(make)
    for make in (hypernym, qa_congruence_easy, qa_congruence_tricky, subject_aux_inversion, turn_taking)
}


def object_or_none(rng: random.Random) -> Twins:
    """ "Tom carried / slept the pear" and "Tom slept / carried by the lake"."""
    draw, noun = Draw(rng), choose(rng, OBJECTS)
    if draw.coin():
        subject = NounPhrase(draw.names(1)[0], "singular")
    else:
        subject = noun_phrase("the", draw.one(PERSONS), draw.one(NUMBERS))
    verb, tense = pick_verb(rng, noun), draw.one(UNINFLECTED_TENSES)
    verbs = (verb, draw.one(INTRANSITIVE))
    complements = (the(noun, draw.one(NUMBERS)), draw.place())

    def whole(verb: Verb, complement: Words) -> Words:
        return sentence(realise(Clause(subject, verb, complement, tense)))

    return crossed(whole, verbs, complements, broken="first")


ARGUMENT_STRUCTURE = Paradigm("transitive_or_intransitive", "syntax", "argument_structure", object_or_none)
