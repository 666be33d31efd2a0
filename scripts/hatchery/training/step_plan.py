"""The plan of a training: sequence length, batch size, number of sequences read, masking rate and learning rate as
functions of the step.

The training loop, the loader, cost estimates and analysis use the same plan. The plan does not depend on the data; the
number of sequences in an epoch is known only to `data_order`. Sources: docs/papers/ltg-bert.md, "Pretraining", for
longer sequences at the end; docs/papers/gpt-bert.md, "Training", for linearly growing batches and a falling masking
rate.
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
    """An optimiser step of a run."""

    number: int
    """Number of the step, from 0."""
    sequence_length: int
    """Number of tokens of a sequence, special tokens included."""
    batch_size: int
    """Number of sequences in the global batch, or number of target tokens if the objective's batch size counts
    tokens."""
    sequences: tuple[int, ...]
    """Number of sequences of each kind (masked, causal) that the objective has."""
    stretch: int
    """Index, from 0, of the step's stretch (consecutive steps with one sequence length)."""
    read: tuple[int, ...]
    """Number of sequences of each kind that the stretch has read before this step."""
    mask_rate: float | None
    """Share of tokens to mask; None for an objective without masks."""
    learning_rate: float


@dataclass(frozen=True)
class Stretch:
    """A stretch: consecutive steps, `first_step` to `last_step - 1`, with sequences of one length."""

    first_step: int
    last_step: int
    sequence_length: int
    # Number of sequences of each kind in all steps of the stretch.
    sequences: tuple[int, ...]
    # True if the stretch begins again with the first sequence of the first epoch.
    begins_anew: bool


@dataclass(frozen=True)
class Work:
    """The amount of computation in a series of steps with one sequence length: the number of sequences, and the share
    of their positions that have a label.
    """

    sequence_length: int
    # Approximate number of sequences, computed as if all sequences were full.
    sequences: float
    # Mean share of positions with a label.
    labelled_share: float


class StepPlan:
    """The plan of a run's steps."""

    def __init__(self, settings: TrainingSettings) -> None:
        """`settings` are a run's settings; a budget is replaced by an estimated number of steps."""
        settings = settings.planned()
        self.settings, steps = settings, settings.steps
        changes = [(0, 1, True)]
        if settings.long_sequence is not None:
            long = settings.long_sequence
            changes.append((math.floor(long.from_fraction * steps), long.factor, True))
        schedule = settings.length_schedule
        changes += [(_completing(change.from_fraction, steps), change.factor, False) for change in schedule]
        ends = [first for first, _, _ in changes[1:]] + [steps]
        # Stretches without steps are left out. The first stretch always begins with the first sequence.
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
        """Number of steps of the run."""
        return self.settings.steps

    @property
    def lengths(self) -> tuple[int, ...]:
        """Sequence lengths of the run, in the order of the steps."""
        return tuple(stretch.sequence_length for stretch in self.stretches)

    @property
    def smallest_batch(self) -> int:
        """Size of the smallest batch of the run, in sequences or in target tokens (see `Step.batch_size`)."""
        return int(self._batches.min())

    def at(self, number: int) -> Step:
        """Return step number `number`, counted from 0."""
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
        """Return the learning rate of step number `number`, counted from 0."""
        return learning_rate(self.settings.optimizer.learning_rate, self.settings.schedule, number, self.steps)

    def work(self, first: int = 0, end: int | None = None) -> list[Work]:
        """Return the amount of computation in the steps from `first` to `end - 1` (None: to the last step), one entry
        for each stretch of steps with one sequence length.
        """
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
        """Return the number of sequences in the steps from `first` to `end - 1`. If batches have a maximum number of
        tokens instead of a number of sequences, the result assumes sequences of the maximum length.
        """
        return plain_sum(work.sequences for work in self.work(first, end))

    def tokens(self, first: int = 0, end: int | None = None) -> int:
        """Return the number of token positions, including padding, in the steps from `first` to `end - 1`.

        In a translation pair and in a preference pair, the positions of both texts count.
        """
        texts = self.settings.objective.texts_of_sequence
        return round(plain_sum(work.sequences * work.sequence_length for work in self.work(first, end))) * texts

    def flops(self, per_sequence: FlopsPerSequence, first: int = 0, end: int | None = None) -> float:
        """Return the FLOPs of the forward and backward passes of the steps from `first` to `end - 1`. `per_sequence`
        returns the FLOPs of one sequence, given its length and its share of positions with a label.
        """
        rows, parts = self.settings.objective.rows_of_sequence, self.work(first, end)
        per_row = (per_sequence(part.sequence_length, part.labelled_share) for part in parts)
        return plain_sum(rows * part.sequences * flops for part, flops in zip(parts, per_row, strict=True))

    def _read(self, first: int, end: int) -> tuple[int, ...]:
        return tuple((self._until[end] - self._until[first]).tolist())

    def _progress(self, number: float) -> float:
        return number / self.steps

    def _labelled_share(self, first: int, end: int) -> float:
        """Return the mean share of labelled positions in the steps from `first` to `end - 1`.

        The masking rate is linear in the step number, so the rate at the mean step is used.
        """
        objective = self.settings.objective
        weights = self._batches[first:end]
        centre = float(np.arange(first, end) @ weights / weights.sum())
        return objective.labelled_share_at(objective.mask_rate(self._progress(centre)))


def _completing(share: float, steps: int) -> int:
    """Return the index, from 0, of the step that completes the share `share` of `steps` steps: the smallest i such that
    (i + 1) / `steps` is at least `share`. GPT-BERT's code uses the same rule.
    """
    return bisect_left(range(steps), share, key=lambda step: (step + 1) / steps)


def _ramped(batches: np.ndarray, initial_fraction: float) -> np.ndarray:
    """Return batch sizes, int64 [steps]: the entries of `batches`, each multiplied by a factor. The factor grows
    linearly from `initial_fraction` at the first step, and would be 1 at the step after the last step. Halves are
    rounded up.
    """
    if initial_fraction == 1:
        return batches
    progress = np.arange(len(batches)) / max(1, len(batches))
    wanted = batches * initial_fraction * (1 - progress) + batches * progress
    return np.floor(wanted + 0.5).astype(np.int64)
