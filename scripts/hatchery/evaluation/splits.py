"""Holding rows out: the development rows of a seed, the validation rows of a task that has no file of them.

Equal inputs always stay together, so a repeated text never lies on both sides.
"""

from collections.abc import Hashable, Sequence

import numpy as np

from hatchery.errors import EvaluationError
from hatchery.evaluation.tasks.example import Example


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


def input_groups(examples: Sequence[Example]) -> list[tuple[str, ...]]:
    """What makes two rows the same input: their texts, whatever their labels."""
    return [example.segments for example in examples]
