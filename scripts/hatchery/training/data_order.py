"""The sequences of each training step: a function of seed and step, equal for any number of processes.

An epoch is a permutation of all sequences. Batches are consecutive parts of the concatenated epochs. So no sequence is
skipped, and a batch may contain the end of one epoch and the beginning of the next epoch. Each process reads a
contiguous part of the global batch. No state is stored, because the step number determines the position in the data.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from hatchery.errors import TrainingError
from hatchery.training.step_plan import Step, StepPlan

if TYPE_CHECKING:
    from hatchery.training.examples import Examples
    from hatchery.training.objective import Objective


@dataclass(frozen=True)
class EpochSlice:
    """Sequences of one epoch, in training order; `indices`, int64, are the indices of these sequences among all
    sequences.
    """

    epoch: int
    indices: np.ndarray


@lru_cache(maxsize=4)
def epoch_permutation(seed: int, epoch: int, sequences: int) -> np.ndarray:
    """Return the order of the sequences in epoch number `epoch`: int64 [sequences], read-only.

    The order is the sorting order of raw Philox output, whose stream numpy guarantees in all versions; the result of
    `Generator.permutation` may differ between versions.
    """
    keys = np.random.Philox(np.random.SeedSequence([seed, epoch])).random_raw(sequences)
    order = np.argsort(keys, kind="stable").astype(np.int64)
    order.flags.writeable = False
    return order


EpochOrder = Callable[[int], np.ndarray]
"""A function from the number of an epoch to its sequences in training order, int64 [sequences]."""


def sequences_from(position: int, count: int, sequences: int, order: EpochOrder) -> list[EpochSlice]:
    """Return `count` sequences, beginning at index `position` in the concatenation of all epochs.

    Each epoch has `sequences` sequences; `order` returns the training order of an epoch. Raises TrainingError if
    `sequences` is 0.
    """
    if sequences < 1:
        raise TrainingError(
            "the training split contains no sequence, expected at least one; the corpus has no training text, or "
            "sequence_length is too large"
        )
    slices = []
    while count:
        epoch, start = divmod(position, sequences)
        indices = order(epoch)[start : start + count]
        slices.append(EpochSlice(epoch, indices))
        position += len(indices)
        count -= len(indices)
    return slices


class Placed(Protocol):
    """Sequences of one length, each with the position of its first token among the tokens of the split."""

    def __len__(self) -> int:
        """Number of sequences in an epoch."""
        ...

    def places(self) -> np.ndarray:
        """Index, among the tokens of the split, of each sequence's first token: int64, one index per sequence."""
        ...


