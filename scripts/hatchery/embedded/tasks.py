"""Two fine-tuning tasks in GLUE's shapes: acceptability (as CoLA) and entailment (as RTE).

Both are balanced, and neither can be solved from single words: sentences of the acceptability task come from mirrored
twins, and in the entailment task premise and hypothesis have the same distribution under both labels, so only their
relation decides.
"""

import random
from collections.abc import Container
from typing import Any

from hatchery.embedded.grammar import EVENT_TENSES, Clause, NounPhrase, choose, noun_phrase, realise, sentence, text_of
from hatchery.embedded.lexicon import ANIMALS, NAMES, OBJECTS
from hatchery.embedded.minimal_pairs import PARADIGMS
from hatchery.embedded.scenes import GENERAL_VERBS, Scene

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
_CHANGES = ("subject", "verb", "object")


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
    """`count` pairs: "Tom found the hats near the lake" entails "Tom found the hats", not "Tom found the keys".

    Of a hypothesis that does not follow, one word (subject, verb or object) is another one of the same kind and form.
    The labels are RTE's: 0 entailment, 1 not_entailment.
    """
    rng = random.Random(f"{seed}/entailment/{split}")
    rows: list[dict[str, Any]] = []
    seen: set[str] = set()
    while len(rows) < count:
        label = len(rows) % 2
        scene = Scene.draw(rng)
        change = _CHANGES[len(rows) // 2 % len(_CHANGES)] if label else ""
        number, tense, place = scene.number(), choose(rng, EVENT_TENSES), scene.place()
        names, verbs = rng.sample(NAMES, 2), rng.sample(GENERAL_VERBS, 2)
        things = [noun_phrase("the", noun, number).words for noun in rng.sample((*ANIMALS, *OBJECTS), 2)]
        said = Clause(NounPhrase((names[0].word,), "singular"), verbs[0], (*things[0], *place), tense)
        follows = Clause(
            NounPhrase((names[change == "subject"].word,), "singular"),
            verbs[change == "verb"],
            things[change == "object"],
            tense,
        )
        premise, hypothesis = (text_of(sentence(realise(clause))) for clause in (said, follows))
        if premise in taken or premise in seen:
            continue
        seen.add(premise)
        rows.append({"sentence1": premise, "sentence2": hypothesis, "label": label})
    return _shuffled(rows, rng)


def _shuffled(rows: list[dict[str, Any]], rng: random.Random) -> list[dict[str, Any]]:
    rng.shuffle(rows)
    return [{**row, "idx": index} for index, row in enumerate(rows)]


TASKS = {"acceptability": acceptability, "entailment": entailment}
