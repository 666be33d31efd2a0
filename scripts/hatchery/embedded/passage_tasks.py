"""SuperGLUE's tasks (evaluation.md 6.1): causes (COPA), senses of a word (WiC), and questions about short passages.

Every passage of BoolQ, MultiRC and ReCoRD tells several facts, and right and wrong answers all name things that it
mentions, so that only the fact that was asked for decides.
"""

import random
import re

from hatchery.embedded.facts import (
    ADJECTIVES,
    CLASSIFIED,
    PERSON_VERBS,
    THINGS,
    a,
    ask,
    distinct,
    draw_names,
    draw_place,
    draw_verb,
    past,
    tell,
    the,
)
from hatchery.embedded.grammar import Clause, choose, noun_phrase, realise, sentence, text_of
from hatchery.embedded.lexicon import CLAUSAL, HYPERNYMS, INTRANSITIVE, NUMBERS, OBJECTS, QUALITIES, TRANSITIVE
from hatchery.embedded.rows import Row, RowTask
from hatchery.embedded.scenes import GENERAL_VERBS

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


_ANSWERS = 4


def yes_or_no_rows(rng: random.Random, group: int) -> list[Row]:
    """BoolQ: "Did Tom find the dog?" about a passage where Tom found the dog and Helen saw the cat: 1 yes, 0 no.

    Solved by who did what: a wrong question mixes the two facts. Both questions are asked about each passage.
    """
    people, verbs, nouns = draw_names(rng, 2), distinct(rng, GENERAL_VERBS, 2), distinct(rng, THINGS, 2)
    things = [the(noun, choose(rng, NUMBERS)) for noun in nouns]
    facts = [past(*fact, draw_place(rng)) for fact in zip(people, verbs, things, strict=True)]
    asked = int(rng.random() * 2)
    mixed = (people[asked], verbs[asked], things[1 - asked])
    if rng.random() < 0.5:
        mixed = (people[1 - asked], verbs[asked], things[asked])
    questions = (ask(past(*mixed)), ask(past(people[asked], verbs[asked], things[asked])))
    passage = " ".join(map(tell, facts))
    return [{"question": question, "passage": passage, "label": label} for label, question in enumerate(questions)]


def many_answers_rows(rng: random.Random, group: int) -> list[Row]:
    """MultiRC: what did Tom find, what did Helen find? Four answers each, two of them right; flat rows of the hub.

    Solved by who found what; every answer is right for one of the two questions.
    """
    people, verb = draw_names(rng, 2), choose(rng, GENERAL_VERBS)
    things = [the(noun, choose(rng, NUMBERS)) for noun in distinct(rng, THINGS, _ANSWERS)]
    owners = distinct(rng, (0, 0, 1, 1), _ANSWERS)
    facts = [
        tell(past(people[owner], verb, thing, draw_place(rng))) for owner, thing in zip(owners, things, strict=True)
    ]
    paragraph = " ".join(facts)
    rows: list[Row] = []
    for asked, person in enumerate(people):
        question = 2 * group + asked
        rows.extend(
            {
                "paragraph": paragraph,
                "question": ask(past(person, verb), "what"),
                "answer": text_of(sentence(thing)),
                "idx": {"paragraph": group, "question": question, "answer": question * _ANSWERS + index},
                "label": int(owner == asked),
            }
            for index, (owner, thing) in enumerate(zip(owners, things, strict=True))
        )
    return rows


def cloze_rows(rng: random.Random, group: int) -> list[Row]:
    """ReCoRD: who fits "@placeholder found an animal", when Tom found a dog, Helen a hammer and Jane a pear?

    Solved by the category of what was found; each of the three names is the answer equally often. The passage ends
    with two lines that `@highlight` introduces.
    """
    people, verb = draw_names(rng, 3), choose(rng, GENERAL_VERBS)
    categories = distinct(rng, sorted({noun.category for noun in CLASSIFIED}), 3)
    nouns = [choose(rng, [noun for noun in CLASSIFIED if noun.category == category]) for category in categories]
    facts = [tell(past(*fact, draw_place(rng))) for fact in zip(people, (verb,) * 3, map(a, nouns), strict=True)]
    highlights = [
        text_of(sentence((*the(noun), "is", choose(rng, QUALITIES)))[:-1]) for noun in distinct(rng, nouns, 2)
    ]
    asked = group % 3
    hypernym = noun_phrase("a", HYPERNYMS[categories[asked]], "singular").words
    said = realise(past(people[asked], verb, hypernym))
    return [
        {
            "passage": " ".join(facts) + "".join(f"\n@highlight\n{line}" for line in highlights),
            "query": text_of(("@placeholder", *said[1:])),
            "entities": [person.words[0] for person in people],
            "answers": [people[asked].words[0]],
            "idx": {"passage": group, "query": group},
        }
    ]


YES_OR_NO = RowTask(yes_or_no_rows, ("passage",))
MANY_ANSWERS = RowTask(many_answers_rows, ("paragraph",))
CLOZE = RowTask(cloze_rows, ("passage",))
