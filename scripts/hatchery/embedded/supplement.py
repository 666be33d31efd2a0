"""Minimal pairs of the BabyLM archive beside BLiMP's: the supplement's five files, and what a verb takes.

Pairs come as mirrored twins, as all minimal pairs of the language do: what stands in the good text of one pair stands
in the bad text of its twin (evaluation.md 4.2). In the supplement, question and answer are divided by a newline. The
verbs of argument structure are exchanged: the one that needs an object is good here and bad there.
"""

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

from hatchery.embedded.facts import CLASSIFIED, PERSON_VERBS, THINGS, draw_names, draw_place, draw_verb, past, the
from hatchery.embedded.grammar import (
    UNINFLECTED_TENSES,
    Clause,
    choose,
    noun_phrase,
    pick_adjectives,
    realise,
    sentence,
    text_of,
)
from hatchery.embedded.lexicon import HYPERNYMS, INTRANSITIVE, MOODS, NUMBERS, OBJECTS, PERSONS, SUBJECT_PRONOUNS
from hatchery.embedded.minimal_pairs import Pair, Paradigm, Twins
from hatchery.embedded.rows import Row, RowTask
from hatchery.embedded.scenes import Words, pick_verb

# Good and bad text of a pair.
Contrast = tuple[str, str]


def _rows(fragment: str, contrast: str, pairs: list[Contrast], group: int) -> list[Row]:
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


def _said(words: tuple[str, ...] | list[str], mark: str = ".") -> str:
    return text_of(sentence(words, mark))


def _turns(*texts: str) -> str:
    return "\n".join(texts)


def hypernym_rows(rng: random.Random, group: int) -> list[Row]:
    """ "Tom found a hammer, so Tom found a tool" and not the other way round; under a negation the other way round."""
    (subject,), verb, place = draw_names(rng, 1), draw_verb(rng), draw_place(rng)
    noun = choose(rng, CLASSIFIED)

    def both(first_narrow: bool, negated: bool) -> str:
        narrow, wide = (noun_phrase("a", each, "singular").words for each in (noun, HYPERNYMS[noun.category]))
        order = (narrow, wide) if first_narrow else (wide, narrow)
        first, second = (realise(past(subject, verb, words, place, negated=negated)) for words in order)
        return _said([*first, ",", "so", *second])

    pairs = [(both(not negated, negated), both(negated, negated)) for negated in (False, True)]
    return _rows(verb.base, "inclusion_direction", pairs, group)


def _answers(rng: random.Random) -> dict[str, tuple[str, str]]:
    """Question and fitting answer for each question word."""
    one, two = draw_names(rng, 2)
    verb, noun, number = choose(rng, PERSON_VERBS), choose(rng, THINGS), choose(rng, NUMBERS)
    verb_of_thing, thing, place = draw_verb(rng), the(noun, number, pick_adjectives(rng)), draw_place(rng)
    copula, pronoun = ("are", "they") if number == "plural" else ("is", "it")
    happened = past(one, verb_of_thing, thing)
    inverted = ["did", *one.words, verb_of_thing.base]
    return {
        "where": (_said(["where", copula, *thing], "?"), _said([pronoun, copula, *place])),
        "whether": (_said(["did", *one.words, verb.base, *two.words, *place], "?"), "Yes."),
        "who": (_said(["who", *realise(happened)[1:]], "?"), _said(two.words)),
        "what": (_said(["what", *inverted, *place], "?"), _said(thing)),
    }


_EASY = tuple(pairwise(("where", "whether", "who", "where", "what", "whether")))


def easy_rows(rng: random.Random, group: int) -> list[Row]:
    """A question of one kind with the answer of its kind, not with the answer of another kind."""
    kinds = _EASY[group % len(_EASY)]
    first, second = (_answers(rng)[kind] for kind in kinds)
    pairs = [
        (_turns(first[0], first[1]), _turns(first[0], second[1])),
        (_turns(second[0], second[1]), _turns(second[0], first[1])),
    ]
    return _rows("_".join(kinds), "answer_type", pairs, group)


