"""Tasks about the cause of an event (COPA) and about the sense of a word (WiC), in their SuperGLUE shapes."""

import random
import re

from hatchery.embedded.facts import (
    ADJECTIVES,
    PERSON_VERBS,
    THINGS,
    a,
    distinct,
    draw_names,
    draw_place,
    draw_verb,
    past,
    tell,
    the,
)
from hatchery.embedded.grammar import Clause, choose, noun_phrase, realise, sentence, text_of
from hatchery.embedded.lexicon import CLAUSAL, HYPERNYMS, INTRANSITIVE, OBJECTS, TRANSITIVE
from hatchery.embedded.rows import Row, RowTask

_TAKING = tuple(verb for verb in TRANSITIVE if verb.base in {"lose", "steal", "hide", "take"})
_TAKEN = tuple(noun for noun in OBJECTS if noun.category in {"fruit", "tool", "toy", "garment"})


def plausible_rows(rng: random.Random, group: int) -> list[Row]:
    """COPA: "Tom stole a hammer": was the tool stolen, or the fruit? Asked for the effect, and for the cause.

    Solved by the category of the thing; the mirrored twin has the same choices and the other answer.
    """
    (person,), verb, place = draw_names(rng, 1), choose(rng, _TAKING), draw_place(rng)
    nouns = distinct(rng, _TAKEN, 2)
    while nouns[0].category == nouns[1].category:
        nouns = distinct(rng, _TAKEN, 2)
    adjectives = [(choose(rng, ADJECTIVES),) for _ in nouns]
    events = [tell(past(person, verb, a(*pair), place)) for pair in zip(nouns, adjectives, strict=True)]
    states = [text_of(sentence((*the(HYPERNYMS[noun.category]), "was", verb.participle))) for noun in nouns]
    question = ("effect", "cause")[group % 2]
    premises, choices = (events, states) if question == "effect" else (states, events)
    return [
        {"premise": premise, "choice1": choices[0], "choice2": choices[1], "question": question, "label": label}
        for label, premise in enumerate(premises)
    ]


def _uses(rng: random.Random, word: str, sense: int) -> str:
    """A sentence with the word in its first sense (determiner, possessive, auxiliary) or in its second."""
    one, two = draw_names(rng, 2)
    place, thing = draw_place(rng), choose(rng, THINGS)
    if word == "that":
        if sense == 0:
            return tell(past(one, draw_verb(rng), ("that", thing.singular), place))
        inner = realise(past(two, draw_verb(rng), the(thing)))
        return tell(Clause(one, choose(rng, CLAUSAL), ("that", *inner), choose(rng, ("past", "present"))))
    if word == "her":
        owned = ("her", thing.singular) if sense == 0 else ("her",)
        return tell(past(one, choose(rng, PERSON_VERBS) if sense else draw_verb(rng), owned, place))
    subject = noun_phrase("the", thing, "plural" if word == "are" else "singular", (choose(rng, ADJECTIVES),))
    if sense == 0:
        words = (*subject.words, word, choose(rng, INTRANSITIVE).progressive, *place)
    else:
        words = (
            (*subject.words, word, *place) if rng.random() < 0.5 else (*subject.words, word, choose(rng, ADJECTIVES))
        )
    return text_of(sentence(words))


_AMBIGUOUS = ("that", "her", "is", "are")


def same_sense_rows(rng: random.Random, group: int) -> list[Row]:
    """WiC: does the word do the same in both sentences (1) or not (0)? "saw that dog" and "said that the dog slept".

    The language is too small for nouns with two senses; its function words have them: that, her, is, are. Solved by
    what stands around the word in both sentences: each sentence alone is as frequent under both labels.
    """
    word = _AMBIGUOUS[group % len(_AMBIGUOUS)]
    rows = []
    for label in (0, 1):
        first = int(rng.random() * 2)
        texts = [_uses(rng, word, sense) for sense in (first, first if label else 1 - first)]
        row: Row = {"word": word}
        for number, text in enumerate(texts, 1):
            found = re.search(rf"\b{word}\b", text)
            assert found is not None
            row |= {f"sentence{number}": text, f"start{number}": found.start(), f"end{number}": found.end()}
        rows.append(row | {"label": label})
    return rows


PLAUSIBLE = RowTask(plausible_rows, ("premise", "choice1", "choice2"))
SAME_SENSE = RowTask(same_sense_rows, ("sentence1", "sentence2"))
