"""Independent random streams for evaluations, and the selection of held-out rows.

Each random choice (pairs, held-out rows, order of rows, initial head) has its own seed, which is derived from the run's
seed and the name of the choice with SHA-256. Changing one random choice therefore leaves the others unchanged, and the
seeds are equal on every machine.

Held-out rows are rows of a task's training data on which a run does not train. They are the run's development rows and,
for a task without a validation file, the task's validation rows. Rows with an equal input (a text, or texts read
together) are held out together, as are all rows of one question. Thus, no input and no question occurs both in held-out
rows and in rows on which the run trains.
"""

import hashlib
from collections.abc import Hashable, Sequence

import numpy as np

from hatchery.errors import EvaluationError
from hatchery.evaluation.tasks.example import Example, SpanExample


def derived_seed(seed: int, *purpose: str | int) -> int:
    """Return a seed in [0, 2**63) for the random choice named `purpose`. The seed depends only on the arguments."""
    text = "\x1f".join([str(seed), *map(str, purpose)])
    return int.from_bytes(hashlib.sha256(text.encode("utf-8")).digest()[:8], "little") >> 1


def generator(seed: int, *purpose: str | int) -> np.random.Generator:
    """Return a NumPy random generator with the seed `derived_seed` of the same arguments."""
    return np.random.default_rng(derived_seed(seed, *purpose))


def hold_out(
    groups: Sequence[Hashable], fraction: float, random: np.random.Generator, where: str
) -> tuple[list[int], list[int]]:
    """Return two ascending lists of row positions: the rows that remain, and the held-out rows. `groups` has the group
    of each row.

    `round(fraction * number of distinct groups)` groups are held out, at least one. A group is never divided. Raises
    EvaluationError naming `where` for fewer than two groups, or if all groups would be held out.
    """
    positions: dict[Hashable, list[int]] = {}
    for index, group in enumerate(groups):
        positions.setdefault(group, []).append(index)
    n_held = max(1, round(fraction * len(positions)))
    if n_held >= len(positions):
        raise EvaluationError(
            f"{where}: got {len(positions)} different rows, too few to hold out a fraction of {fraction:g}"
        )
    members = list(positions.values())
    order = random.permutation(len(members)).tolist()
    held = sorted(index for group in order[:n_held] for index in members[group])
    kept = sorted(index for group in order[n_held:] for index in members[group])
    return kept, held


def input_groups(examples: Sequence[Example | SpanExample]) -> list[int]:
    """Return a group index for each example. Examples with equal inputs, and examples with an equal `group` (such as
    one question), have the same index.

    The indices begin at 0, in the order of first occurrence.
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
