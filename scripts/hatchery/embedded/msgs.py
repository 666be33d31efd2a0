"""MSGS in the miniature English (evaluation.md 8): sentences in which a linguistic and a surface feature agree or not.

Five features: the main verb is in its -ing form, the construction is control rather than raising, there is an
adjective (linguistic); "the" occurs, "the" stands before "a" (surface). A paradigm is one draw of words in which
only the features vary; domains share no noun, verb, adjective or predicate.
"""

import random
from dataclasses import dataclass
from typing import Literal

from hatchery.embedded import lexicon
from hatchery.embedded.draws import ADJECTIVES, Draw, filled
from hatchery.embedded.rows import Row, RowTask
from hatchery.embedded.scenes import Words

Linguistic = Literal["main_verb", "control_raising", "syntactic_category"]
Surface = Literal["lexical_content_the", "relative_token_position"]
Domain = Literal["in", "out"]

_DETERMINERS = ("a", "this", "every", "each")
_CONTROL = {"in": ("is happy", "was sad", "hopes"), "out": ("is angry", "was kind", "is clever")}
_RAISING = {"in": ("is likely", "was certain", "seems"), "out": ("is sure", "was bound", "tends")}
_DESCRIPTIONS = {
    "main_verb": ("syntactic_construction", "Is the main verb in the 'ing' form?"),
    "control_raising": ("syntactic_construction", "Is the sentence a control construction?"),
    "syntactic_category": ("syntactic_category", "Does the sentence have an adjective?"),
    "lexical_content_the": ("lexical_content", "Does the sentence contain 'the'?"),
    "relative_token_position": ("relative_token_position", "Does 'the' precede 'a'?"),
}
# What each feature may look like: the sentence without it and with it, as patterns. Slots: D1 N1 and D2 N2 the two noun
# phrases; VERB a verb without object, ACT one with, SAY one with a clause, each in its base form (TO), in the past
# (PAST) or as -ing (ING); CONTROL, RAISING, GOOD (an adjective), MOOD, ADVERB and NEAR.
FRAMES: dict[Linguistic, tuple[tuple[str, str], ...]] = {
    "main_verb": (
        ("D1 N1 SAY-PAST that D2 N2 is VERB-ING", "D1 N1 is SAY-ING that D2 N2 VERB-PAST"),
        ("D1 N1 that is ACT-ING D2 N2 VERB-PAST", "D1 N1 that ACT-PAST D2 N2 is VERB-ING"),
    ),
    "control_raising": (("D1 N1 RAISING to ACT-TO D2 N2", "D1 N1 CONTROL to ACT-TO D2 N2"),),
    "syntactic_category": (
        ("D1 N1 ACT-PAST D2 N2 ADVERB", "D1 N1 ACT-PAST D2 GOOD N2"),
        ("D1 N1 NEAR D2 N2 is VERB-ING", "D1 N1 NEAR D2 N2 is MOOD"),
    ),
}


def _domain(items: tuple, domain: Domain) -> tuple:
    return items[0 if domain == "in" else 1 :: 2]


def _after_a(words: tuple[str, ...]) -> tuple[str, ...]:
    # "an" would be another word than the "a" of the surface feature.
    return tuple(word for word in words if word[0] not in "aeiou")


_NOUNS = _after_a(tuple(noun.singular for noun in lexicon.PERSONS))
_VERBS = {
    "VERB": tuple(verb for verb in lexicon.INTRANSITIVE if verb.base != "rest"),
    "ACT": tuple(verb for verb in lexicon.TRANSITIVE if "person" in verb.objects and verb.base not in lexicon.STATIVE),
    "SAY": lexicon.CLAUSAL,
}
_WORDS = {
    "GOOD": _after_a(ADJECTIVES),
    "MOOD": lexicon.MOODS,
    "ADVERB": lexicon.TIME_ADVERBS,
    "NEAR": lexicon.PREPOSITIONS,
}


def _slots(draw: Draw, domain: Domain) -> dict[str, Words]:
    """The words of one paradigm in one domain; the determiners come with the surface feature."""
    slots: dict[str, Words] = {
        f"N{place}": (noun,) for place, noun in enumerate(draw.some(_domain(_NOUNS, domain), 2), 1)
    }
    for slot, verbs in _VERBS.items():
        verb = draw.one(_domain(verbs, domain))
        slots |= {f"{slot}-TO": (verb.base,), f"{slot}-PAST": (verb.past,), f"{slot}-ING": (verb.progressive,)}
    slots |= {name: tuple(draw.one(by[domain]).split()) for name, by in (("CONTROL", _CONTROL), ("RAISING", _RAISING))}
    for slot, words in _WORDS.items():
        slots[slot] = (draw.one(_domain(words, domain)),)
    return slots


