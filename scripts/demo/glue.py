"""Tasks of GLUE and SuperGLUE in the generated language (docs/papers/babylm-evaluation.md, "Tasks"), one function each.

The tasks are balanced: no single word predicts the label; only the relation between words or between sentences predicts
it. In WSC and WNLI, the text names a man and a woman, and the pronoun refers to one of them by its gender. Passages of
BoolQ, MultiRC and ReCoRD state several facts, and all answers, right or wrong, name only things in the passage.

`acceptability` and `entailment`, in the format of CoLA and RTE, have more rows than the other tasks, and their rows are
drawn independently.
"""

import random
from collections.abc import Container
from typing import Any

from demo import lexicon
from demo.grammar import EVENT_TENSES, Clause, choose, noun_phrase, pick_adjectives, stated, text_of
from demo.lexicon import NAMES, NUMBERS
from demo.paradigms import PARADIGMS
from demo.rows import (
    ADJECTIVES,
    CLASSIFIED,
    MEN,
    PERSON_VERBS,
    THINGS,
    WOMEN,
    Draw,
    TaskRow,
    grouped,
    labelled,
    place,
    shuffled,
)
from demo.scenes import GENERAL_VERBS, Scene

PLEASANT = ("happy", "kind", "clever")
UNPLEASANT = ("sad", "angry", "ill", "tired")
_TAKING = tuple(verb for verb in lexicon.TRANSITIVE if verb.base in {"lose", "steal", "hide", "take"})
_TAKEN = tuple(noun for noun in lexicon.OBJECTS if noun.category in {"fruit", "tool", "toy", "garment"})


@grouped("sentence")
def cola(draw: Draw, group: int) -> list[TaskRow]:
    """Return the good sentence of one minimal pair (label 1, acceptable), and the bad sentence of its mirrored twin
    (label 0). In the twin, the good and the bad form have changed places.

    Solving the task requires the grammar of all paradigms, because every word form is, on average, equally frequent in
    good and in bad sentences.
    """
    pairs = PARADIGMS[group % len(PARADIGMS)].draw(draw.rng)
    one, other = pairs[::-1] if draw.coin() else pairs
    return [{"sentence": text_of(one.good), "label": 1}, {"sentence": text_of(other.bad), "label": 0}]


@labelled("sentence")
def sst2(draw: Draw, label: int, group: int) -> TaskRow:
    """Return a sentence such as "The old sailor by the lake is not happy" (label 0, negative), or a positive sentence
    (label 1).

    Solving the task requires both the mood word and the negation: each mood word, and the negation, is equally frequent
    with both labels.
    """
    negated = draw.coin()
    draw(M=PLEASANT if bool(label) != negated else UNPLEASANT, N=lexicon.PERSONS, Q=ADJECTIVES)
    draw(A=("not", "never") if negated else ("always", ""), P=place, C=("is", "was"))
    return draw.texts(sentence="the Q N P C A M")


@labelled("sentence1", "sentence2")
def mrpc(draw: Draw, label: int, group: int) -> TaskRow:
    """Return a sentence, and a paraphrase (label 1) or a sentence with the same words but another agent (label 0).

    For "Tom and Jane thanked Helen", these are "Jane and Tom thanked Helen" and "Helen and Tom thanked Jane". Solving
    the task requires the roles of the names, because both sentences have the same words.
    """
    draw(A_B_C=NAMES, V=PERSON_VERBS, P=place)
    if not label:
        draw(X_Y=(draw.slots["A"], draw.slots["C"]))
    return draw.texts(sentence1="A and B V C P", sentence2="B and A V C P" if label else "X and Y V B P")


