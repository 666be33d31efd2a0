"""Tasks about whom a pronoun means, in the shapes of the Winograd schema challenge and of WNLI.

One man and one woman act; the pronoun of the second sentence has the gender of one of them. Solved by the genders of
names together with the pronoun: a name's place in the sentence, and its role, tell nothing.
"""

import random

from hatchery.embedded.facts import PERSON_VERBS, distinct, draw_names, draw_place, past, tell
from hatchery.embedded.grammar import NounPhrase, choose, sentence, text_of
from hatchery.embedded.lexicon import MOODS, SUBJECT_PRONOUNS
from hatchery.embedded.rows import Row, RowTask


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
