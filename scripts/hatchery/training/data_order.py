"""The sequences of each optimiser step: a pure function of (seed, step), the same for any number of processes.

An epoch is a permutation of all sequences, and batches run through the concatenation of the epochs' permutations, so no
sequence is dropped and a batch may begin in one epoch and end in the next. A process takes a contiguous share of the
global batch. Nothing is stored to resume: the step number determines the position in the data.
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
    """Sequences of one epoch, in training order; `indices` is int64."""

    epoch: int
    indices: np.ndarray


@lru_cache(maxsize=4)
def epoch_permutation(seed: int, epoch: int, sequences: int) -> np.ndarray:
    """Return the order of epoch number `epoch`: int64 [sequences], read-only.

    Sorting the raw output of the Philox generator, whose stream numpy guarantees, gives the same order with every numpy
    version; `Generator.permutation` promises that for one version only.
    """
    keys = np.random.Philox(np.random.SeedSequence([seed, epoch])).random_raw(sequences)
    order = np.argsort(keys, kind="stable").astype(np.int64)
    order.flags.writeable = False
    return order


EpochOrder = Callable[[int], np.ndarray]
"""Returns the sequences of an epoch by its number, in training order: int64 [sequences]."""


def sequences_from(position: int, count: int, sequences: int, order: EpochOrder) -> list[EpochSlice]:
    """Return `count` sequences from index `position` on in the concatenation of the epochs; each epoch has `sequences`
    sequences.

    Raises TrainingError if there is no sequence at all.
    """
    if sequences < 1:
        raise TrainingError("the training split holds no sequence; is the corpus empty or the sequence too long?")
    slices = []
    while count:
        epoch, start = divmod(position, sequences)
        indices = order(epoch)[start : start + count]
        slices.append(EpochSlice(epoch, indices))
        position += len(indices)
        count -= len(indices)
    return slices


class Placed(Protocol):
    """Sequences of one length with their positions in the text."""

    def __len__(self) -> int:
        """Number of sequences in an epoch."""
        ...

    def places(self) -> np.ndarray:
        """The index in the split of each sequence's first token, int64 [len]."""
        ...


class DataOrder:
    """The sequences of each step of a plan; indices of a second kind of sequences (hybrid objective) follow all indices
    of the first kind.

    If the sequence length grows within an epoch, the longer sequences continue with the text that the epoch has not
    read yet. So that the unread text does not depend on the sequence length, this epoch reads windows of the text, as
    wide as the longest sequence, in a random order; all other epochs are permutations of all sequences.
    """

    def __init__(self, plan: StepPlan, seed: int, examples_of_length: Callable[[int], Placed]) -> None:
        self.plan, self.seed, self._examples = plan, seed, examples_of_length
        self._sizes: dict[int, int] = {}
        # The start of each (stretch of constant length, kind of sequences) in the concatenation of its epochs.
        self._begins: dict[tuple[int, int], int] = {}
        # The epochs that read windows, as (chain of stretches, kind of sequences, epoch).
        self._windowed: set[tuple[int, int, int]] = set()
        self._window_order = lru_cache(maxsize=4)(self._ordered_by_windows)
        self._chain_of = np.cumsum([stretch.begins_anew for stretch in plan.stretches]).tolist()
        self._width = max(plan.lengths, default=1)

    def __call__(self, step: Step) -> list[EpochSlice]:
        """Return the global batch of a step, a pure function of its number; raises TrainingError for a split without
        text."""
        slices = []
        for kind, (count, read) in enumerate(zip(step.sequences, step.read, strict=True)):
            size = self._size(step.sequence_length)
            position = self._begin(step.stretch, kind) + read
            parts = sequences_from(position, count, size, partial(self._epoch, step.stretch, kind))
            slices += [EpochSlice(part.epoch, part.indices + kind * size) for part in parts] if kind else parts
        return slices

    def epochs(self) -> float:
        """Return the number of times that all steps together read each sequence, summed over the kinds of sequences."""
        sums = (sum(stretch.sequences) / max(1, self._size(stretch.sequence_length)) for stretch in self.plan.stretches)
        return sum(sums)

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
        # All changes of length in a chain of stretches are checked, because an epoch reads windows from its beginning.
        chain = self._chain_of[stretch]
        last = len(self._chain_of) - 1 - self._chain_of[::-1].index(chain)
        self._begin(last, kind)
        return (chain, kind, epoch) in self._windowed

    def _begin(self, stretch: int, kind: int) -> int:
        """Return the index of a stretch's first sequence in the concatenation of its epochs: 0, or the index after the
        text read by the previous stretch."""
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
        """Return the number of an epoch's sequences of length `longer` that begin in the text of its first `read`
        sequences of `length`."""
        _, keys, places = self._window_order(length, epoch)
        _, longer_keys, longer_places = self._window_order(longer, epoch)
        key, place = keys[read], places[read]
        return int(((longer_keys < key) | ((longer_keys == key) & (longer_places < place))).sum())

    def _ordered_by_windows(self, length: int, epoch: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the sequences of an epoch in the order of their windows, with the random draw of each sequence's
        window and the sequence's position in the text."""
        places = self._examples(length).places()
        windows = places // self._width
        # A generator's stream does not depend on the number of draws, so a window has the same draw at all sequence
        # lengths.
        draws = np.random.Philox(np.random.SeedSequence([self.seed, epoch, 1])).random_raw(int(windows.max()) + 1)
        keys = draws[windows]
        order = np.lexsort((places, keys)).astype(np.int64)
        return order, keys[order], places[order]


def first_of_share(total: int, rank: int, world_size: int) -> int:
    """Return the index, from 0, of process `rank`'s first sequence among `total` sequences; `rank` = `world_size`
    returns total."""
    return rank * total // world_size


def share_of_process(slices: list[EpochSlice], rank: int, world_size: int) -> list[EpochSlice]:
    """Return the contiguous share of process `rank`; the shares of all ranks, in order, are the global batch.

    Sizes of shares differ by at most one sequence. Raises TrainingError if there are more processes than sequences.
    """
    total = sum(len(part.indices) for part in slices)
    if total < world_size:
        raise TrainingError(f"a batch of {total} sequences cannot be shared by {world_size} processes")
    return _cut(slices, *(first_of_share(total, number, world_size) for number in (rank, rank + 1)))


def micro_batches(slices: list[EpochSlice], micro_batch_size: int | None) -> list[list[EpochSlice]]:
    """Divide a share into pieces of at most `micro_batch_size` sequences, in order; None means one piece."""
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
"""Returns the sequences of the global batch of a step, a pure function of the step."""


@runtime_checkable
class OrdersItself(Protocol):
    """An objective with its own data order, whose numbers of sequences per batch may differ from the plan's."""

    def order(self, plan: StepPlan, seed: int, examples_of_length: Callable[[int], Any]) -> Order:
        """Return the function that selects the sequences of each step."""
        ...

    def epochs(self, examples: Any, plan: StepPlan) -> float:
        """Return the number of times that a run reads each of the examples, which are those of its first length."""
        ...


def epochs_of(objective: "Objective", examples: "Examples", plan: StepPlan) -> float:
    """Return the number of times that a run reads each of the examples, which are those of its first length."""
    if isinstance(objective, OrdersItself):
        return objective.epochs(examples, plan)
    # Tokens are counted, because longer sequences are fewer but have the same number of tokens per epoch.
    return plan.tokens() / objective.settings.texts_of_sequence / plan.lengths[0] / max(1, len(examples))
