"""Two fine-tuning tasks in GLUE's shapes: acceptability (as CoLA) and entailment (as RTE).

Both are balanced, and neither can be solved from single words: sentences of the acceptability task come from mirrored
twins, and in the entailment task premise and hypothesis have the same distribution under both labels, so only their
relation decides.
"""

import random
from collections.abc import Callable, Container

from hatchery.embedded.draws import THINGS
from hatchery.embedded.grammar import (
    EVENT_TENSES,
    Clause,
    choose,
    noun_phrase,
    pick_adjectives,
    realise,
    sentence,
    text_of,
)
from hatchery.embedded.lexicon import NUMBERS, Number
from hatchery.embedded.minimal_pairs import PARADIGMS
from hatchery.embedded.rows import Row
from hatchery.embedded.scenes import GENERAL_VERBS, Scene
from hatchery.embedded.settings import LONG_TASKS

ACCEPTABILITY_PARADIGMS = frozenset(
    {
        "determiner_noun_agreement_1",
        "determiner_noun_agreement_irregular_1",
        "regular_plural_subject_verb_agreement_1",
        "irregular_past_participle_verbs",
        "quantifier_noun_agreement_1",
        "existential_there_agreement",
    }
)
_PARADIGMS = tuple(paradigm for paradigm in PARADIGMS if paradigm.uid in ACCEPTABILITY_PARADIGMS)
# Every third noun is kept for validation, so that the task asks for what is known about number, not for what is learned
# about single nouns from a few hundred examples.
_VALIDATION_NOUNS = THINGS[2::3]
_TRAINING_NOUNS = tuple(noun for noun in THINGS if noun not in _VALIDATION_NOUNS)
_DEMONSTRATIVES: dict[Number, tuple[str, ...]] = {"singular": ("this", "that"), "plural": ("these", "those")}


def acceptability(rng: random.Random, label: int, group: int, split: str) -> Row:
    """A sentence with label 1 (grammatical) or 0 (one broken constraint)."""
    pair = choose(rng, _PARADIGMS[group % len(_PARADIGMS)].draw(rng))
    return {"sentence": text_of(pair.good if label else pair.bad), "label": label}


def entailment(rng: random.Random, label: int, group: int, split: str) -> Row:
    """ "Tom found the mice near the lake" entails "Tom found these mice", not "Tom found this mouse".

    Only the form of the noun in the premise tells its number, and validation has other nouns than training. The labels
    are RTE's: 0 entailment, 1 not_entailment.
    """
    scene = Scene.draw(rng)
    subject, verb, tense = scene.name(), choose(rng, GENERAL_VERBS), choose(rng, EVENT_TENSES)
    noun = choose(rng, _TRAINING_NOUNS if split == "train" else _VALIDATION_NOUNS)
    number, claimed = NUMBERS[group % 2], NUMBERS[group % 2 - label]
    premise = noun_phrase("the", noun, number, pick_adjectives(rng, 0.2), scene.place()).words
    conclusion = noun_phrase(choose(rng, _DEMONSTRATIVES[claimed]), noun, claimed).words
    texts = [text_of(sentence(realise(Clause(subject, verb, words, tense)))) for words in (premise, conclusion)]
    return {"sentence1": texts[0], "sentence2": texts[1], "label": label}


_MAKERS: tuple[Callable[[random.Random, int, int, str], Row], ...] = (acceptability, entailment)
TASKS = dict(zip(LONG_TASKS, _MAKERS, strict=True))


def task_rows(name: str, count: int, seed: int, split: str, taken: Container[str]) -> list[Row]:
    """`count` rows, both labels in turn, no first text of which is in `taken`, shuffled and numbered."""
    rng = random.Random(f"{seed}/{name}/{split}")
    rows: dict[str, Row] = {}
    while len(rows) < count:
        group, label = divmod(len(rows), 2)
        row = TASKS[name](rng, label, group, split)
        text = next(iter(row.values()))
        if text not in taken:
            rows.setdefault(text, row)
    drawn = list(rows.values())
    rng.shuffle(drawn)
    return [{**row, "idx": index} for index, row in enumerate(drawn)]
