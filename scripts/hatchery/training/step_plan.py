"""What every step of a training is, as a function of its number: length, sequences, place in the data, rates.

One plan serves the loop, the loader, estimates of cost and analysis, so they agree on what a run does. Lengths, a ramp
of the batch and a falling rate of masking are entries of it. Sources: docs/papers/ltg-bert.md, "Pretraining", for
longer sequences near the end; docs/papers/gpt-bert.md, "Training", for batches that grow linearly and for a rate of
masking that falls. Nothing here knows the data: how long an epoch is, the loader knows
(`data_order`).
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
    """From 0."""
    sequence_length: int
    """Tokens of a sequence, special ones included."""
    batch_size: int
    """Sequences over all processes, or what else an objective makes batches by."""
    sequences: tuple[int, ...]
    """The batch by the kinds of sequences that the objective has."""
    stretch: int
    """Number, from 0, of the stretch of steps that it belongs to."""
    read: tuple[int, ...]
    """Sequences of each kind that earlier steps of its stretch have read."""
    mask_rate: float | None
    """Share of the tokens that are to be predicted; None where nothing is hidden."""
    learning_rate: float


@dataclass(frozen=True)
class Stretch:
    """Consecutive steps, `first_step` to `last_step - 1`, with sequences of one length."""

    first_step: int
    last_step: int
    sequence_length: int
    # Sequences of each kind that all its steps read.
    sequences: tuple[int, ...]
    # Whether its data begins anew, with the first sequence of the first epoch.
    begins_anew: bool


@dataclass(frozen=True)
class Work:
    """What some steps with sequences of one length compute."""

    sequence_length: int
    # About how many full sequences they are worth.
    sequences: float
    # Mean share of the positions that something is predicted at.
    labelled_share: float


class StepPlan:
    """The steps of one run."""

    def __init__(self, settings: TrainingSettings) -> None:
        """The plan that the settings of a run describe, whatever its data; with a budget, the one that is likely."""
        settings = settings.planned()
        self.settings, steps = settings, settings.steps
        changes = [(0, 1, True)]
        if settings.long_sequence is not None:
            long = settings.long_sequence
            changes.append((math.floor(long.from_fraction * steps), long.factor, True))
        schedule = settings.length_schedule
        changes += [(_completing(change.from_fraction, steps), change.factor, False) for change in schedule]
        ends = [first for first, _, _ in changes[1:]] + [steps]
        # Those without a step are left out; whatever comes first begins with the beginning of the data.
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
        """Steps of the whole run."""
        return self.settings.steps

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths of its sequences, in the order of the steps."""
        return tuple(stretch.sequence_length for stretch in self.stretches)

    @property
    def smallest_batch(self) -> int:
        """The size of the smallest batch."""
        return int(self._batches.min())

    def at(self, number: int) -> Step:
        """Step `number`, from 0."""
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
        """The rate of update `number`, from 0."""
        return learning_rate(self.settings.optimizer.learning_rate, self.settings.schedule, number, self.steps)

    def work(self, first: int = 0, end: int | None = None) -> list[Work]:
        """What the steps from `first` to `end - 1` (None: to the last) compute, by the length of their sequences."""
        found = []
        for stretch in self.stretches:
            start, stop = max(first, stretch.first_step), min(self.steps if end is None else end, stretch.last_step)
            if start < stop:
                sizes, counts = np.unique(self._batches[start:stop], return_counts=True)
                worth = self.settings.objective.sequences_of_step
                length = stretch.sequence_length
                full = [int(count) * worth(int(size), length) for size, count in zip(sizes, counts, strict=True)]
                found.append(Work(length, sum(full), self._labelled_share(start, stop)))
        return found

    def sequences(self, first: int = 0, end: int | None = None) -> float:
        """About how many full sequences these steps are worth."""
        return plain_sum(work.sequences for work in self.work(first, end))

    def tokens(self, first: int = 0, end: int | None = None) -> int:
        """Positions of all sequences of these steps, padding included; of pairs, of both texts."""
        texts = self.settings.objective.texts_of_sequence
        return round(plain_sum(work.sequences * work.sequence_length for work in self.work(first, end))) * texts

    def flops(self, per_sequence: FlopsPerSequence, first: int = 0, end: int | None = None) -> float:
        """Operations of these steps, forward and backward."""
        parts = self.work(first, end)
        return plain_sum(part.sequences * per_sequence(part.sequence_length, part.labelled_share) for part in parts)

    def _read(self, first: int, end: int) -> tuple[int, ...]:
        return tuple((self._until[end] - self._until[first]).tolist())

    def _progress(self, number: float) -> float:
        return number / self.steps

    def _labelled_share(self, first: int, end: int) -> float:
        """The mean over the sequences of these steps; the rate of masking is linear in the number of the step."""
        objective = self.settings.objective
        weights = self._batches[first:end]
        centre = float(np.arange(first, end) @ weights / weights.sum())
        return objective.labelled_share_at(objective.mask_rate(self._progress(centre)))


def _completing(share: float, steps: int) -> int:
    """The step, from 0, with which so large a share of all steps is done: the published rule for its lengths."""
    return bisect_left(range(steps), share, key=lambda step: (step + 1) / steps)


def _ramped(batches: np.ndarray, initial_fraction: float) -> np.ndarray:
    """Batch sizes int64 [steps] that grow linearly to the given ones; halves are rounded up."""
    if initial_fraction == 1:
        return batches
    progress = np.arange(len(batches)) / max(1, len(batches))
    wanted = batches * initial_fraction * (1 - progress) + batches * progress
    return np.floor(wanted + 0.5).astype(np.int64)