@labelled("question1", "question2")
def qqp(draw: Draw, label: int, group: int) -> TaskRow:
    """Return a question, and an equivalent question (label 1) or a question with exchanged names (label 0).

    For "Does Tom say that Helen saw the cat?", these are "Does Tom say Helen saw the cat?" and "Does Helen say Tom saw
    the cat?". Solving the task requires the roles of the names, because questions with the label 0 and with the label 1
    have the same words.
    """
    draw(A_B=NAMES, S=lexicon.CLAUSAL, V=GENERAL_VERBS, T=THINGS, P=place, L_M=("that", ""))
    second = "does A S.base M B V the T P ?" if label else "does B S.base M A V the T P ?"
    return draw.texts(question1="does A S.base L B V the T P ?", question2=second)


@grouped("sentence1", "sentence2")
def stsb(draw: Draw, group: int) -> list[TaskRow]:
    """Return rows with two sentences; the label, from 0 to 5, is the number of sentence parts that are equal in both.

    The parts are agent, verb, object, place, and preposition. Different objects of one category add half a point.
    Solving the task requires a comparison of the sentences, because a single sentence does not determine the label.
    """
    score = group % 6
    kept = draw.some(range(5), score)
    draw(A0_A1=NAMES, V0_V1=GENERAL_VERBS, T0_T1=THINGS, W0_W1=lexicon.PLACES, R0_R1=lexicon.PLACE_PREPOSITIONS)
    sides = ([0 if part in kept else side for part in range(5)] for side in (0, 1))
    one, other = (draw.text(f"A{a} V{v} the T{t} R{r} the W{w}") for a, v, t, w, r in sides)
    related = 2 not in kept and draw.slots["T0"].category == draw.slots["T1"].category
    return [{"sentence1": one, "sentence2": other, "label": score + 0.5 * related}]


def _schema(draw: Draw) -> tuple[str, list[tuple[str, bool]]]:
    """Return (text with a pronoun, list of the two names in the text); each entry of the list is (name, True if the
    pronoun refers to this name).
    """
    draw(A_=MEN, B_=WOMEN)
    people = draw.some((draw.slots["A"], draw.slots["B"]), 2)
    meant = draw.one(people)
    draw(C=("is", "was"), M=lexicon.MOODS, V=PERSON_VERBS, P=place)
    text = draw.text("{} V {} P".format(*people), f"{lexicon.SUBJECT_PRONOUNS[meant.gender]} C M")
    return text, [(name.word, name is meant) for name in people]


@grouped("text")
def wsc(draw: Draw, group: int) -> list[TaskRow]:
    """Return rows with a text. The label of a row is 1 if the pronoun (span 2) refers to the name (span 1), otherwise
    0.

    Spans are indices of whitespace-separated words.
    """
    text, people = _schema(draw)
    words = text.split()
    pronoun = len(words) - 3
    return [
        {
            "text": text,
            "span1_index": words.index(name),
            "span2_index": pronoun,
            "span1_text": name,
            "span2_text": words[pronoun],
            "label": int(is_meant),
        }
        for name, is_meant in people
    ]


@grouped("sentence1")
def wnli(draw: Draw, group: int) -> list[TaskRow]:
    """Return rows with a text and a copy of the text's second sentence; in the copy, a name replaces the pronoun.

    The label is 1 if the text entails the copy, otherwise 0.
    """
    text, people = _schema(draw)
    return [
        {"sentence1": text, "sentence2": draw.text(f"{name} C M"), "label": int(is_meant)} for name, is_meant in people
    ]


@grouped("premise", "choice1", "choice2")
def copa(draw: Draw, group: int) -> list[TaskRow]:
    """Return rows with an event, and two choices for its effect or cause: "the tool was stolen" is the effect of "Tom
    stole a hammer".

    Solving the task requires the category of a noun, such as that a hammer is a tool. Each row has a mirrored row with
    the same choices, in which the other choice is correct.
    """
    draw(A_=NAMES, V=_TAKING, P=place, T0_T1=_TAKEN)
    while draw.slots["T0"].category == draw.slots["T1"].category:
        draw(T0_T1=_TAKEN)
    draw(Q0=ADJECTIVES, Q1=ADJECTIVES)
    events = draw.each("A V a Q0 T0 P", "A V a Q1 T1 P")
    states = draw.each("the T0.category was V.participle", "the T1.category was V.participle")
    question = ("effect", "cause")[group % 2]
    premises, choices = (events, states) if question == "effect" else (states, events)
    return [
        {"premise": premise, "choice1": choices[0], "choice2": choices[1], "question": question, "label": label}
        for label, premise in enumerate(premises)
    ]


