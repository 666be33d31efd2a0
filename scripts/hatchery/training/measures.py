"""What each step measured, kept on the device until somebody asks, then read for many steps in one transfer.

A loss that is read is a wait for the device, and a device that is waited for stands still afterwards. So losses, right
answers and norms of a step stay where they were computed; sums over processes are taken when they are read. Which
mean is the loss: over all labelled tokens of the global batch, or, as the papers' code does it, the mean of the means
of the processes, in which a token weighs the more the fewer its process has.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from hatchery.errors import TrainingError
from hatchery.training.batches import StepBatch
from hatchery.training.collectives import on_device, sum_tensor_over_processes
from hatchery.training.engine import Update
from hatchery.training.objective import Columns, Term
from hatchery.training.topology import Topology

LossAverage = Literal["tokens", "processes"]
Divisors = tuple[Tensor | float, ...]
"""What a process divides its sums of losses by, so that the sum over processes is the loss of the step."""


def divisors(batch: StepBatch, average: LossAverage, topology: Topology, device: torch.device) -> Divisors:
    """The divisors of this process for a step, one for each term; a sum over processes that the host does not wait for.

    "tokens": what the global batch counts. "processes": what the process counts, times the processes.
    """
    size = topology.world_size
    if average == "processes":
        # A process without a label adds nothing; its mean would be 0 / 0.
        return tuple(float(max(1, count) * size) for count in batch.counted)
    counts = [float(count) for count in batch.counted]
    return tuple(counts) if size == 1 else sum_tensor_over_processes(on_device(counts, device)).float().unbind()


def loss_of(terms: Sequence[Term], divisor: Divisors) -> Tensor:
    """This micro-batch's part of the loss of the step."""
    parts = [
        term.loss_sum / own if term.weight == 1 else term.weight * term.loss_sum / own
        for term, own in zip(terms, divisor, strict=True)
    ]
    loss = parts[0]
    for part in parts[1:]:
        loss = loss + part
    return loss


def sums_of(terms: Sequence[Term]) -> Tensor:
    """Loss sum and further sums of each term of a micro-batch: fp64 [values]."""
    parts = [part.detach() for term in terms for part in (term.loss_sum, *term.sums)]
    return torch.stack([part.double() for part in parts])


@dataclass(frozen=True)
class Measured:
    """Means over the global batch of one step, the same in every process."""

    # Number of the step, from 0.
    step: int
    # By the objective's columns, term by term; losses in nats (natural logarithm).
    terms: tuple[dict[str, float], ...]
    tokens: int
    # Global L2 norm before clipping.
    gradient_norm: float
    # Whether fp16 gradients overflowed, so that the update was left out.
    skipped: bool
    # Null without loss scaling.
    loss_scale: float | None
    # Whether some process was asked to stop.
    stop: bool

    @property
    def loss(self) -> float:
        """The loss of the first term, per labelled token."""
        return next(iter(self.terms[0].values()))

    @property
    def total_loss(self) -> float:
        """The losses of all terms: finite where what the gradient is taken of is."""
        return sum(next(iter(term.values())) for term in self.terms)


@dataclass(frozen=True)
class _Pending:
    step: int
    # Of this process, on the device.
    sums: Tensor
    # Of this process: what the terms count, tokens, and 1 if it was asked to stop.
    counts: list[float]
    update: Update


class StepMeasures:
    """The steps that nobody has read yet."""

    def __init__(self, average: LossAverage, topology: Topology, device: torch.device, columns: Columns) -> None:
        """`columns` are those of the objective; a batch may count for fewer terms."""
        self.average, self.topology, self.device, self.columns = average, topology, device, columns
        self._pending: list[_Pending] = []

    def add(self, step: int, batch: StepBatch, sums: Tensor, update: Update, stop: bool) -> None:
        """Keep what step number `step` (from 0) measured in this process: `sums` are those of its micro-batches."""
        counts = [*map(float, batch.counted), float(batch.tokens), float(stop)]
        if self.average == "processes":
            own = divisors(batch, self.average, self.topology, self.device)
            parts = zip(own, self.columns, strict=False)
            weights = [weight for divisor, names in parts for weight in (float(divisor), *[1.0] * (len(names) - 1))]
            sums = sums / on_device(weights, self.device)
        self._pending.append(_Pending(step, sums, counts, update))

    def read(self) -> list[Measured]:
        """All steps since the last call; waits for the device, and all processes have to call it after the same step.

        Raises TrainingError when a whole batch had no label.
        """
        pending, self._pending = self._pending, []
        if not pending:
            return []
        sums = torch.stack([part.sums for part in pending])
        norms = torch.stack([part.update.gradient_norm.double() for part in pending])[:, None]
        if self.topology.world_size > 1:
            counts = on_device([part.counts for part in pending], self.device)
            sums = sum_tensor_over_processes(torch.cat([sums, counts], dim=1))
        values: list[list[float]] = torch.cat([sums, norms], dim=1).tolist()
        parts = len(pending[0].sums)
        return [
            self._measured(part, row[:parts], row[parts:-1] or part.counts, row[-1])
            for part, row in zip(pending, values, strict=True)
        ]

    def _measured(self, part: _Pending, sums: list[float], counts: list[float], norm: float) -> Measured:
        *counted, tokens, stop = counts
        if counted[0] == 0:
            raise TrainingError(f"step {part.step + 1}: a whole batch has no labelled token; is mask_probability 0?")
        terms, values = [], iter(sums)
        for count, (loss, *others) in zip(counted, self.columns, strict=False):
            # "processes": the sums of losses are divided already.
            own = {loss: next(values) / (count if self.average == "tokens" else 1.0)}
            terms.append(own | {name: next(values) / count for name in others})
        update = part.update
        return Measured(part.step, tuple(terms), int(tokens), norm, update.skipped, update.loss_scale, stop > 0)
