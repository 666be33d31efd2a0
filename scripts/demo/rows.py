"""Draws the rows of a labelled task: whole groups of rows, new to the corpora, never the same twice.

A group is what balances a task, such as two rows that share their words but not their label. Training and scored rows
of one task come from one series of draws, so that no text stands in two of them.
"""

import json
import random
import re
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import Any

from demo.draws import Draw
from hatchery.errors import ConfigError

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
