"""Which sequences each optimiser step sees: a pure function of (seed, step), the same on 1 or 128 processes.

An epoch is a permutation of all sequences, and batches run through the concatenation of the epochs' permutations, so
no tail is dropped and a batch may begin in one epoch and end in the next. A process takes a contiguous share of the
global batch. Nothing has to be stored to resume: the step number says where the data stand.
"""

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from hatchery.errors import TrainingError
from hatchery.training.settings import PretrainSettings


@dataclass(frozen=True)
class Phase:
    """Consecutive steps with one sequence length: steps `first_step` to `last_step - 1`."""

    first_step: int
    last_step: int
    # Subwords per sequence.
    sequence_length: int
    # Sequences per step over all processes, or what else an objective makes batches by.
    batch_size: int
    # About how many full sequences a step is worth; None: as many as `batch_size` says.
    full_sequences: float | None = field(default=None, compare=False)

    @property
    def sequences_per_step(self) -> float:
        """How many sequences of that length a step has, for the count of operations."""
        return self.batch_size if self.full_sequences is None else self.full_sequences


@dataclass(frozen=True)
class EpochSlice:
    """Sequences of one epoch, in training order; `indices` is int64."""

    epoch: int
    indices: np.ndarray


def training_phases(settings: PretrainSettings) -> list[Phase]:
    """The short phase, then, at `floor(from_fraction * steps)`, the long one with longer and fewer sequences.

    Both have the same number of tokens per step, and the optimiser state passes through (docs/papers/ltg-bert.md,
    "Pretraining"). Phases without a step are left out.
    """
    long = settings.long_sequence
    if long is None:
        phases = [Phase(0, settings.steps, settings.sequence_length, settings.batch_size)]
    else:
        switch = math.floor(long.from_fraction * settings.steps)
        phases = [
            Phase(0, switch, settings.sequence_length, settings.batch_size),
            Phase(switch, settings.steps, settings.sequence_length * long.factor, settings.batch_size // long.factor),
        ]
    worth = settings.objective.sequences_of_step
    return [
        replace(phase, full_sequences=worth(phase.batch_size, phase.sequence_length))
        for phase in phases
        if phase.last_step > phase.first_step
    ]


def phases_from(phases: list[Phase], first_step: int) -> list[Phase]:
    """What is left of the phases for a run whose first `first_step` steps are done."""
    rest = [replace(phase, first_step=max(phase.first_step, first_step)) for phase in phases]
    return [phase for phase in rest if phase.last_step > phase.first_step]


@lru_cache(maxsize=4)
def epoch_permutation(seed: int, epoch: int, sequences: int) -> np.ndarray:
    """The order of epoch number `epoch`: int64 [sequences], read-only.

    Sorting the raw output of the Philox generator, whose stream numpy guarantees, gives the same order with every
    numpy version; `Generator.permutation` promises that for one version only.
    """
    keys = np.random.Philox(np.random.SeedSequence([seed, epoch])).random_raw(sequences)
    order = np.argsort(keys, kind="stable").astype(np.int64)
    order.flags.writeable = False
    return order


def global_batch(seed: int, step: int, batch_size: int, sequences: int) -> list[EpochSlice]:
    """The global batch of a phase's step number `step` (from 0): `batch_size` sequences from one or more epochs.

    Raises TrainingError when there is no sequence at all.
    """
    if sequences < 1:
        raise TrainingError("the training split holds no sequence; is the corpus empty or the sequence too long?")
    position, slices, missing = step * batch_size, [], batch_size
    while missing:
        epoch, start = divmod(position, sequences)
        indices = epoch_permutation(seed, epoch, sequences)[start : start + missing]
        slices.append(EpochSlice(epoch, indices))
        position += len(indices)
        missing -= len(indices)
    return slices


def first_of_share(total: int, rank: int, world_size: int) -> int:
    """The number, from 0, of the first of `total` sequences that is process `rank`'s; that of `world_size` is total."""
    return rank * total // world_size


def share_of_process(slices: list[EpochSlice], rank: int, world_size: int) -> list[EpochSlice]:
    """The contiguous share of process `rank`; the shares of all ranks, in order, are the global batch.

    Sizes differ by at most one sequence. Raises TrainingError when there are more processes than sequences.
    """
    total = sum(len(part.indices) for part in slices)
    if total < world_size:
        raise TrainingError(f"a batch of {total} sequences cannot be shared by {world_size} processes")
    return _cut(slices, *(first_of_share(total, number, world_size) for number in (rank, rank + 1)))


def micro_batches(slices: list[EpochSlice], micro_batch_size: int | None) -> list[list[EpochSlice]]:
    """Cut a share into pieces of at most `micro_batch_size` sequences, in order; null means one piece."""
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