def tricky_rows(rng: random.Random, group: int) -> list[Row]:
    """The wrong answer repeats words of the question: "Where did Tom see the dog?" - "Near the lake." / "The dog."."""
    (subject,), verb, place = draw_names(rng, 1), draw_verb(rng), draw_place(rng)
    thing = the(choose(rng, THINGS), choose(rng, NUMBERS))
    where = _said(["where", "did", *subject.words, verb.base, *thing], "?")
    what = _said(["what", "did", *subject.words, verb.base, *place], "?")
    pairs = [
        (_turns(where, _said(place)), _turns(where, _said(thing))),
        (_turns(what, _said(thing)), _turns(what, _said(place))),
    ]
    return _rows("where_what", "answer_type_with_lure", pairs, group)


def inversion_rows(rng: random.Random, group: int) -> list[Row]:
    """ "Has the boy that is watching the dog slept?", not "Is the boy that watching the dog has slept?": the auxiliary
    of the main clause comes first, not the nearer one."""
    noun, thing = the(choose(rng, PERSONS), "singular", pick_adjectives(rng)), the(choose(rng, THINGS))
    inner = choose(rng, [verb for verb in PERSON_VERBS if verb.base in {"watch", "draw", "follow", "help", "visit"}])
    outer, place = choose(rng, INTRANSITIVE), draw_place(rng)
    pairs = []
    for auxiliaries in (("is", "has"), ("has", "is")):
        embedded, main = auxiliaries
        clause = [inner.progressive if embedded == "is" else inner.participle, *thing]
        rest = [outer.progressive if main == "is" else outer.participle, *place]
        good = [main, *noun, "that", embedded, *clause, *rest]
        bad = [embedded, *noun, "that", *clause, main, *rest]
        pairs.append((_said(good, "?"), _said(bad, "?")))
    return _rows(outer.base, "main_or_embedded_auxiliary", pairs, group)


def turn_rows(rng: random.Random, group: int) -> list[Row]:
    """The answer takes up whom the question was about: he for Tom, she for Helen; it or they for one or several."""
    place, mood = draw_place(rng), choose(rng, MOODS)
    if group % 2:
        people = [draw_names(rng, 1, "masculine")[0], draw_names(rng, 1, "feminine")[0]]
        verb, thing = draw_verb(rng), the(choose(rng, THINGS))
        questions = [_said(["did", *person.words, verb.base, *thing, *place], "?") for person in people]
        answers = [_said(["yes", ",", SUBJECT_PRONOUNS[person.gender], "was", mood]) for person in people]
        contrast = "gender_of_pronoun"
    else:
        noun, adjectives = choose(rng, THINGS), pick_adjectives(rng)
        forms = [(the(noun, number, adjectives), number == "plural") for number in NUMBERS]
        questions = [_said(["where", "are" if plural else "is", *words], "?") for words, plural in forms]
        answers = [_said(["they", "are", *place] if plural else ["it", "is", *place]) for _, plural in forms]
        contrast = "number_of_pronoun"
    pairs = [
        (_turns(questions[index], answers[index]), _turns(questions[index], answers[1 - index])) for index in (0, 1)
    ]
    return _rows("question_answer", contrast, pairs, group)


_MAKERS: dict[str, Callable[[random.Random, int], list[Row]]] = {
    "hypernym": hypernym_rows,
    "qa_congruence_easy": easy_rows,
    "qa_congruence_tricky": tricky_rows,
    "subject_aux_inversion": inversion_rows,
    "turn_taking": turn_rows,
}
SUPPLEMENT = {name: RowTask(make, ("sentence_good", "sentence_bad")) for name, make in _MAKERS.items()}


def object_or_none(rng: random.Random) -> Twins:
    """ "Tom carried / slept the pear" and "Tom slept / carried by the lake"."""
    noun = choose(rng, OBJECTS)
    if rng.random() < 0.5:
        (subject,) = draw_names(rng, 1)
    else:
        subject = noun_phrase("the", choose(rng, PERSONS), choose(rng, NUMBERS))
    clause = Clause(subject, pick_verb(rng, noun), (), choose(rng, UNINFLECTED_TENSES))
    without = replace(clause, verb=choose(rng, INTRANSITIVE))
    thing, place = noun_phrase("the", noun, choose(rng, NUMBERS)).words, draw_place(rng)

    def whole(model: Clause, complement: Words) -> Words:
        return sentence(realise(replace(model, complement=complement)))

    return (
        Pair(whole(clause, thing), whole(without, thing)),
        Pair(whole(without, place), whole(clause, place)),
    )


ARGUMENT_STRUCTURE = Paradigm("transitive_or_intransitive", "syntax", "argument_structure", object_or_none)
