"""Draws analysed sentences: the kinds of sentence that edge probing is about, with names, distractors and pronouns."""

import random
from collections.abc import Callable, Container

from hatchery.embedded import lexicon
from hatchery.embedded.analyses import Analysis, Frame, Phrase
from hatchery.embedded.draws import ADJECTIVES, PERSON_VERBS, THINGS
from hatchery.embedded.grammar import ADVERBS, Clause, Tense, choose, pick_adjectives, text_of
from hatchery.embedded.lexicon import Name, Number, Verb
from hatchery.embedded.scenes import fitting_tense, pick_verb
from hatchery.errors import ConfigError

_TENSES: tuple[Tense, ...] = ("present", "past", "past", "perfect", "perfect", "progressive", "modal")
# Categories are drawn before nouns, so that no type of entity is rare.
_OBJECTS_BY_CATEGORY = (
    lexicon.PERSONS,
    lexicon.ANIMALS,
    *(
        tuple(noun for noun in lexicon.OBJECTS if noun.category == category)
        for category in sorted({noun.category for noun in lexicon.OBJECTS})
    ),
)
_DETERMINERS: dict[Number, tuple[str, ...]] = {
    "singular": ("the", "the", "a", "this", "that", "every"),
    "plural": ("the", "the", "these", "those", "some", "many", "two", "several"),
}


def _phrase(rng: random.Random, analysis: Analysis, nouns: tuple, distractor: float = 0.3) -> Phrase:
    number: Number = choose(rng, lexicon.NUMBERS)
    modifier = None
    if rng.random() < distractor:
        modifier = (
            choose(rng, lexicon.PREPOSITIONS),
            choose(rng, (*lexicon.OBJECTS, *lexicon.PERSONS, *lexicon.PLACES)),
            choose(rng, lexicon.NUMBERS),
        )
    return analysis.noun(
        choose(rng, nouns), number, choose(rng, _DETERMINERS[number]), pick_adjectives(rng, 0.25), modifier=modifier
    )


def _verb(rng: random.Random, analysis: Analysis, subject: Phrase, verb: Verb, role: str = "ARG0") -> tuple[int, Frame]:
    negated = rng.random() < 0.25
    adverb = choose(rng, ADVERBS) if not negated and rng.random() < 0.2 else ""
    tense = fitting_tense(verb, choose(rng, _TENSES))
    # "could n't" and "did n't" contract as "does n't" does; "not" stands as often.
    contracted = negated and rng.random() < 0.5
    clause = Clause(subject.phrase, verb, (), tense, negated=negated, adverb=adverb, contracted=contracted)
    main = analysis.verb_group(clause, subject)
    frame = analysis.frames[-1]
    frame.arguments.insert(0, (subject.span, role))
    return main, frame


def _place(rng: random.Random, analysis: Analysis, main: int, frame: Frame) -> None:
    start = len(analysis.tokens)
    preposition = analysis.add(choose(rng, lexicon.PLACE_PREPOSITIONS), "ADP", "IN")
    place = analysis.noun(choose(rng, lexicon.PLACES), "singular", "the", pick_adjectives(rng, 0.2))
    analysis.attach(preposition, place.head, "case")
    analysis.attach(place.head, main, "obl")
    frame.arguments.append(((start, len(analysis.tokens)), "ARGM-LOC"))


def _ending(rng: random.Random, analysis: Analysis, main: int, frame: Frame, least_words: int = 6) -> None:
    if rng.random() < 0.5 or len(analysis.tokens) < least_words - 1:
        _place(rng, analysis, main, frame)
    if rng.random() < 0.35:
        adverb = choose(rng, lexicon.TIME_ADVERBS)
        index = analysis.add(adverb, "ADV", "RB", main, "advmod")
        frame.arguments.append(((index, index + 1), "ARGM-MNR" if adverb.endswith("ly") else "ARGM-TMP"))


def _object(analysis: Analysis, thing: Phrase, main: int, frame: Frame) -> None:
    analysis.attach(thing.head, main, "obj")
    frame.arguments.append((thing.span, "ARG1"))


def transitive(rng: random.Random, analysis: Analysis) -> None:
    """ "The boy near the boxes has found these dogs by the lake"."""
    subject = _phrase(rng, analysis, lexicon.PERSONS)
    noun = choose(rng, choose(rng, _OBJECTS_BY_CATEGORY))
    main, frame = _verb(rng, analysis, subject, pick_verb(rng, noun))
    _object(analysis, _phrase(rng, analysis, (noun,), 0.2), main, frame)
    _ending(rng, analysis, main, frame)


def intransitive(rng: random.Random, analysis: Analysis) -> None:
    """ "Every boy with a drum slept by the lake"; what falls is no agent."""
    subject = _phrase(rng, analysis, lexicon.PERSONS, 0.5)
    verb = choose(rng, lexicon.INTRANSITIVE)
    main, frame = _verb(rng, analysis, subject, verb, "ARG1" if verb.base == "fall" else "ARG0")
    _ending(rng, analysis, main, frame)


