"""Tasks about one sentence or two in GLUE's shapes: acceptability, sentiment, paraphrases, and whom a pronoun means.

CoLA and SST-2 ask about one sentence, MRPC, QQP and STS-B whether two mean the same. In WSC and WNLI one man and one
woman act, and the pronoun of the second sentence has the gender of one of them: a name's place and role tell nothing.
"""

import random

from hatchery.embedded.facts import (
    ADJECTIVES,
    PERSON_VERBS,
    THINGS,
    ask,
    distinct,
    draw_names,
    draw_place,
    past,
    tell,
    the,
)
from hatchery.embedded.grammar import Clause, NounPhrase, choose, realise, sentence, text_of
from hatchery.embedded.lexicon import CLAUSAL, MOODS, PERSONS, PLACE_PREPOSITIONS, PLACES, SUBJECT_PRONOUNS
from hatchery.embedded.minimal_pairs import PARADIGMS
from hatchery.embedded.rows import Row, RowTask
from hatchery.embedded.scenes import GENERAL_VERBS

PLEASANT = ("happy", "kind", "clever")
UNPLEASANT = ("sad", "angry", "ill", "tired")


def acceptability_rows(rng: random.Random, group: int) -> list[Row]:
    """The good sentence of one pair and the bad one of its mirrored twin: 1 acceptable, 0 not.

    Solved by the grammar of all paradigms; single words tell nothing, since twins exchange them.
    """
    one, other = PARADIGMS[group % len(PARADIGMS)].draw(rng)
    if rng.random() < 0.5:
        one, other = other, one
    return [{"sentence": text_of(one.good), "label": 1}, {"sentence": text_of(other.bad), "label": 0}]


def sentiment_rows(rng: random.Random, group: int) -> list[Row]:
    """ "The old sailor by the lake is not happy": 0 negative, 1 positive.

    Solved by the mood word and the negation together: either alone stands as often under both labels.
    """
    rows = []
    for label in (0, 1):
        negated = rng.random() < 0.5
        mood = choose(rng, PLEASANT if bool(label) != negated else UNPLEASANT)
        subject = the(choose(rng, PERSONS), "singular", (choose(rng, ADJECTIVES),))
        negation = (choose(rng, ("not", "never")),) if negated else ("always",) if rng.random() < 0.5 else ()
        words = (*subject, *draw_place(rng), choose(rng, ("is", "was")), *negation, mood)
        rows.append({"sentence": text_of(sentence(words)), "label": label})
    return rows


ACCEPTABILITY = RowTask(acceptability_rows, ("sentence",))
SENTIMENT = RowTask(sentiment_rows, ("sentence",))


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


def _story(rng: random.Random) -> tuple[str, list[NounPhrase], NounPhrase, tuple[str, str]]:
    """The text, its two names in order, the one that is meant, and the last words: copula and mood."""
    people = [*draw_names(rng, 1, "masculine"), *draw_names(rng, 1, "feminine")]
    people = distinct(rng, people, 2)
    meant = choose(rng, people)
    predicate = (choose(rng, ("is", "was")), choose(rng, MOODS))
    first = tell(past(people[0], choose(rng, PERSON_VERBS), people[1].words, draw_place(rng)))
    second = text_of(sentence((SUBJECT_PRONOUNS[meant.gender], *predicate)))
    return f"{first} {second}", people, meant, predicate


def schema_rows(rng: random.Random, group: int) -> list[Row]:
    """WSC: does the pronoun (span 2) mean this name (span 1)? Spans count blank-split words."""
    text, people, meant, _ = _story(rng)
    words = text.split()
    pronoun = len(words) - 3
    return [
        {
            "text": text,
            "span1_index": words.index(person.words[0]),
            "span2_index": pronoun,
            "span1_text": person.words[0],
            "span2_text": words[pronoun],
            "label": int(person is meant),
        }
        for person in people
    ]


def resolved_rows(rng: random.Random, group: int) -> list[Row]:
    """WNLI: the second sentence has a name in the place of the pronoun; 1 if it follows from the first."""
    text, people, meant, predicate = _story(rng)
    return [
        {
            "sentence1": text,
            "sentence2": text_of(sentence((*person.words, *predicate))),
            "label": int(person is meant),
        }
        for person in people
    ]


SCHEMA = RowTask(schema_rows, ("text",))
RESOLVED = RowTask(resolved_rows, ("sentence1",))
