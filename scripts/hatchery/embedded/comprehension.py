"""Questions about short passages in the shapes of BoolQ, MultiRC and ReCoRD (SuperGLUE, evaluation.md 6.1).

Every passage tells several facts, and right and wrong answers all name things that it mentions, so that only the
fact that was asked for decides.
"""

import random

from hatchery.embedded.facts import CLASSIFIED, THINGS, a, ask, distinct, draw_names, draw_place, past, tell, the
from hatchery.embedded.grammar import choose, noun_phrase, realise, sentence, text_of
from hatchery.embedded.lexicon import HYPERNYMS, NUMBERS, QUALITIES
from hatchery.embedded.rows import Row, RowTask
from hatchery.embedded.scenes import GENERAL_VERBS

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
