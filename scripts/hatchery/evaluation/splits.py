"""Holding rows out: the development rows of a seed, the validation rows of a task that has no file of them.

Equal inputs always stay together, and so does what is judged together: no repeated text lies on both sides, and no
question is divided.
"""

from collections.abc import Hashable, Sequence

import numpy as np

from hatchery.errors import EvaluationError
from hatchery.evaluation.tasks.example import Example, SpanExample


def hold_out(
    groups: Sequence[Hashable], fraction: float, random: np.random.Generator, where: str
) -> tuple[list[int], list[int]]:
    """Split positions into (kept, held out), both ascending.

    `round(fraction * number of distinct groups)` groups are held out, at least one; a group is never divided.
    Raises EvaluationError naming `where` when fewer than two groups exist or none would be kept.
    """
    positions: dict[Hashable, list[int]] = {}
    for index, group in enumerate(groups):
        positions.setdefault(group, []).append(index)
    n_held = max(1, round(fraction * len(positions)))
    if n_held >= len(positions):
        raise EvaluationError(f"{where}: {len(positions)} different rows are too few to hold out {fraction:g} of them")
    members = list(positions.values())
    order = random.permutation(len(members)).tolist()
    held = sorted(index for group in order[:n_held] for index in members[group])
    kept = sorted(index for group in order[n_held:] for index in members[group])
    return kept, held


def input_groups(examples: Sequence[Example | SpanExample]) -> list[int]:
    """A number per row, the same for rows that must stay together: of equal inputs, or of one group (a question).

    Numbers count from 0 in the order of the first rows.
    """
    leaders: dict[Hashable, int] = {}
    parents: list[int] = []

    def root(index: int) -> int:
        while parents[index] != index:
            parents[index] = parents[parents[index]]
            index = parents[index]
        return index

    for index, example in enumerate(examples):
        parents.append(index)
        for key in _together(example):
            parents[root(index)] = root(leaders.setdefault(key, index))
    numbers: dict[int, int] = {}
    return [numbers.setdefault(root(index), len(numbers)) for index in range(len(examples))]


def _together(example: Example | SpanExample) -> list[Hashable]:
    if isinstance(example, SpanExample):
        return [example.words]
    return [example.inputs, example.group] if example.group else [example.inputs]
