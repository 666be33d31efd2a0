"""The micro-batches of each step for one process: a pure function of the step.

Examples are drawn from (seed, epoch, index), so drawing ahead, in another thread or in another process changes nothing
(`hatchery.training.loader`). The examples of a phase are indexed when they are first asked for, for the phase's
sequence length.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from hatchery.training.data_order import (
    EpochSlice,
    Phase,
    first_of_share,
    global_batch,
    micro_batches,
    share_of_process,
)
from hatchery.training.topology import Topology


class Examples(Protocol):
    """Sequences of one length with what is to be predicted of them, as `hatchery.objectives` makes them."""

    def __len__(self) -> int:
        """Number of sequences in an epoch."""
        ...

    @property
    def fillers(self) -> Mapping[str, int | bool]:
        """What stands behind a sequence in each tensor of a batch; 0 where nothing is said."""
        ...

    def batch(self, seed: int, epoch: int, indices: np.ndarray) -> dict[str, Tensor]:
        """What the model is called with: `input_ids` and `labels` [B, T] and what else the objective has.

        B is len(indices), T at most the sequence length; padding is on the right.
        """
        ...

    def counted(self, batch: dict[str, Tensor]) -> tuple[int, ...]:
        """What the losses of a batch are divided by: its labels, then whatever the objective counts besides."""
        ...

    def n_tokens(self, batch: dict[str, Tensor]) -> int:
        """Tokens of a batch, padding not counted."""
        ...


Order = Callable[[Examples, int, int, int], list[EpochSlice]]
"""The sequences of a step by examples, seed, number of the step in its phase (from 0) and batch size."""


def shuffled(examples: Examples, seed: int, step: int, batch_size: int) -> list[EpochSlice]:
    """`batch_size` sequences, in an order of its own in every epoch."""
    return global_batch(seed, step, batch_size, len(examples))


@dataclass(frozen=True)
class StepBatch:
    """What one process computes in one step; counts are those of this process."""

    micro_batches: list[dict[str, Tensor]]
    # Positions with a label, then what else the objective counts.
    counted: tuple[int, ...]
    # Tokens, padding not counted.
    tokens: int
    # The number, from 0, that the first sequence of this process has in the global batch.
    first_sequence: int = 0

    @property
    def labelled(self) -> int:
        """Positions with a label."""
        return self.counted[0]

    @property
    def sequences(self) -> int:
        """Sequences of this process."""
        return sum(len(batch["input_ids"]) for batch in self.micro_batches)

    def pin_memory(self) -> "StepBatch":
        """The same tensors in page-locked memory, from where a GPU fetches them on its own."""
        pinned = [{key: value.pin_memory() for key, value in batch.items()} for batch in self.micro_batches]
        return replace(self, micro_batches=pinned)


class TrainingBatches:
    """Batches by step; `examples_of_length` makes the examples for a sequence length."""

    def __init__(
        self,
        phases: list[Phase],
        seed: int,
        topology: Topology,
        micro_batch_size: int | None,
        examples_of_length: Callable[[int], Examples],
        order: Order = shuffled,
    ) -> None:
        self.phases, self.seed, self.topology = phases, seed, topology
        self.micro_batch_size, self.order = micro_batch_size, order
        self._examples = lru_cache(maxsize=1)(examples_of_length)

    @property
    def steps(self) -> int:
        """Steps of the whole run."""
        return self.phases[-1].last_step

    def phase_of(self, step: int) -> Phase:
        """The phase that step number `step`, counted from 0, belongs to."""
        return next(phase for phase in self.phases if phase.first_step <= step < phase.last_step)

    def examples_at(self, step: int) -> Examples:
        """The examples of the phase of `step`; indexed at the first call for a phase."""
        return self._examples(self.phase_of(step).sequence_length)

    def at(self, step: int) -> StepBatch:
        """The batch of step number `step`, counted from 0 over all phases."""
        phase, examples = self.phase_of(step), self.examples_at(step)
        whole = self.order(examples, self.seed, step - phase.first_step, phase.batch_size)
        rank, processes = self.topology.rank, self.topology.world_size
        share = share_of_process(whole, rank, processes)
        drawn = [_draw(examples, self.seed, piece) for piece in micro_batches(share, self.micro_batch_size)]
        counts = [examples.counted(batch) for batch in drawn]
        return StepBatch(
            drawn,
            counted=tuple(map(sum, zip(*counts, strict=True))),
            tokens=sum(map(examples.n_tokens, drawn)),
            first_sequence=first_of_share(sum(len(part.indices) for part in whole), rank, processes),
        )


def _draw(examples: Examples, seed: int, slices: list[EpochSlice]) -> dict[str, Tensor]:
    return concatenate([examples.batch(seed, part.epoch, part.indices) for part in slices], examples.fillers)


def concatenate(parts: list[dict[str, Tensor]], fillers: Mapping[str, int | bool]) -> dict[str, Tensor]:
    """One batch from several; each tensor is padded on the right with its filler to the longest of its kind.

    Masks [B, T, T] grow on both sides. Tensors [B] have no length to be padded.
    """
    if len(parts) == 1:
        return parts[0]

    def joined(key: str) -> Tensor:
        tensors = [part[key] for part in parts]
        width, filler = max(tensor.shape[-1] for tensor in tensors), fillers.get(key, 0)
        return torch.cat([pad(t, (0, width - t.shape[-1]) * (t.dim() - 1), value=filler) for t in tensors])

    return {key: joined(key) for key in parts[0]}
