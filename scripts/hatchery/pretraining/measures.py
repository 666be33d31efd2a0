"""What each step measured, kept on the device until somebody asks, then read for many steps in one transfer.

A loss that is read is a wait for the device, and a device that is waited for stands still afterwards. So losses, right
answers and norms of a step stay where they were computed; sums over processes are taken when they are read. Which
mean is the loss: over all labelled tokens of the global batch, or, as the papers' code does it, the mean of the means
of the processes, in which a token weighs the more the fewer its process has.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from hatchery.errors import TrainingError
from hatchery.modeling.language_model import LanguageModelOutput
from hatchery.pretraining.batches import StepBatch
from hatchery.pretraining.engine import Update
from hatchery.pretraining.processes import on_device, sum_tensor_over_processes
from hatchery.pretraining.topology import Topology

LossAverage = Literal["tokens", "processes"]


@dataclass(frozen=True)
class Divisors:
    """What a process divides its sums of losses by, so that the sum over processes is the loss of the step."""

    tokens: Tensor | float
    pairs: Tensor | float


def divisors(batch: StepBatch, average: LossAverage, topology: Topology, device: torch.device) -> Divisors:
    """The divisors of this process for a step; a sum over processes that the host does not wait for.

    "tokens": the labels (and pairs) of the global batch. "processes": the process's own, times the processes.
    """
    size = topology.world_size
    if average == "processes":
        # A process without a label adds nothing; its mean would be 0 / 0.
        return Divisors(float(max(1, batch.labelled) * size), float(max(1, batch.pairs) * size))
    if size == 1:
        return Divisors(float(batch.labelled), float(batch.pairs))
    totals = sum_tensor_over_processes(on_device([float(batch.labelled), float(batch.pairs)], device)).float()
    return Divisors(totals[0], totals[1])


def loss_of(output: LanguageModelOutput, divisor: Divisors) -> Tensor:
    """This micro-batch's part of the loss of the step; the losses of tokens and pairs weigh the same."""
    loss = output.loss_sum / divisor.tokens
    return loss if output.pair_loss_sum is None else loss + output.pair_loss_sum / divisor.pairs


def sums_of(output: LanguageModelOutput) -> Tensor:
    """Loss sum and right answers of a micro-batch, then those of its pairs where there are any: fp64 [2 or 4]."""
    parts = [output.loss_sum.detach(), output.n_correct]
    if output.pair_loss_sum is not None and output.n_pairs_correct is not None:
        parts += [output.pair_loss_sum.detach(), output.n_pairs_correct]
    return torch.stack([part.double() for part in parts])


@dataclass(frozen=True)
class MeasuredPairs:
    """Mean binary cross-entropy (nats) and accuracy over the sentence pairs of a global batch."""

    loss: float
    accuracy: float


@dataclass(frozen=True)
class Measured:
    """Means over the global batch of one step, the same in every process."""

    # Number of the step, from 0.
    step: int
    # Per labelled token, natural logarithm.
    loss: float
    accuracy: float
    tokens: int
    # Global L2 norm before clipping.
    gradient_norm: float
    # Whether fp16 gradients overflowed, so that the update was left out.
    skipped: bool
    # Null without loss scaling.
    loss_scale: float | None
    # Whether some process was asked to stop.
    stop: bool
    pairs: MeasuredPairs | None = None

    @property
    def total_loss(self) -> float:
        """What the gradient is taken of."""
        return self.loss + (0.0 if self.pairs is None else self.pairs.loss)


@dataclass(frozen=True)
class _Pending:
    step: int
    # Of this process, on the device.
    sums: Tensor
    # Of this process: labelled tokens, tokens, pairs, and 1 if it was asked to stop.
    counts: list[float]
    update: Update


class StepMeasures:
    """The steps that nobody has read yet."""

    def __init__(self, average: LossAverage, topology: Topology, device: torch.device) -> None:
        self.average, self.topology, self.device = average, topology, device
        self._pending: list[_Pending] = []

    def add(self, step: int, batch: StepBatch, sums: Tensor, update: Update, stop: bool) -> None:
        """Keep what step number `step` (from 0) measured in this process: `sums` are those of its micro-batches."""
        counts = [float(batch.labelled), float(batch.tokens), float(batch.pairs), float(stop)]
        if self.average == "processes":
            own = divisors(batch, self.average, self.topology, self.device)
            weights = [own.tokens, 1.0, own.pairs, 1.0][: len(sums)]
            sums = sums / on_device([float(weight) for weight in weights], self.device)
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
        labelled, tokens, pairs, stop = counts
        if labelled == 0:
            raise TrainingError(f"step {part.step + 1}: a whole batch has no labelled token; is mask_probability 0?")
        # "processes": the sums of losses are divided already.
        token_divisor, pair_divisor = (labelled, pairs) if self.average == "tokens" else (1.0, 1.0)
        measured_pairs = MeasuredPairs(sums[2] / pair_divisor, sums[3] / pairs) if len(sums) > 2 else None
        return Measured(
            part.step,
            sums[0] / token_divisor,
            sums[1] / labelled,
            int(tokens),
            norm,
            part.update.skipped,
            part.update.loss_scale,
            stop > 0,
            measured_pairs,
        )
