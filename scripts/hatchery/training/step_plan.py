"""The plan of a training: length, sequences, position in the data and rates of every step, as functions of its number.

The loop, the loader, estimates of cost and analysis use one plan, so they agree on a run's steps. Lengths, a ramp of
the batch size and a falling rate of masking are entries of the plan. Sources: docs/papers/ltg-bert.md, "Pretraining",
for longer sequences near the end; docs/papers/gpt-bert.md, "Training", for batches that grow linearly and for a rate of
masking that falls. The plan is independent of the data: the loader knows the length of an epoch (`data_order`).
"""

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

import numpy as np

from hatchery.modeling.flops import FlopsPerSequence
from hatchery.sums import plain_sum
from hatchery.training.learning_rates import learning_rate
from hatchery.training.settings import TrainingSettings


@dataclass(frozen=True)
class Step:
    """One optimiser step of a run."""

    number: int
    """Number of the step, from 0."""
    sequence_length: int
    """Number of tokens of a sequence, special tokens included."""
    batch_size: int
    """Number of sequences over all processes, or of the objective's other unit of batches."""
    sequences: tuple[int, ...]
    """Batch size by the objective's kinds of sequences."""
    stretch: int
    """Index, from 0, of the stretch of steps."""
    read: tuple[int, ...]
    """Number of sequences of each kind that earlier steps of the stretch have read."""
    mask_rate: float | None
    """Share of tokens to hide; None for an objective without masks."""
    learning_rate: float


@dataclass(frozen=True)
class Stretch:
    """Consecutive steps, `first_step` to `last_step - 1`, with sequences of one length."""

    first_step: int
    last_step: int
    sequence_length: int
    # Number of sequences of each kind that all its steps read.
    sequences: tuple[int, ...]
    # Whether its data begins anew, with the first sequence of the first epoch.
    begins_anew: bool


@dataclass(frozen=True)
class Work:
    """The work of some steps with sequences of one length."""

    sequence_length: int
    # Approximate number of full sequences.
    sequences: float
    # Mean share of positions with a label.
    labelled_share: float


class StepPlan:
    """The steps of one run."""

    def __init__(self, settings: TrainingSettings) -> None:
        """Build the plan for the settings of a run, independent of its data; with a budget, the probable plan."""
        settings = settings.planned()
        self.settings, steps = settings, settings.steps
        changes = [(0, 1, True)]
        if settings.long_sequence is not None:
            long = settings.long_sequence
            changes.append((math.floor(long.from_fraction * steps), long.factor, True))
        schedule = settings.length_schedule
        changes += [(_completing(change.from_fraction, steps), change.factor, False) for change in schedule]
        ends = [first for first, _, _ in changes[1:]] + [steps]
        # Stretches without a step are omitted; the first one begins with the beginning of the data.
        spans = [
            (first, factor, anew or first == 0, end)
            for (first, factor, anew), end in zip(changes, ends, strict=True)
            if first < end
        ]
        factors = np.ones(steps, dtype=np.int64)
        for first, factor, _, end in spans:
            factors[first:end] = factor
        self._batches = _ramped(settings.batch_size // factors, settings.initial_batch_fraction)
        sizes, which = np.unique(self._batches, return_inverse=True)
        n_kinds = len(settings.objective.sequences_of_kinds(settings.batch_size))
        kinds = [settings.objective.sequences_of_kinds(int(size)) for size in sizes]
        by_step = np.array(kinds, dtype=np.int64).reshape(len(sizes), n_kinds)[which]
        self._until = np.concatenate([np.zeros((1, by_step.shape[1]), dtype=np.int64), np.cumsum(by_step, axis=0)])
        self.stretches = tuple(
            Stretch(first, end, settings.sequence_length * factor, self._read(first, end), anew)
            for first, factor, anew, end in spans
        )

    @property
    def steps(self) -> int:
        """Number of steps of the whole run."""
        return self.settings.steps

    @property
    def lengths(self) -> tuple[int, ...]:
        """Lengths of the run's sequences, in the order of the steps."""
        return tuple(stretch.sequence_length for stretch in self.stretches)

    @property
    def smallest_batch(self) -> int:
        """The size of the smallest batch."""
        return int(self._batches.min())

    def at(self, number: int) -> Step:
        """Return step `number`, from 0."""
        stretch = bisect_right(self.stretches, number, key=lambda stretch: stretch.first_step) - 1
        first = self.stretches[stretch].first_step
        return Step(
            number,
            self.stretches[stretch].sequence_length,
            int(self._batches[number]),
            self._read(number, number + 1),
            stretch,
            self._read(first, number),
            self.settings.objective.mask_rate(self._progress(number)),
            self.learning_rate(number),
        )

    def learning_rate(self, number: int) -> float:
        """Return the learning rate of update `number`, from 0."""
        return learning_rate(self.settings.optimizer.learning_rate, self.settings.schedule, number, self.steps)

    def work(self, first: int = 0, end: int | None = None) -> list[Work]:
        """Return the work of the steps from `first` to `end - 1` (None: to the last), by the length of their
        sequences."""
        works = []
        for stretch in self.stretches:
            start, stop = max(first, stretch.first_step), min(self.steps if end is None else end, stretch.last_step)
            if start < stop:
                sizes, counts = np.unique(self._batches[start:stop], return_counts=True)
                worth = self.settings.objective.sequences_of_step
                length = stretch.sequence_length
                full = [int(count) * worth(int(size), length) for size, count in zip(sizes, counts, strict=True)]
                works.append(Work(length, sum(full), self._labelled_share(start, stop)))
        return works

    def sequences(self, first: int = 0, end: int | None = None) -> float:
        """Return the approximate number of full sequences of these steps."""
        return plain_sum(work.sequences for work in self.work(first, end))

    def tokens(self, first: int = 0, end: int | None = None) -> int:
        """Return the number of positions of all sequences of these steps, padding included; for pairs, of both
        texts."""
        texts = self.settings.objective.texts_of_sequence
        return round(plain_sum(work.sequences * work.sequence_length for work in self.work(first, end))) * texts

    def flops(self, per_sequence: FlopsPerSequence, first: int = 0, end: int | None = None) -> float:
        """Return the operations of these steps, forward and backward."""
        parts = self.work(first, end)
        return plain_sum(part.sequences * per_sequence(part.sequence_length, part.labelled_share) for part in parts)

    def _read(self, first: int, end: int) -> tuple[int, ...]:
        return tuple((self._until[end] - self._until[first]).tolist())

    def _progress(self, number: float) -> float:
        return number / self.steps

    def _labelled_share(self, first: int, end: int) -> float:
        """Return the mean labelled share over the sequences of these steps; the rate of masking is linear in the
        step number."""
        objective = self.settings.objective
        weights = self._batches[first:end]
        centre = float(np.arange(first, end) @ weights / weights.sum())
        return objective.labelled_share_at(objective.mask_rate(self._progress(centre)))


def _completing(share: float, steps: int) -> int:
    """Return the step, from 0, that completes this share of all steps: the published rule for its lengths."""
    return bisect_left(range(steps), share, key=lambda step: (step + 1) / steps)


def _ramped(batches: np.ndarray, initial_fraction: float) -> np.ndarray:
    """Return batch sizes int64 [steps] that grow linearly to the given ones; halves are rounded up."""
    if initial_fraction == 1:
        return batches
    progress = np.arange(len(batches)) / max(1, len(batches))
    wanted = batches * initial_fraction * (1 - progress) + batches * progress
    return np.floor(wanted + 0.5).astype(np.int64)
