"""Texts from left to right that begin alike: what they share is computed once, and each goes on from there.

Exact wherever a token's state depends on itself and on the tokens before it alone: so it is in causal models. Options
behind one prefix (entity tracking), one context with several targets (EWoK) and pairs that differ at the end are such
texts. What a text has behind the shared part is padded to the longest of its batch, where nobody looks.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

LEAST_SHARED = 8
"""Tokens that texts must share for it to pay: the second call costs as much as some tokens."""


@dataclass(frozen=True)
class Group:
    """The texts `members`, by their numbers, whose inputs have the same first `shared` tokens."""

    shared: int
    members: tuple[int, ...]
    longest: int
    """Tokens of the longest of the inputs."""


def groups_of(inputs: Sequence[tuple[int, ...]]) -> list[Group]:
    """Inputs that begin alike, each in one group at most; those that share too little with any are in none.

    A group takes the next input, in the order of their tokens, as long as that saves more than to begin a new one.
    """
    order = sorted(range(len(inputs)), key=inputs.__getitem__)
    groups: list[Group] = []
    members: list[int] = []
    shared = 0

    def close() -> None:
        if len(members) > 1:
            longest = max(len(inputs[member]) for member in members)
            groups.append(Group(shared, tuple(members), longest))

    for number in order:
        common = _common(inputs[members[0]], inputs[number], shared) if members else 0
        if common >= LEAST_SHARED and len(members) * common > (len(members) - 1) * shared:
            members.append(number)
            shared = common
        else:
            close()
            members, shared = [number], len(inputs[number])
    close()
    return groups


def _common(one: tuple[int, ...], other: tuple[int, ...], most: int) -> int:
    """How many first tokens are the same, at most `most`."""
    most = min(most, len(other))
    if one[:most] == other[:most]:
        return most
    return next(index for index in range(most) if one[index] != other[index])


@dataclass(frozen=True)
class SharedBatch:
    """Groups with equally long shared parts: `prefixes` int64 [G, P], of each text its group `of` int64 [S], and the
    inputs behind that, `rest` int64 [S, R]; `members` are the numbers of the texts."""

    prefixes: np.ndarray
    of: np.ndarray
    rest: np.ndarray
    members: tuple[int, ...]

    def places(self, columns: np.ndarray, text: np.ndarray) -> np.ndarray:
        """Where the inputs at `columns` int64 [K] of the texts `text` int64 [K] (of this batch) stand, all laid out.

        First all prefixes, one behind the other, then all rests.
        """
        n_groups, shared = self.prefixes.shape
        in_prefix = self.of[text] * shared + columns
        behind = n_groups * shared + text * self.rest.shape[1] + columns - shared
        return np.where(columns < shared, in_prefix, behind)


def batches_of(
    groups: Sequence[Group], inputs: Sequence[tuple[int, ...]], tokens_per_batch: int
) -> Iterator[SharedBatch]:
    """The groups in batches of at most `tokens_per_batch` tokens, padding included, but always one group."""
    waiting: list[Group] = []
    for group in sorted(groups, key=lambda one: (one.shared, one.longest, one.members)):
        if waiting:
            same = waiting[0].shared == group.shared
            n_texts = sum(len(one.members) for one in waiting) + len(group.members)
            tokens = (len(waiting) + 1) * group.shared + n_texts * (group.longest - group.shared)
            if not same or tokens > tokens_per_batch:
                yield _batch(waiting, inputs)
                waiting = []
        waiting.append(group)
    if waiting:
        yield _batch(waiting, inputs)


def _batch(groups: Sequence[Group], inputs: Sequence[tuple[int, ...]]) -> SharedBatch:
    shared = groups[0].shared
    members = tuple(member for group in groups for member in group.members)
    rest = np.zeros((len(members), max(group.longest for group in groups) - shared), dtype=np.int64)
    for row, member in enumerate(members):
        behind = inputs[member][shared:]
        rest[row, : len(behind)] = behind
    prefixes = np.array([inputs[group.members[0]][:shared] for group in groups], dtype=np.int64)
    of = np.repeat(np.arange(len(groups)), [len(group.members) for group in groups])
    return SharedBatch(prefixes, of, rest, members)
