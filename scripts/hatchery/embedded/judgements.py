"""Tasks about one sentence in GLUE's shapes: acceptability (CoLA) and sentiment (SST-2)."""

import random

from hatchery.embedded.facts import ADJECTIVES, draw_place, the
from hatchery.embedded.grammar import choose, sentence, text_of
from hatchery.embedded.lexicon import PERSONS
from hatchery.embedded.minimal_pairs import PARADIGMS
from hatchery.embedded.rows import Row, RowTask

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