def _determiners(draw: Draw, surface: Surface | None, positive: bool) -> dict[str, Words]:
    def chosen() -> tuple[str, str]:
        if surface == "relative_token_position":
            return ("the", "a") if positive else ("a", "the")
        others = (draw.one(_DETERMINERS), draw.one(_DETERMINERS))
        if surface is None:
            return others if draw.coin() else ("the", others[1])
        return draw.one((("the", others[1]), (others[0], "the"), ("the", "the"))) if positive else others

    first, second = chosen()
    return {"D1": (first,), "D2": (second,)}


@dataclass(frozen=True)
class Dataset:
    """One MSGS file pair: a linguistic feature, a surface feature, or both (ambiguous)."""

    stem: str
    linguistic: Linguistic | None
    surface: Surface | None

    @property
    def control(self) -> bool:
        """Whether one feature stands alone."""
        return self.linguistic is None or self.surface is None

    def sentences(self, draw: Draw, domain: Domain, values: list[tuple[int, int]]) -> list[str]:
        """One sentence for each (linguistic, surface) value, from the same words."""
        slots = _slots(draw, domain)
        # A linguistic feature that plays no role is the same throughout the paradigm, and random over paradigms.
        frame = draw.one(FRAMES[draw.one(tuple(FRAMES)) if self.linguistic is None else self.linguistic])
        idle = draw.coin()
        determiners = {value: _determiners(draw, self.surface, bool(value)) for value in (0, 1)}
        return [
            filled(frame[linguistic if self.linguistic else idle], slots | determiners[surface if self.surface else 0])
            for linguistic, surface in values
        ]

    def task(self, split: str) -> RowTask:
        """The training file (`train`: in-domain, features agree) or the validation file (`test`: all conditions)."""
        return RowTask(lambda rng, group: self._rows(rng, group, split), ("sentence",))

    def _rows(self, rng: random.Random, group: int, split: str) -> list[Row]:
        agreeing, disagreeing = [(1, 1), (0, 0)], [(1, 0), (0, 1)]
        parts: list[tuple[Domain, list[tuple[int, int]], list[str]]] = [("in", agreeing, ["training"] * 2)]
        if split == "test":
            values = agreeing if self.control else agreeing + disagreeing
            conditions = ["test"] * 2 if self.control else ["control"] * 2 + ["test"] * 2
            parts.append(("out", values, conditions))
        rows: list[Row] = []
        for domain, values, conditions in parts:
            texts = self.sentences(Draw(rng), domain, values)
            for text, (linguistic, surface), condition in zip(texts, values, conditions, strict=True):
                rows.append(
                    {
                        "sentence": text,
                        "condition": condition,
                        "linguistic_feature_label": linguistic if self.linguistic else None,
                        "surface_feature_label": surface if self.surface else None,
                        "UID": self.stem,
                        **_described("linguistic", self.linguistic),
                        **_described("surface", self.surface),
                        "control_paradigm": self.control,
                        "sentenceID": len(rows),
                        "paradigmID": group,
                        "split": split,
                        "label": linguistic if self.linguistic else surface,
                    }
                )
        return rows


def _described(kind: str, feature: str | None) -> Row:
    type_name, description = _DESCRIPTIONS[feature] if feature else (None, None)
    return {f"{kind}_feature_type": type_name, f"{kind}_feature_description": description}


DATASETS = (
    Dataset("main_verb_control", "main_verb", None),
    Dataset("control_raising_control", "control_raising", None),
    Dataset("syntactic_category_control", "syntactic_category", None),
    Dataset("lexical_content_the_control", None, "lexical_content_the"),
    Dataset("relative_position_control", None, "relative_token_position"),
    Dataset("main_verb_lexical_content_the", "main_verb", "lexical_content_the"),
    Dataset("main_verb_relative_token_position", "main_verb", "relative_token_position"),
    Dataset("control_raising_lexical_content_the", "control_raising", "lexical_content_the"),
    Dataset("control_raising_relative_token_position", "control_raising", "relative_token_position"),
    Dataset("syntactic_category_lexical_content_the", "syntactic_category", "lexical_content_the"),
    Dataset("syntactic_category_relative_position", "syntactic_category", "relative_token_position"),
)
