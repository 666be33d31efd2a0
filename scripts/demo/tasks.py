"""Two fine-tuning tasks in GLUE's shapes: acceptability (as CoLA) and entailment (as RTE).

Both are balanced, and neither can be solved from single words: sentences of the acceptability task come from mirrored
twins, and in the entailment task premise and hypothesis have the same distribution under both labels, so only their
relation decides.
"""

import random
from collections.abc import Container

from demo.draws import THINGS
from demo.grammar import EVENT_TENSES, Clause, choose, noun_phrase, pick_adjectives, stated, text_of
from demo.lexicon import NUMBERS
from demo.paradigms import PARADIGMS
from demo.rows import Row, shuffled
from demo.scenes import GENERAL_VERBS, Scene
from hatchery.raw.embedded_settings import LONG_TASKS

_CHOSEN = """determiner_noun_agreement_1 determiner_noun_agreement_irregular_1 regular_plural_subject_verb_agreement_1
irregular_past_participle_verbs quantifier_noun_agreement_1 existential_there_agreement"""
_PARADIGMS = tuple(paradigm for paradigm in PARADIGMS if paradigm.uid in _CHOSEN.split())


def acceptability(rng: random.Random, label: int, group: int, split: str) -> Row:
    """A sentence with label 1 (grammatical) or 0 (one broken constraint)."""
    pair = choose(rng, _PARADIGMS[group % len(_PARADIGMS)].draw(rng))
    return {"sentence": text_of(pair.good if label else pair.bad), "label": label}


def entailment(rng: random.Random, label: int, group: int, split: str) -> Row:
    """ "Tom found the mice near the lake" entails "Tom found these mice", not "Tom found this mouse".

    Only the form of the noun in the premise tells its number. Every third noun is kept for validation, so that the task
    asks for what is known about number, not for what is learned about single nouns from a few hundred examples. The
    labels are RTE's: 0 entailment, 1 not_entailment.
    """
    scene = Scene.draw(rng)
    subject, verb, tense = scene.name(), choose(rng, GENERAL_VERBS), choose(rng, EVENT_TENSES)
    nouns = THINGS[2::3] if split != "train" else [noun for index, noun in enumerate(THINGS) if index % 3 != 2]
    noun, number, claimed = choose(rng, nouns), NUMBERS[group % 2], NUMBERS[group % 2 - label]
    premise = noun_phrase("the", noun, number, pick_adjectives(rng, 0.2), scene.place())
    demonstrative = choose(rng, ("this", "that") if claimed == "singular" else ("these", "those"))
    conclusion = noun_phrase(demonstrative, noun, claimed)
    one, other = (text_of(stated(Clause(subject, verb, what.words, tense))) for what in (premise, conclusion))
    return {"sentence1": one, "sentence2": other, "label": label}


TASKS = dict(zip(LONG_TASKS, (acceptability, entailment), strict=True))


def task_rows(name: str, count: int, seed: int, split: str, taken: Container[str]) -> list[Row]:
    """`count` rows, both labels in turn, no first text of which is in `taken`, shuffled and shuffled."""
    rng = random.Random(f"{seed}/{name}/{split}")
    rows: dict[str, Row] = {}
    while len(rows) < count:
        group, label = divmod(len(rows), 2)
        row = TASKS[name](rng, label, group, split)
        text = next(iter(row.values()))
        if text not in taken:
            rows.setdefault(text, row)
    return shuffled(rng, [*rows.values()])