def _where_or_how(draw: Draw) -> Any:
    return draw.slots["P"] if draw.coin() else draw.one(ADJECTIVES)


# For each word, its two senses. A sense consists of the words to draw, and the pattern of a sentence. In the first
# sense, the word is a determiner, a possessive or an auxiliary.
_USES: dict[str, tuple[tuple[dict[str, Any], str], ...]] = {
    "that": (
        ({"V": GENERAL_VERBS}, "A V that T P"),
        ({"V": GENERAL_VERBS, "S": lexicon.CLAUSAL, "F": ("past", "third")}, "A S.F that B V the T"),
    ),
    "her": (({"V": GENERAL_VERBS}, "A V her T P"), ({"V": PERSON_VERBS}, "A V her P")),
}
for _be, _things in (("is", "T"), ("are", "T.plural")):
    _USES[_be] = (
        ({"Q": ADJECTIVES, "V": lexicon.INTRANSITIVE}, f"the Q {_things} {_be} V.progressive P"),
        ({"Q": ADJECTIVES, "R": _where_or_how}, f"the Q {_things} {_be} R"),
    )


@labelled("sentence1", "sentence2")
def wic(draw: Draw, label: int, group: int) -> TaskRow:
    """Return two sentences that contain a word in the same sense (label 1), or in two senses (label 0) as in "saw that
    dog" and "said that ...".

    The words are function words with two senses: that, her, is, are. Solving the task requires the context of the word
    in both sentences, because each sentence alone is equally frequent with both labels.
    """
    word = [*_USES][group % len(_USES)]
    first = draw.one((0, 1))
    row: TaskRow = {"word": word}
    for number, sense in enumerate((first, first if label else 1 - first), 1):
        sources, pattern = _USES[word][sense]
        draw(A_B=NAMES, P=place, T=THINGS, **sources)
        text = draw.text(pattern)
        start = text.index(f" {word} ") + 1
        row |= {f"sentence{number}": text, f"start{number}": start, f"end{number}": start + len(word)}
    return row


@grouped("passage")
def boolq(draw: Draw, group: int) -> list[TaskRow]:
    """Return two rows on one passage of two facts: a question with the answer yes (label 1), and a question with the
    answer no (label 0).

    A question with the answer no combines the two facts: for "Tom found the dog. Helen saw the cat.", it is "Did Helen
    find the dog?".
    """
    draw(A0_A1=NAMES, V0_V1=GENERAL_VERBS, T0_T1=THINGS, n0=NUMBERS, n1=NUMBERS, P0=place, P1=place)
    passage = draw.text(*(f"A{i} V{i} the T{i}.n{i} P{i}" for i in (0, 1)))
    right = draw.one((0, 1))
    mixed = (1 - right, right) if draw.coin() else (right, 1 - right)
    return [
        {"question": draw.text(f"did A{who} V{right}.base the T{what}.n{what} ?"), "passage": passage, "label": label}
        for label, (who, what) in enumerate((mixed, (right, right)))
    ]


@grouped("paragraph")
def multirc(draw: Draw, group: int) -> list[TaskRow]:
    """Return a row for each of eight pairs of a question and an answer: two questions have the same four answers, and
    two of these answers are right for each question.

    Every answer is right for exactly one question, so solving the task requires the agent of each fact.
    """
    draw(A0_A1=NAMES, V=GENERAL_VERBS, T0_T1_T2_T3=THINGS, n0=NUMBERS, n1=NUMBERS, n2=NUMBERS, n3=NUMBERS)
    owners = draw.some((0, 0, 1, 1), 4)
    draw(P0=place, P1=place, P2=place, P3=place)
    paragraph = draw.text(*(f"A{owner} V the T{i}.n{i} P{i}" for i, owner in enumerate(owners)))
    return [
        {
            "paragraph": paragraph,
            "question": draw.text(f"what did A{person} V.base ?"),
            "answer": draw.text(f"the T{i}.n{i}"),
            "idx": {"paragraph": group, "question": 2 * group + person, "answer": 4 * (2 * group + person) + i},
            "label": int(owner == person),
        }
        for person in (0, 1)
        for i, owner in enumerate(owners)
    ]