class DataOrder:
    """The sequences of each training step, selected by a run's step plan.

    In a hybrid objective, the indices of causal sequences follow the indices of masked sequences.

    By default, an epoch is a random permutation of all sequences. If `length_schedule` changes the sequence length
    within an epoch, the sequences of the new length read the rest of the epoch's text. For this purpose, the text is
    divided into windows, and the random order of the windows is the same at both lengths. A window is as wide as the
    run's longest sequence. If `long_sequence` changes the sequence length, reading starts again with the first sequence
    of the first epoch.
    """

    def __init__(self, plan: StepPlan, seed: int, examples_of_length: Callable[[int], Placed]) -> None:
        self.plan, self.seed, self._examples = plan, seed, examples_of_length
        self._sizes: dict[int, int] = {}
        # Index of a stretch's first sequence in the concatenated epochs, by (index of the stretch, kind of sequence). A
        # stretch is a series of steps with one sequence length.
        self._begins: dict[tuple[int, int], int] = {}
        # Epochs in which the sequence length changes, as (index of the chain, kind of sequence, epoch). The order of
        # these epochs is a random order of windows of the text. A chain is a series of stretches in which each stretch
        # continues the data of the previous stretch.
        self._windowed: set[tuple[int, int, int]] = set()
        self._window_order = lru_cache(maxsize=4)(self._ordered_by_windows)
        self._chain_of = np.cumsum([stretch.begins_anew for stretch in plan.stretches]).tolist()
        self._width = max(plan.lengths, default=1)

    def __call__(self, step: Step) -> list[EpochSlice]:
        """Return the global batch of a step. Raises TrainingError for a split without text."""
        slices = []
        for kind, (count, read) in enumerate(zip(step.sequences, step.read, strict=True)):
            size = self._size(step.sequence_length)
            position = self._begin(step.stretch, kind) + read
            parts = sequences_from(position, count, size, partial(self._epoch, step.stretch, kind))
            slices += [EpochSlice(part.epoch, part.indices + kind * size) for part in parts] if kind else parts
        return slices

    def _size(self, length: int) -> int:
        if length not in self._sizes:
            self._sizes[length] = len(self._examples(length))
        return self._sizes[length]

    def _epoch(self, stretch: int, kind: int, epoch: int) -> np.ndarray:
        length = self.plan.stretches[stretch].sequence_length
        if self._is_windowed(stretch, kind, epoch):
            return self._window_order(length, epoch)[0]
        return epoch_permutation(self.seed, epoch, self._size(length))

    def _is_windowed(self, stretch: int, kind: int, epoch: int) -> bool:
        # Compute all later stretches of the chain first: if the sequence length changes within an epoch, this epoch is
        # ordered by windows from its beginning.
        chain = self._chain_of[stretch]
        last = len(self._chain_of) - 1 - self._chain_of[::-1].index(chain)
        self._begin(last, kind)
        return (chain, kind, epoch) in self._windowed

    def _begin(self, stretch: int, kind: int) -> int:
        """Return the index of the first sequence that a stretch reads, counted over all epochs. A stretch is a range of
        steps with one sequence length.

        `kind` is 1 for the causal sequences of a hybrid objective, and 0 for all other sequences. The returned index is
        0 if the stretch begins again with the first epoch. Otherwise, it is the first index after the text that the
        previous stretch has read.
        """
        if self.plan.stretches[stretch].begins_anew:
            return 0
        if (stretch, kind) not in self._begins:
            before, length = self.plan.stretches[stretch - 1], self.plan.stretches[stretch].sequence_length
            size = self._size(before.sequence_length)
            if size < 1:
                return 0
            epoch, read = divmod(self._begin(stretch - 1, kind) + before.sequences[kind], size)
            begin = epoch * self._size(length)
            if read:
                self._windowed.add((self._chain_of[stretch], kind, epoch))
                begin += self._unread_from(before.sequence_length, read, length, epoch)
            self._begins[stretch, kind] = begin
        return self._begins[stretch, kind]

    def _unread_from(self, length: int, read: int, longer: int, epoch: int) -> int:
        """Return the number of sequences of length `longer` that precede, in an epoch, the sequence of length `length`
        with the index `read`. The epoch reads windows (ranges of the text) in random order, which is the same at both
        lengths.
        """
        _, keys, places = self._window_order(length, epoch)
        _, longer_keys, longer_places = self._window_order(longer, epoch)
        key, place = keys[read], places[read]
        return int(((longer_keys < key) | ((longer_keys == key) & (longer_places < place))).sum())

    def _ordered_by_windows(self, length: int, epoch: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return three arrays for an epoch that reads windows of the text in random order: the indices of the sequences
        in this order, the random number of each sequence's window, and the position of each sequence in the text.
        """
        places = self._examples(length).places()
        windows = places // self._width
        # Each window gets the same random number at every sequence length, because the first numbers of the generator's
        # stream do not depend on the number of draws.
        draws = np.random.Philox(np.random.SeedSequence([self.seed, epoch, 1])).random_raw(int(windows.max()) + 1)
        keys = draws[windows]
        order = np.lexsort((places, keys)).astype(np.int64)
        return order, keys[order], places[order]


def first_of_share(total: int, rank: int, world_size: int) -> int:
    """Return the index, from 0, of the first sequence of process `rank` in the global batch; for `rank` = `world_size`,
    return `total`.
    """
    return rank * total // world_size


def share_of_process(slices: list[EpochSlice], rank: int, world_size: int) -> list[EpochSlice]:
    """Return the share of process `rank`: contiguous sequences of the global batch `slices`.

    Sizes of shares differ by at most one sequence. Raises TrainingError if there are more processes than sequences.
    """
    total = sum(len(part.indices) for part in slices)
    if total < world_size:
        raise TrainingError(
            f"got a batch of {total} sequences for {world_size} processes, expected at least one sequence for each "
            "process"
        )
    return _cut(slices, *(first_of_share(total, number, world_size) for number in (rank, rank + 1)))


def micro_batches(slices: list[EpochSlice], micro_batch_size: int | None) -> list[list[EpochSlice]]:
    """Divide the sequences of one process, `slices`, into micro-batches of at most `micro_batch_size` sequences, in
    order; None returns one micro-batch.
    """
    total = sum(len(part.indices) for part in slices)
    size = micro_batch_size or total
    return [_cut(slices, start, min(start + size, total)) for start in range(0, total, size)]


def _cut(slices: list[EpochSlice], start: int, stop: int) -> list[EpochSlice]:
    pieces, offset = [], 0
    for part in slices:
        indices = part.indices[max(0, start - offset) : max(0, stop - offset)]
        if len(indices):
            pieces.append(EpochSlice(part.epoch, indices))
        offset += len(part.indices)
    return pieces


Order = Callable[[Step], list[EpochSlice]]
"""A function from a step to the sequences of its global batch."""


@runtime_checkable
class OrdersItself(Protocol):
    """An objective that defines its own data order; the sizes of its batches may differ from the batch sizes of the
    step plan.
    """

    def order(self, plan: StepPlan, seed: int, examples_of_length: Callable[[int], Any]) -> Order:
        """Return the function that selects the sequences of each step."""
        ...

    def epochs(self, examples: Any, plan: StepPlan) -> float:
        """Return the number of times that a run reads each sequence of `examples`. These sequences have the sequence
        length of the run's first step.
        """
        ...


def epochs_of(objective: "Objective", examples: "Examples", plan: StepPlan) -> float:
    """Return the number of times that a run reads each sequence of `examples`. These sequences have the sequence length
    of the run's first step.
    """
    if isinstance(objective, OrdersItself):
        return objective.epochs(examples, plan)
    # Count tokens instead of sequences, because the number of tokens per epoch does not depend on the sequence length.
    return plan.tokens() / objective.settings.texts_of_sequence / plan.lengths[0] / max(1, len(examples))
