"""MSGS in the miniature English (evaluation.md 8): sentences in which a linguistic and a surface feature agree or not.

Five features: the main verb is in its -ing form, the construction is control rather than raising, there is an
adjective (linguistic); "the" occurs, "the" stands before "a" (surface). A paradigm is one draw of words in which
only the features vary; domains share no noun, verb, adjective or predicate.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from hatchery.embedded.facts import ADJECTIVES
from hatchery.embedded.grammar import choose, sentence, text_of
from hatchery.embedded.lexicon import (
    CLAUSAL,
    INTRANSITIVE,
    MOODS,
    PERSONS,
    PREPOSITIONS,
    STATIVE,
    TIME_ADVERBS,
    TRANSITIVE,
    Verb,
)
from hatchery.embedded.rows import Row, RowTask
from hatchery.embedded.scenes import Words

Linguistic = Literal["main_verb", "control_raising", "syntactic_category"]
Surface = Literal["lexical_content_the", "relative_token_position"]
Domain = Literal["in", "out"]
Frame = Callable[["Material", bool], list[str]]

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


def _domain(items: tuple, domain: Domain) -> tuple:
    return items[0 if domain == "in" else 1 :: 2]


def _after_a(words: tuple[str, ...]) -> tuple[str, ...]:
    # "an" would be another word than the "a" of the surface feature.
    return tuple(word for word in words if word[0] not in "aeiou")


_NOUNS = _after_a(tuple(noun.singular for noun in PERSONS))
_ACTIVE = tuple(verb for verb in TRANSITIVE if "person" in verb.objects and verb.base not in STATIVE)
_CALM = tuple(verb for verb in INTRANSITIVE if verb.base != "rest")


@dataclass(frozen=True)
class Material:
    """The words of one paradigm in one domain; `determiners` of the two noun phrases are set by the surface feature."""

    nouns: tuple[str, str]
    determiners: tuple[str, str]
    verb: Verb
    action: Verb
    clausal: Verb
    control: str
    raising: str
    adjective: str
    mood: str
    adverb: str
    preposition: str

    @property
    def first(self) -> Words:
        """The subject."""
        return (self.determiners[0], self.nouns[0])

    @property
    def second(self) -> Words:
        """The other noun phrase."""
        return (self.determiners[1], self.nouns[1])


def _main_verb_complement(m: Material, positive: bool) -> list[str]:
    """ "The boy is saying that a girl slept" against "The boy said that a girl is sleeping"."""
    outer = ("is", m.clausal.progressive) if positive else (m.clausal.past,)
    inner = (m.verb.past,) if positive else ("is", m.verb.progressive)
    return [*m.first, *outer, "that", *m.second, *inner]


def _main_verb_relative(m: Material, positive: bool) -> list[str]:
    """ "The boy that followed a girl is sleeping" against "The boy that is following a girl slept"."""
    inner = (m.action.past,) if positive else ("is", m.action.progressive)
    outer = ("is", m.verb.progressive) if positive else (m.verb.past,)
    return [*m.first, "that", *inner, *m.second, *outer]


def _control(m: Material, positive: bool) -> list[str]:
    """ "The boy is happy to follow a girl" against "The boy is likely to follow a girl"."""
    return [*m.first, *(m.control if positive else m.raising).split(), "to", m.action.base, *m.second]


def _attribute(m: Material, positive: bool) -> list[str]:
    """ "The boy followed a young girl" against "The boy followed a girl quickly"."""
    determiner, noun = m.second
    last = (determiner, m.adjective, noun) if positive else (determiner, noun, m.adverb)
    return [*m.first, m.action.past, *last]


def _predicate(m: Material, positive: bool) -> list[str]:
    """ "The boy near a girl is sad" against "The boy near a girl is sleeping"."""
    return [*m.first, m.preposition, *m.second, "is", m.mood if positive else m.verb.progressive]


FRAMES: dict[Linguistic, tuple[Frame, ...]] = {
    "main_verb": (_main_verb_complement, _main_verb_relative),
    "control_raising": (_control,),
    "syntactic_category": (_attribute, _predicate),
}


def _draw(rng: random.Random, domain: Domain) -> Material:
    first, second = rng.sample(_domain(_NOUNS, domain), 2)
    return Material(
        nouns=(first, second),
        determiners=("", ""),
        verb=choose(rng, _domain(_CALM, domain)),
        action=choose(rng, _domain(_ACTIVE, domain)),
        clausal=choose(rng, _domain(CLAUSAL, domain)),
        control=choose(rng, _CONTROL[domain]),
        raising=choose(rng, _RAISING[domain]),
        adjective=choose(rng, _domain(_after_a(ADJECTIVES), domain)),
        mood=choose(rng, _domain(MOODS, domain)),
        adverb=choose(rng, _domain(TIME_ADVERBS, domain)),
        preposition=choose(rng, _domain(PREPOSITIONS, domain)),
    )


def _determiners(rng: random.Random, surface: Surface | None, positive: bool) -> tuple[str, str]:
    if surface == "relative_token_position":
        return ("the", "a") if positive else ("a", "the")
    others = (choose(rng, _DETERMINERS), choose(rng, _DETERMINERS))
    if surface is None:
        return others if rng.random() < 0.5 else ("the", others[1])
    if not positive:
        return others
    return choose(rng, (("the", others[1]), (others[0], "the"), ("the", "the")))


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

    def sentences(self, rng: random.Random, domain: Domain, values: list[tuple[int, int]]) -> list[str]:
        """One sentence for each (linguistic, surface) value, from the same words."""
        drawn = _draw(rng, domain)
        # A linguistic feature that plays no role is the same throughout the paradigm, and random over paradigms.
        feature = choose(rng, tuple(FRAMES)) if self.linguistic is None else self.linguistic
        frame = choose(rng, FRAMES[feature])
        idle = rng.random() < 0.5
        texts = []
        determiners = {value: _determiners(rng, self.surface, bool(value)) for value in (0, 1)}
        for linguistic, surface in values:
            chosen = determiners[surface if self.surface else 0]
            material = Material(**{**vars(drawn), "determiners": chosen})
            texts.append(text_of(sentence(frame(material, bool(linguistic) if self.linguistic else idle))))
        return texts


def _described(kind: str, feature: str | None) -> Row:
    type_name, description = _DESCRIPTIONS[feature] if feature else (None, None)
    return {f"{kind}_feature_type": type_name, f"{kind}_feature_description": description}


def _rows(dataset: Dataset, rng: random.Random, group: int, split: str) -> list[Row]:
    agreeing, disagreeing = [(1, 1), (0, 0)], [(1, 0), (0, 1)]
    parts: list[tuple[Domain, list[tuple[int, int]], list[str]]] = [("in", agreeing, ["training"] * 2)]
    if split == "test":
        values = agreeing if dataset.control else agreeing + disagreeing
        conditions = ["test"] * 2 if dataset.control else ["control"] * 2 + ["test"] * 2
        parts.append(("out", values, conditions))
    rows: list[Row] = []
    for domain, values, conditions in parts:
        for text, (linguistic, surface), condition in zip(
            dataset.sentences(rng, domain, values), values, conditions, strict=True
        ):
            rows.append(
                {
                    "sentence": text,
                    "condition": condition,
                    "linguistic_feature_label": linguistic if dataset.linguistic else None,
                    "surface_feature_label": surface if dataset.surface else None,
                    "UID": dataset.stem,
                    **_described("linguistic", dataset.linguistic),
                    **_described("surface", dataset.surface),
                    "control_paradigm": dataset.control,
                    "sentenceID": len(rows),
                    "paradigmID": group,
                    "split": split,
                    "label": linguistic if dataset.linguistic else surface,
                }
            )
    return rows


def tasks(dataset: Dataset) -> dict[str, RowTask]:
    """The training file (in-domain, features agree) and the validation file (all conditions) of one data set."""

    def training(rng: random.Random, group: int) -> list[Row]:
        return _rows(dataset, rng, group, "train")

    def validation(rng: random.Random, group: int) -> list[Row]:
        return _rows(dataset, rng, group, "test")

    return {"train": RowTask(training, ("sentence",)), "validation": RowTask(validation, ("sentence",))}


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
