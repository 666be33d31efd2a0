"""Two fine-tuning tasks in GLUE's shapes: acceptability (as CoLA) and entailment (as RTE).

Both are balanced, and neither can be solved from single words: sentences of the acceptability task come from mirrored
twins, and in the entailment task premise and hypothesis have the same distribution under both labels, so only their
relation decides.
"""

import random
from collections.abc import Container
from typing import Any

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
from hatchery.embedded.lexicon import ANIMALS, NUMBERS, OBJECTS, Number
from hatchery.embedded.minimal_pairs import PARADIGMS
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
# Every third noun is kept for validation, so that the task asks for what is known about number, not for what is learned
# about single nouns from a few hundred examples.
_NOUNS = (*ANIMALS, *OBJECTS)
_VALIDATION_NOUNS = _NOUNS[2::3]
_TRAINING_NOUNS = tuple(noun for noun in _NOUNS if noun not in _VALIDATION_NOUNS)
_DEMONSTRATIVES: dict[Number, tuple[str, ...]] = {"singular": ("this", "that"), "plural": ("these", "those")}


def acceptability(count: int, seed: int, split: str, taken: Container[str]) -> list[dict[str, Any]]:
    """`count` sentences with label 1 (grammatical) or 0 (one broken constraint), none of them in `taken`."""
    rng = random.Random(f"{seed}/acceptability/{split}")
    paradigms = [paradigm for paradigm in PARADIGMS if paradigm.uid in ACCEPTABILITY_PARADIGMS]
    rows: list[dict[str, Any]] = []
    seen: set[str] = set()
    while len(rows) < count:
        label = len(rows) % 2
        paradigm = paradigms[len(rows) // 2 % len(paradigms)]
        pair = choose(rng, paradigm.draw(rng))
        text = text_of(pair.good if label else pair.bad)
        if text in taken or text in seen:
            continue
        seen.add(text)
        rows.append({"sentence": text, "label": label})
    return _shuffled(rows, rng)


def entailment(count: int, seed: int, split: str, taken: Container[str]) -> list[dict[str, Any]]:
    """`count` pairs: "Tom found the mice near the lake" entails "Tom found these mice", not "Tom found this mouse".

    Only the form of the noun in the premise tells its number, and validation has other nouns than training. The labels
    are RTE's: 0 entailment, 1 not_entailment.
    """
    rng = random.Random(f"{seed}/entailment/{split}")
    nouns = _TRAINING_NOUNS if split == "train" else _VALIDATION_NOUNS
    rows: list[dict[str, Any]] = []
    seen: set[str] = set()
    while len(rows) < count:
        label = len(rows) % 2
        scene = Scene.draw(rng)
        subject, verb, tense = scene.name(), choose(rng, GENERAL_VERBS), choose(rng, EVENT_TENSES)
        noun, number = choose(rng, nouns), NUMBERS[len(rows) // 2 % 2]
        claimed = NUMBERS[len(rows) // 2 % 2 - label]
        premise = noun_phrase("the", noun, number, pick_adjectives(rng, 0.2), scene.place()).words
        conclusion = noun_phrase(choose(rng, _DEMONSTRATIVES[claimed]), noun, claimed).words
        texts = [text_of(sentence(realise(Clause(subject, verb, words, tense)))) for words in (premise, conclusion)]
        if texts[0] in taken or texts[0] in seen:
            continue
        seen.add(texts[0])
        rows.append({"sentence1": texts[0], "sentence2": texts[1], "label": label})
    return _shuffled(rows, rng)


def _shuffled(rows: list[dict[str, Any]], rng: random.Random) -> list[dict[str, Any]]:
    rng.shuffle(rows)
    return [{**row, "idx": index} for index, row in enumerate(rows)]


TASKS = dict(zip(LONG_TASKS, (acceptability, entailment), strict=True))
