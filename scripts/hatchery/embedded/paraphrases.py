"""Tasks about two sentences that mean the same or nearly so, in the shapes of MRPC, QQP and STS-B."""

import random

from hatchery.embedded.facts import PERSON_VERBS, THINGS, ask, distinct, draw_names, draw_place, past, tell, the
from hatchery.embedded.grammar import Clause, NounPhrase, choose, realise, sentence, text_of
from hatchery.embedded.lexicon import CLAUSAL, PLACE_PREPOSITIONS, PLACES
from hatchery.embedded.rows import Row, RowTask
from hatchery.embedded.scenes import GENERAL_VERBS


def _both(first: NounPhrase, second: NounPhrase) -> NounPhrase:
    return NounPhrase((*first.words, "and", *second.words), "plural")


def equivalence_rows(rng: random.Random, group: int) -> list[Row]:
    """MRPC: "Tom and Jane thanked Helen" is equivalent (1) to "Jane and Tom thanked Helen", not (0) to "Helen and Tom
    thanked Jane".

    Solved by who acts; both sentences always have the same words.
    """
    rows = []
    for label in (0, 1):
        one, two, three = draw_names(rng, 3)
        verb, place = choose(rng, PERSON_VERBS), draw_place(rng)
        other = (_both(two, one), three) if label else (_both(*distinct(rng, (one, three), 2)), two)
        rows.append(
            {
                "sentence1": tell(past(_both(one, two), verb, three.words, place)),
                "sentence2": tell(past(other[0], verb, other[1].words, place)),
                "label": label,
            }
        )
    return rows


def duplicate_rows(rng: random.Random, group: int) -> list[Row]:
    """QQP: "Does Tom say that Helen saw the cat?" asks the same (1) as "Does Tom say Helen saw the cat?", not (0) as
    "Does Helen say Tom saw the cat?".

    Solved by who says and who does; the words are the same under both labels.
    """
    rows = []
    for label in (0, 1):
        one, two = draw_names(rng, 2)
        outer, verb = choose(rng, CLAUSAL), choose(rng, GENERAL_VERBS)
        rest = (the(choose(rng, THINGS)), draw_place(rng))
        links = distinct(rng, (("that",), ()), 2)
        orders = ((one, two), (one, two) if label else (two, one))
        questions = [
            ask(Clause(speaker, outer, (*link, *realise(past(subject, verb, *rest))), "present"))
            for (speaker, subject), link in zip(orders, links, strict=True)
        ]
        rows.append({"question1": questions[0], "question2": questions[1], "label": label})
    return rows


def similarity_rows(rng: random.Random, group: int) -> list[Row]:
    """STS-B: five parts (who, what is done, to what, where, and the place's preposition), one point for each that
    agrees, half a point for another thing of the same category.

    Solved by comparing the sentences part by part; each sentence alone says nothing.
    """
    score = group % 6
    kept = set(distinct(rng, range(5), score))
    names, verbs = draw_names(rng, 2), distinct(rng, GENERAL_VERBS, 2)
    things, places, prepositions = (
        distinct(rng, THINGS, 2),
        distinct(rng, PLACES, 2),
        distinct(rng, PLACE_PREPOSITIONS, 2),
    )
    parts = (names, verbs, things, places, prepositions)
    texts = []
    for side in (0, 1):
        who, verb, thing, place, preposition = (part[0 if index in kept else side] for index, part in enumerate(parts))
        texts.append(text_of(sentence([*realise(past(who, verb, the(thing))), preposition, *the(place)])))
    related = 2 not in kept and things[0].category == things[1].category
    return [{"sentence1": texts[0], "sentence2": texts[1], "label": score + 0.5 * related}]


EQUIVALENCE = RowTask(equivalence_rows, ("sentence1", "sentence2"))
DUPLICATES = RowTask(duplicate_rows, ("question1", "question2"))
SIMILARITY = RowTask(similarity_rows, ("sentence1", "sentence2"))
