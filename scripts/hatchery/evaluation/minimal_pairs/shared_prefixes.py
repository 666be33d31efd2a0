"""Share the computation of common prefixes among texts that are scored from left to right.

The result is exact if a token's state depends only on this token and earlier tokens, as in causal models. Examples of
texts with common prefixes are the options after one prefix (entity tracking), the targets in one context (EWoK), and
the sentences of a pair that differ only at the end. After the prefix, the texts of a batch are padded to the longest
one; no scored token sees the padding.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

LEAST_SHARED = 8
"""Smallest number of shared tokens for which sharing saves time, because sharing needs a second call of the model,
which takes as long as the computation of some tokens.
"""


@dataclass(frozen=True)
class Group:
    """A group of inputs with equal beginnings: `members` are the inputs' indices, and their first `shared` tokens are
    equal.
    """

    shared: int
    members: tuple[int, ...]
    longest: int
    """Number of tokens of the group's longest input."""


def groups_of(inputs: Sequence[tuple[int, ...]]) -> list[Group]:
    """Return groups of inputs with a common prefix; an input is in at most one group. An input is in no group if it
    shares fewer than LEAST_SHARED tokens with its neighbours in sorted order.

    Inputs are visited in sorted order. The next input joins the current group if this increases the number of tokens
    that need not be computed again.
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
    """Return the number of leading tokens that two inputs share; `most` if they share more than `most` tokens."""
    most = min(most, len(other))
    if one[:most] == other[:most]:
        return most
    return next(index for index in range(most) if one[index] != other[index])


@dataclass(frozen=True)
class SharedBatch:
    """Groups with shared prefixes of equal length.

    `prefixes` int64 [G, P] has a row for each group. The batch has S texts: `of` int64 [S] is the index of each text's
    prefix, `rest` int64 [S, R] contains each text's tokens after the prefix, and `members` are the indices of the texts
    among all inputs.
    """

    prefixes: np.ndarray
    of: np.ndarray
    rest: np.ndarray
    members: tuple[int, ...]

    def places(self, columns: np.ndarray, text: np.ndarray) -> np.ndarray:
        """Return, for each k, the flat position in this batch of token `columns[k]` of text `text[k]`. Both arguments
        are int64 [K]. Token 0 of a text is the first token of its prefix.

        Positions are counted over the tokens of all prefixes first, then over the tokens after the prefixes, text by
        text.
        """
        n_groups, shared = self.prefixes.shape
        in_prefix = self.of[text] * shared + columns
        behind = n_groups * shared + text * self.rest.shape[1] + columns - shared
        return np.where(columns < shared, in_prefix, behind)


def batches_of(
    groups: Sequence[Group], inputs: Sequence[tuple[int, ...]], tokens_per_batch: int
) -> Iterator[SharedBatch]:
    """Yield the groups in batches of at most `tokens_per_batch` tokens, padding included, but always at least one
    group.
    """
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