def owner(rng: random.Random, analysis: Analysis) -> None:
    """ "Helen found her hat with him": a possessive for the subject, or for somebody else."""
    name = choose(rng, lexicon.NAMES)
    subject = analysis.name(name)
    other = rng.random() < 0.5
    gender = name.gender if not other else "feminine" if name.gender == "masculine" else "masculine"
    noun = choose(rng, choose(rng, _OBJECTS_BY_CATEGORY[2:]))
    main, frame = _verb(rng, analysis, subject, pick_verb(rng, noun))
    referent = "somebody else" if other else name.word
    thing = analysis.noun(
        noun, choose(rng, lexicon.NUMBERS), lexicon.POSSESSIVES[gender], (choose(rng, ADJECTIVES),), referent
    )
    _object(analysis, thing, main, frame)
    _ending(rng, analysis, main, frame)


def _two_names(rng: random.Random) -> tuple[Name, Name]:
    """A man and a woman in either order, so that a pronoun means one of them only."""
    first = choose(rng, lexicon.NAMES)
    return first, choose(rng, [name for name in lexicon.NAMES if name.gender != first.gender])


def report(rng: random.Random, analysis: Analysis) -> None:
    """ "Mary says that Tom blames himself", "... that she saw him", "... that Tom helped her": who is meant?"""
    first, second = _two_names(rng)
    speaker = analysis.name(first)
    outer, outer_frame = _verb(rng, analysis, speaker, choose(rng, lexicon.CLAUSAL))
    start = len(analysis.tokens)
    link = analysis.add("that", "SCONJ", "IN")
    kind = rng.random()
    if kind < 0.4:
        main, frame = _verb(rng, analysis, analysis.name(second), choose(rng, lexicon.REFLEXIVE))
        thing = analysis.pronoun(lexicon.REFLEXIVE_PRONOUNS[second.gender], second.word)
    elif kind < 0.7:
        main, frame = _verb(rng, analysis, analysis.name(second), choose(rng, PERSON_VERBS))
        thing = analysis.pronoun(lexicon.OBJECT_PRONOUNS[first.gender], first.word)
    else:
        subject = analysis.pronoun(lexicon.SUBJECT_PRONOUNS[first.gender], first.word)
        main, frame = _verb(rng, analysis, subject, choose(rng, PERSON_VERBS))
        thing = analysis.name(second)
    _object(analysis, thing, main, frame)
    _ending(rng, analysis, main, frame)
    analysis.attach(link, main, "mark")
    analysis.attach(main, outer, "ccomp")
    outer_frame.arguments.append(((start, len(analysis.tokens)), "ARG1"))


def gapping(rng: random.Random, analysis: Analysis) -> None:
    """ "Tom found the dog and Helen the cat": the second verb is an empty node, its object an orphan."""
    first, second = _two_names(rng)
    subject = analysis.name(first)
    nouns = rng.sample([noun for noun in THINGS if noun.category in ("animal", "thing", "toy")], 2)
    verb = choose(rng, [verb for verb in PERSON_VERBS if {"animal", "thing", "toy"} <= set(verb.objects)])
    main = analysis.verb_group(Clause(subject.phrase, verb, (), "past"), subject)
    frame = analysis.frames[-1]
    frame.arguments.append((subject.span, "ARG0"))
    _object(
        analysis, analysis.noun(nouns[0], choose(rng, lexicon.NUMBERS), "the", (choose(rng, ADJECTIVES),)), main, frame
    )
    link = analysis.add("and", "CCONJ", "CC")
    remnant = analysis.name(second)
    analysis.attach(link, remnant.head, "cc")
    analysis.attach(remnant.head, main, "conj")
    analysis.empty.append((remnant.head, analysis.tokens[main].form, main))
    thing = analysis.noun(nouns[1], choose(rng, lexicon.NUMBERS), "the")
    analysis.attach(thing.head, remnant.head, "orphan")


_KINDS: tuple[Callable[[random.Random, Analysis], None], ...] = (
    transitive,
    owner,
    report,
    intransitive,
    report,
    owner,
    gapping,
    report,
)


def draw_analyses(count: int, stream: str, taken: Container[str], seen: set[str]) -> list[Analysis]:
    """`count` different analysed sentences that are neither in `taken` nor in `seen`, to which theirs are added.

    Raises ConfigError when that many cannot be made.
    """
    rng = random.Random(stream)
    analyses: list[Analysis] = []
    for attempt in range(50 * count + 1000):
        analysis = Analysis()
        _KINDS[attempt % len(_KINDS)](rng, analysis)
        analysis.finish()
        text = text_of(analysis.words)
        if text in taken or text in seen:
            continue
        seen.add(text)
        analyses.append(analysis)
        if len(analyses) == count:
            return analyses
    raise ConfigError(f"examples_per_suite_task: {stream} cannot make {count} different sentences")
