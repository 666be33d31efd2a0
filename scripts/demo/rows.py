"""Draws the rows of a labelled task: whole groups of rows, new to the corpora, never the same twice.

A group is what balances a task, such as two rows that share their words but not their label. Training and scored rows
of one task come from one series of draws, so that no text stands in two of them.

Two tasks in GLUE's shapes are drawn row by row: acceptability (as CoLA) and entailment (as RTE). Both are balanced, and
neither can be solved from single words: sentences of the one come from mirrored twins, and in the other premise and
hypothesis have the same distribution under both labels, so only their relation decides.
"""

import json
import random
import re
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import Any

from demo.draws import THINGS, Draw
from demo.grammar import EVENT_TENSES, Clause, choose, noun_phrase, pick_adjectives, stated, text_of
from demo.lexicon import NUMBERS
from demo.paradigms import PARADIGMS
from demo.scenes import GENERAL_VERBS, Scene
from hatchery.errors import ConfigError
from hatchery.raw.settings import LONG_TASKS

Row = dict[str, Any]
_SENTENCE_END = re.compile(r"(?<=[.?!])\s+")
# Sentences up to this many words ("Yes.", "It is near the lake.") recur in any text; of them only whole texts count.
_SHORT = 5


@dataclass(frozen=True)
class RowTask:
    """`make` draws the rows of the group with this number; `fresh` names the fields whose texts must be new.

    Fresh fields hold no sentence of the corpora beyond a few words, and those of two groups never agree. Rows stand in
    random order, most with their numbers; those that come numbered (of passages, of pairs) stay as they were drawn.
    """

    make: Callable[[Draw, int], list[Row]]
    fresh: tuple[str, ...]
    name: str = ""
    numbers: bool = True

    def key(self, row: Row) -> tuple[str, ...]:
        """What makes two rows the same, in whatever order they name their texts."""
        return tuple(sorted(row[name] for name in self.fresh))


def grouped(*fresh: str, numbers: bool = True) -> Callable[[Callable[[Draw, int], list[Row]]], RowTask]:
    """The task of a function that makes the rows of a group; it is called like the function."""
    return lambda make: RowTask(make, fresh, make.__name__, numbers)


def labelled(*fresh: str, labels: int = 2) -> Callable[[Callable[[Draw, int, int], Row]], RowTask]:
    """The same of a function that makes the row of one label, without the label; a group has one row for each."""

    def task(make: Callable[[Draw, int, int], Row]) -> RowTask:
        def group_of(draw: Draw, group: int) -> list[Row]:
            return [{**make(draw, label, group), "label": label} for label in range(labels)]

        return RowTask(group_of, fresh, make.__name__)

    return task


def draw_splits(stream: str, splits: Mapping[str, tuple[RowTask, int]], taken: Container[str]) -> dict[str, list[Row]]:
    """For every split its number of rows, rounded down to whole groups (but at least one), shuffled and numbered.

    `stream` names the random draws, seed included. Raises ConfigError when a task cannot make that many.
    """
    seen: set[tuple[str, ...]] = set()
    return {split: _draw(f"{stream}/{split}", *asked, taken, seen) for split, asked in splits.items()}


def _draw(stream: str, task: RowTask, count: int, taken: Container[str], seen: set[tuple[str, ...]]) -> list[Row]:
    rng = random.Random(stream)
    rows: list[Row] = []
    groups = 0
    for _ in range(50 * count + 1000):
        group = task.make(Draw(rng), groups)
        if groups and len(rows) + len(group) > count:
            return rows if rows[0].keys() & {"idx", "row"} else shuffled(rng, rows, task.numbers)
        keys = {task.key(row) for row in group}
        if not keys & seen and not any(_known(row[name], taken) for row in group for name in task.fresh):
            seen |= keys
            rows += group
            groups += 1
    raise ConfigError(f"examples_per_suite_task: {stream} cannot make {count} different rows")


def shuffled(rng: random.Random, rows: list[Row], numbers: bool = True) -> list[Row]:
    """The rows in random order, with their numbers or without."""
    rng.shuffle(rows)
    return [{**row, "idx": index} if numbers else row for index, row in enumerate(rows)]


def _known(text: str, taken: Container[str]) -> bool:
    """Whether the text, or a sentence of it with more than a few words, stands in `taken`."""
    parts = (part for part in _SENTENCE_END.split(text) if len(part.split()) > _SHORT)
    return text in taken or any(part in taken for part in parts)


def json_lines(rows: list[Row]) -> bytes:
    """The rows as a JSON-lines file."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


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
