"""Suites of the BabyLM 2023 archive other than BLiMP and GLUE: the supplement of minimal pairs, and MSGS.

The supplement has five files (docs/papers/babylm-evaluation.md, "Files of minimal pairs"). In three files, a text is a
question and its answer, separated by a newline. Each pair has a mirrored twin, in which the good and the bad form have
changed places (see `rows`).

In a sentence of MSGS (docs/papers/babylm-evaluation.md, "MSGS"), a linguistic and a surface feature agree or disagree.
There are three linguistic features: the main verb ends in -ing, the construction is control rather than raising, and
the sentence contains an adjective. There are two surface features: the sentence contains "the", and "the" precedes "a".
Sentences of a paradigm have the same words and differ only in the features. There are two domains of words: sentences
of different domains have no noun, verb, adjective or predicate in common.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from demo import lexicon
from demo.grammar import pick_adjectives
from demo.lexicon import INTRANSITIVE, MOODS, NAMES, NUMBERS, PERSONS
from demo.rows import ACTED, ADJECTIVES, CLASSIFIED, MEN, PERSON_VERBS, THINGS, WOMEN, Draw, RowTask, TaskRow, place
from demo.scenes import GENERAL_VERBS, Words

Texts = tuple[str, ...]
# One group of rows: a word that identifies the group's draw, the name of the contrast between good and bad texts, and
# the (good text, bad text) pairs.
Contrasts = tuple[str, str, list[Texts]]
_WATCHING = tuple(verb for verb in PERSON_VERBS if verb.base in {"watch", "draw", "follow", "help", "visit"})
# Question and answer, by type of question. The slot C is the copula, and the slot I the pronoun, that agrees with the
# noun in the slot T.
_TURNS = {
    "where": ("where C the Q T.n ?", "I C P"),
    "whether": ("did A V.base B P ?", "yes"),
    "who": ("who W the Q T.n ?", "B"),
    "what": ("what did A W.base P ?", "the Q T.n"),
}
_EASY = tuple(pairwise(("where", "whether", "who", "where", "what", "whether")))


def _adjectives(draw: Draw) -> Words:
    return pick_adjectives(draw.rng)


def _exchanged(one: Texts, other: Texts) -> list[Texts]:
    """Return a minimal pair for each of two questions: the question with its own answer (good), and with the answer to
    the other question (bad).
    """
    return [(f"{ask}\n{its}", f"{ask}\n{others}") for (ask, its), (_, others) in ((one, other), (other, one))]


def hypernym(draw: Draw, group: int) -> Contrasts:
    """Return pairs: the inference from a noun to its category is good, and the reverse inference is bad.

    An example is "Tom found a hammer, so Tom found a tool". If the sentences are negated, the reverse inference is
    good.
    """
    draw(A_=NAMES, V=GENERAL_VERBS, P=place, N=CLASSIFIED)
    up, down = "A {0} a N P , so A {0} a N.category P", "A {0} a N.category P , so A {0} a N P"
    plain, negated = (draw.each(up.format(verb), down.format(verb)) for verb in ACTED)
    return draw.slots["V"].base, "inclusion_direction", [plain, negated[::-1]]


def _turns(draw: Draw, kind: str) -> Texts:
    draw(A_B=NAMES, V=PERSON_VERBS, T=THINGS, n=NUMBERS, W=GENERAL_VERBS, Q=_adjectives, P=place)
    plural = draw.slots["n"] == "plural"
    draw(C="are" if plural else "is", I="they" if plural else "it")
    return draw.each(*_TURNS[kind])


def qa_congruence_easy(draw: Draw, group: int) -> Contrasts:
    """Return pairs of a question with an answer: the answer has the right type (good) or another type (bad)."""
    one, other = _EASY[group % len(_EASY)]
    return f"{one}_{other}", "answer_type", _exchanged(_turns(draw, one), _turns(draw, other))


def qa_congruence_tricky(draw: Draw, group: int) -> Contrasts:
    """Return pairs whose bad answer repeats a word of the question.

    An example is "Where did Tom see the dog?", with "Near the lake." (good) and "The dog." (bad).
    """
    draw(A_=NAMES, V=GENERAL_VERBS, P=place, T=THINGS, n=NUMBERS)
    where, what = draw.each("where did A V.base the T.n ?", "P"), draw.each("what did A V.base P ?", "the T.n")
    return "where_what", "answer_type_with_lure", _exchanged(where, what)


def subject_aux_inversion(draw: Draw, group: int) -> Contrasts:
    """Return pairs of questions whose first word is the auxiliary of the main clause (good) or the nearest auxiliary
    (bad).

    An example is "Has the boy that is watching the dog slept?" and "Is the boy that watching the dog has slept?".
    """
    draw(N=PERSONS, Q=_adjectives, T=THINGS, V=_WATCHING, W=INTRANSITIVE, P=place)
    pairs = [
        draw.each(
            "has the Q N that is V.progressive the T W.participle P ?",
            "is the Q N that V.progressive the T has W.participle P ?",
        ),
        draw.each(
            "is the Q N that has V.participle the T W.progressive P ?",
            "has the Q N that V.participle the T is W.progressive P ?",
        ),
    ]
    return draw.slots["W"].base, "main_or_embedded_auxiliary", pairs


def turn_taking(draw: Draw, group: int) -> Contrasts:
    """Return pairs in which the pronoun of the good answer (he, she, it or they) agrees with the question."""
    draw(P=place, M=MOODS)
    if group % 2:
        draw(A_=MEN, B_=WOMEN, V=GENERAL_VERBS, T=THINGS)
        he = draw.each("did A V.base the T P ?", "yes , he was M")
        she = draw.each("did B V.base the T P ?", "yes , she was M")
        return "question_answer", "gender_of_pronoun", _exchanged(he, she)
    draw(T=THINGS, Q=_adjectives)
    it, they = draw.each("where is the Q T ?", "it is P"), draw.each("where are the Q T.plural ?", "they are P")
    return "question_answer", "number_of_pronoun", _exchanged(it, they)


def _task(contrasts: Callable[[Draw, int], Contrasts]) -> RowTask:
    def make(draw: Draw, group: int) -> list[TaskRow]:
        fragment, contrast, pairs = contrasts(draw, group)
        fixed = {"fragment": fragment, "contrast": contrast}
        return [
            {"row": len(pairs) * group + index, **fixed, "sentence_good": good, "sentence_bad": bad}
            for index, (good, bad) in enumerate(pairs)
        ]

    return RowTask(make, ("sentence_good", "sentence_bad"), contrasts.__name__)


SUPPLEMENT = tuple(map(_task, (hypernym, qa_congruence_easy, qa_congruence_tricky, subject_aux_inversion, turn_taking)))


# Description of each feature as a question.
_QUESTIONS: dict[str | None, str] = {
    "main_verb": "Is the main verb in the 'ing' form?",
    "control_raising": "Is the sentence a control construction?",
    "syntactic_category": "Does the sentence have an adjective?",
    "lexical_content_the": "Does the sentence contain 'the'?",
    "relative_token_position": "Does 'the' precede 'a'?",
}
# Type of each feature; if a feature is not listed, its type has the name of the feature.
_TYPES: dict[str | None, str] = dict.fromkeys(("main_verb", "control_raising"), "syntactic_construction")
_TYPES["lexical_content_the"] = "lexical_content"
# Patterns of sentences for each linguistic feature: pairs of (sentence without the feature, sentence with the feature).
_FRAMES: dict[str, tuple[tuple[str, str], ...]] = {
    "main_verb": (
        ("D1 N1 SAY that D2 N2 is DO.progressive", "D1 N1 is SAY.progressive that D2 N2 DO"),
        ("D1 N1 that is ACT.progressive D2 N2 DO", "D1 N1 that ACT D2 N2 is DO.progressive"),
    ),
    "control_raising": (("D1 N1 RAISING to ACT.base D2 N2", "D1 N1 CONTROL to ACT.base D2 N2"),),
    "syntactic_category": (
        ("D1 N1 ACT D2 N2 ADVERB", "D1 N1 ACT D2 GOOD N2"),
        ("D1 N1 NEAR D2 N2 is DO.progressive", "D1 N1 NEAR D2 N2 is MOOD"),
    ),
}


def _after_a(words: Sequence[Any]) -> tuple[Any, ...]:
    # Exclude words that begin with a vowel: before such a word, "a" would become "an", but the surface feature only
    # concerns "a".
    return tuple(word for word in words if str(word)[0] not in "aeiou")


# Possible values of each slot of the patterns, in the order in which slots are drawn. Values with an even index belong
# to the first domain, values with an odd index to the second domain.
_SOURCES: dict[str, tuple[Any, ...]] = {
    "N1_N2": _after_a(lexicon.PERSONS),
    "DO": tuple(verb for verb in lexicon.INTRANSITIVE if verb.base != "rest"),
    "ACT": tuple(verb for verb in lexicon.TRANSITIVE if "person" in verb.objects and verb.base not in lexicon.STATIVE),
    "SAY": lexicon.CLAUSAL,
    "CONTROL": ("is happy", "is angry", "was sad", "was kind", "hopes", "is clever"),
    "RAISING": ("is likely", "is sure", "was certain", "was bound", "seems", "tends"),
    "GOOD": _after_a(ADJECTIVES),
    "MOOD": lexicon.MOODS,
    "ADVERB": lexicon.TIME_ADVERBS,
    "NEAR": lexicon.PREPOSITIONS,
}


def _determiners(draw: Draw, surface: str | None, positive: bool) -> dict[str, str]:
    if surface == "relative_token_position":
        first, second = ("the", "a") if positive else ("a", "the")
    else:
        first, second = (draw.one(("a", "this", "every", "each")) for _ in range(2))
        if surface is None:
            first = first if draw.coin() else "the"
        elif positive:
            first, second = draw.one((("the", second), (first, "the"), ("the", "the")))
    return {"D1": first, "D2": second}


@dataclass(frozen=True)
class Dataset:
    """A data set of MSGS, with a training file and a test file.

    Its labels depend on a linguistic feature, on a surface feature, or on both (ambiguous); a missing feature is None.
    """

    stem: str
    linguistic: str | None
    surface: str | None

    @property
    def control(self) -> bool:
        """True if the data set has only a linguistic feature or only a surface feature."""
        return self.linguistic is None or self.surface is None

    def sentences(self, draw: Draw, domain: int, values: list[tuple[int, int]]) -> list[str]:
        """Return a sentence for each pair (linguistic, surface) of feature values in `values`.

        All sentences have the same words, which come from the domain `domain` (0 or 1).
        """
        draw(**{slot: items[domain::2] for slot, items in _SOURCES.items()})
        # If the data set has no linguistic feature, draw one of the three linguistic features; its value is the same in
        # all of these sentences.
        frame = draw.one(_FRAMES[self.linguistic or draw.one(tuple(_FRAMES))])
        idle = draw.coin()
        determiners = [_determiners(draw, self.surface, positive) for positive in (False, True)]
        texts = []
        for linguistic, surface in values:
            draw.slots |= determiners[surface if self.surface else 0]
            texts.append(draw.text(frame[linguistic if self.linguistic else idle]))
        return texts

    def task(self, split: str) -> RowTask:
        """Return the task that draws the rows of a split.

        "train" contains those sentences of the first domain whose linguistic and surface features agree. "test"
        contains these and also sentences of the second domain.
        """
        parts = [[("training", 1, 1), ("training", 0, 0)]]
        if split == "test" and self.control:
            parts.append([("test", 1, 1), ("test", 0, 0)])
        elif split == "test":
            parts.append([("control", 1, 1), ("control", 0, 0), ("test", 1, 0), ("test", 0, 1)])

        def make(draw: Draw, group: int) -> list[TaskRow]:
            rows = [
                (*row, text)
                for domain, part in enumerate(parts)
                for row, text in zip(part, self.sentences(draw, domain, [row[1:] for row in part]), strict=True)
            ]
            return [
                {
                    "sentence": text,
                    "condition": condition,
                    "linguistic_feature_label": linguistic if self.linguistic else None,
                    "surface_feature_label": surface if self.surface else None,
                    "UID": self.stem,
                    "linguistic_feature_type": _TYPES.get(self.linguistic, self.linguistic),
                    "linguistic_feature_description": _QUESTIONS.get(self.linguistic),
                    "surface_feature_type": _TYPES.get(self.surface, self.surface),
                    "surface_feature_description": _QUESTIONS.get(self.surface),
                    "control_paradigm": self.control,
                    "sentenceID": number,
                    "paradigmID": group,
                    "split": split,
                    "label": linguistic if self.linguistic else surface,
                }
                for number, (condition, linguistic, surface, text) in enumerate(rows)
            ]

        return RowTask(make, ("sentence",), self.stem, numbers=False)


DATASETS = (
    *(Dataset(f"{feature}_control", feature, None) for feature in _FRAMES),
    Dataset("lexical_content_the_control", None, "lexical_content_the"),
    Dataset("relative_position_control", None, "relative_token_position"),
    Dataset("main_verb_lexical_content_the", "main_verb", "lexical_content_the"),
    Dataset("main_verb_relative_token_position", "main_verb", "relative_token_position"),
    Dataset("control_raising_lexical_content_the", "control_raising", "lexical_content_the"),
    Dataset("control_raising_relative_token_position", "control_raising", "relative_token_position"),
    Dataset("syntactic_category_lexical_content_the", "syntactic_category", "lexical_content_the"),
    Dataset("syntactic_category_relative_position", "syntactic_category", "relative_token_position"),
)