@grouped("passage")
def record(draw: Draw, group: int) -> list[TaskRow]:
    """Return rows with a query such as "@placeholder found an animal", whose answer is the person that fits the query.

    The three persons found things of three different categories, and each person is equally often the answer. So
    solving the task requires the categories. The passage ends with two lines that `@highlight` introduces.
    """
    draw(A0_A1_A2=NAMES, V=GENERAL_VERBS)
    categories = draw.some(sorted({noun.category for noun in CLASSIFIED}), 3)
    things = [draw.one([noun for noun in CLASSIFIED if noun.category == category]) for category in categories]
    draw(P0=place, P1=place, P2=place, T_U=things, Q=lexicon.QUALITIES, R=lexicon.QUALITIES)
    draw.slots |= {f"T{i}": thing for i, thing in enumerate(things)}
    facts = draw.text(*(f"A{i} V a T{i} P{i}" for i in range(3)))
    highlights = (line.removesuffix(".") for line in draw.each("the T is Q", "the U is R"))
    names, answer = [draw.slots[f"A{i}"].word for i in range(3)], group % 3
    query = draw.text(f"@placeholder V a T{answer}.category").removesuffix(".")
    return [
        {
            "passage": facts + "".join(f"\n@highlight\n{line}" for line in highlights),
            "query": query,
            "entities": names,
            "answers": [names[answer]],
            "idx": {"passage": group, "query": group},
        }
    ]


_CHOSEN = """determiner_noun_agreement_1 determiner_noun_agreement_irregular_1 regular_plural_subject_verb_agreement_1
irregular_past_participle_verbs quantifier_noun_agreement_1 existential_there_agreement"""
_PARADIGMS = tuple(paradigm for paradigm in PARADIGMS if paradigm.uid in _CHOSEN.split())


def acceptability(rng: random.Random, label: int, group: int, split: str) -> TaskRow:
    """Return a sentence that is grammatical (label 1) or violates one constraint (label 0)."""
    pair = choose(rng, _PARADIGMS[group % len(_PARADIGMS)].draw(rng))
    return {"sentence": text_of(pair.good if label else pair.bad), "label": label}


def entailment(rng: random.Random, label: int, group: int, split: str) -> TaskRow:
    """Return a premise and a hypothesis. A noun of the hypothesis has the right grammatical number (label 0,
    entailment) or the wrong grammatical number (label 1, not_entailment).

    "Tom found the mice near the lake" entails "Tom found these mice", but not "Tom found this mouse". In the premise,
    only the form of the noun shows the grammatical number. Every third noun is only in the validation rows, so that the
    score measures knowledge of number from pretraining, not nouns memorised in fine-tuning.
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


TASKS = {"acceptability": acceptability, "entailment": entailment}
"""Tasks with `examples_per_task` training rows. The other tasks have too few rows for a model to learn from."""


def task_rows(name: str, count: int, seed: int, split: str, taken: Container[str]) -> list[TaskRow]:
    """Return `count` different rows, whose labels alternate before the rows are shuffled and numbered.

    The first text of a row is not in `taken`.
    """
    rng = random.Random(f"{seed}/{name}/{split}")
    rows: dict[str, TaskRow] = {}
    while len(rows) < count:
        group, label = divmod(len(rows), 2)
        row = TASKS[name](rng, label, group, split)
        text = next(iter(row.values()))
        if text not in taken:
            rows.setdefault(text, row)
    return shuffled(rng, [*rows.values()])
