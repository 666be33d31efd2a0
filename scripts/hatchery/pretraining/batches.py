"""The micro-batches of each step for one process: a pure function of the step.

Masks are drawn by the examples from (seed, epoch, index), so drawing ahead, in another thread or in another process
changes nothing (`hatchery.pretraining.loader`). The examples of a phase are indexed when they are first asked for, for
the phase's sequence length.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from hatchery.pretraining.data_order import EpochSlice, Phase, global_batch, micro_batches, share_of_process
from hatchery.pretraining.topology import Topology
from hatchery.tokenization.special_tokens import UNLABELLED


class Examples(Protocol):
    """Sequences of one length with their masks, as `hatchery.objectives` makes them."""

    def __len__(self) -> int:
        """Number of sequences in an epoch."""
        ...

    @property
    def pad_id(self) -> int:
        """The id that fills `input_ids` behind a sequence."""
        ...

    def batch(self, seed: int, epoch: int, indices: np.ndarray) -> dict[str, Tensor]:
        """`input_ids` and `labels` [B, T], `attention_mask` [B, T] or [B, T, T], with sentence pairs `pair_labels` [B].

        B is len(indices), T at most the sequence length; padding is on the right.
        """
        ...


@dataclass(frozen=True)
class StepBatch:
    """What one process computes in one step; counts are those of this process."""

    micro_batches: list[dict[str, Tensor]]
    # Positions with a label.
    labelled: int
    # Tokens, padding not counted.
    tokens: int
    # Sentence pairs that are judged.
    pairs: int = 0

    @property
    def sequences(self) -> int:
        """Sequences of this process."""
        return sum(len(batch["input_ids"]) for batch in self.micro_batches)

    def pin_memory(self) -> "StepBatch":
        """The same tensors in page-locked memory, from where a GPU fetches them on its own."""
        pinned = [{key: value.pin_memory() for key, value in batch.items()} for batch in self.micro_batches]
        return StepBatch(pinned, self.labelled, self.tokens, self.pairs)


class TrainingBatches:
    """Batches by step; `examples_of_length` makes the examples for a sequence length."""

    def __init__(
        self,
        phases: list[Phase],
        seed: int,
        topology: Topology,
        micro_batch_size: int | None,
        examples_of_length: Callable[[int], Examples],
    ) -> None:
        self.phases, self.seed, self.topology = phases, seed, topology
        self.micro_batch_size = micro_batch_size
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

    def first_sequence(self, step: int) -> int:
        """The number, from 0, that the first sequence of this process has in the global batch of `step`."""
        # The numbers are cut as the sequences themselves are.
        numbers = [EpochSlice(0, np.arange(self.phase_of(step).batch_size))]
        return int(share_of_process(numbers, self.topology.rank, self.topology.world_size)[0].indices[0])

    def at(self, step: int) -> StepBatch:
        """The batch of step number `step`, counted from 0 over all phases."""
        phase, examples = self.phase_of(step), self.examples_at(step)
        whole = global_batch(self.seed, step - phase.first_step, phase.batch_size, len(examples))
        share = share_of_process(whole, self.topology.rank, self.topology.world_size)
        drawn = [_draw(examples, self.seed, piece) for piece in micro_batches(share, self.micro_batch_size)]
        return StepBatch(
            drawn,
            labelled=sum(int((batch["labels"] != UNLABELLED).sum()) for batch in drawn),
            # Not from the masks, which may let padding be attended to or say who attends to whom.
            tokens=sum(int((batch["input_ids"] != examples.pad_id).sum()) for batch in drawn),
            pairs=sum(len(batch["pair_labels"]) for batch in drawn if "pair_labels" in batch),
        )


def _draw(examples: Examples, seed: int, slices: list[EpochSlice]) -> dict[str, Tensor]:
    return concatenate([examples.batch(seed, part.epoch, part.indices) for part in slices], examples.pad_id)


def concatenate(parts: list[dict[str, Tensor]], pad_id: int) -> dict[str, Tensor]:
    """One batch from several, padded on the right to the longest of them; `pad_id` fills the input ids.

    Masks [B, T, T] grow on both sides. `pair_labels` [B], if there are any, have no length to be padded.
    """
    if len(parts) == 1:
        return parts[0]
    fillers: dict[str, int | bool] = {"input_ids": pad_id, "attention_mask": False, "labels": UNLABELLED}
    width = max(part["input_ids"].shape[1] for part in parts)

    def widened(key: str, part: dict[str, Tensor]) -> Tensor:
        tensor = part[key]
        return pad(tensor, (0, width - tensor.shape[-1]) * (tensor.dim() - 1), value=fillers.get(key, 0))

    return {key: torch.cat([widened(key, part) for part in parts]) for key in parts[0]}
