"""The batches of each training step for one process, drawn ahead of the training loop.

A batch is a function of the seed and the step, so drawing ahead does not change the results. By default, a thread of
the training process draws batches. For fast devices, worker processes can draw them instead. Workers are forked, so
they share the memory-mapped shards. Workers end when the training process ends, even after an error or a kill. For
training on a GPU, this module copies the batches to page-locked memory.
"""

import signal
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad
from torch.utils.data import DataLoader, Dataset

from hatchery.errors import HatcheryError, TrainingError, first_line
from hatchery.training.data_order import DataOrder, EpochSlice, Order, first_of_share, micro_batches, share_of_process
from hatchery.training.examples import Examples
from hatchery.training.interruption import SIGNALS
from hatchery.training.step_plan import StepPlan
from hatchery.training.topology import Topology


@dataclass(frozen=True)
class StepBatch:
    """The sequences of one step that one process reads, with the numbers of labels, tokens and words in these
    sequences.
    """

    micro_batches: list[dict[str, Tensor]]
    # Number of labelled positions, followed by the divisors of the objective's other loss terms.
    counted: tuple[int, ...]
    # Number of tokens, without padding.
    tokens: int
    # Number of words, by the corpus's rule `word_count`, that begin in the text of these sequences.
    words: int = 0
    # Index, from 0, of this process's first row in the global batch.
    first_sequence: int = 0

    @property
    def labelled(self) -> int:
        """Divisor of the objective's first loss term, for this process's sequences (see `Examples.counted`). It is
        usually the number of labels.
        """
        return self.counted[0]

    @property
    def sequences(self) -> int:
        """Number of this process's rows (model inputs) in the step; a preference pair has two rows."""
        return sum(len(batch["input_ids"]) for batch in self.micro_batches)

    def pin_memory(self) -> "StepBatch":
        """Return a copy whose tensors are in page-locked memory, which a GPU reads directly."""
        pinned = [{key: value.pin_memory() for key, value in batch.items()} for batch in self.micro_batches]
        return replace(self, micro_batches=pinned)


class TrainingBatches:
    """Batches of each training step for one process. The function `examples_of_length` returns the examples of a given
    sequence length.
    """

    def __init__(
        self,
        plan: StepPlan,
        seed: int,
        topology: Topology,
        micro_batch_size: int | None,
        examples_of_length: Callable[[int], Examples],
        order: Callable[[StepPlan, int, Callable[[int], Any]], Order] = DataOrder,
    ) -> None:
        """`order` is called with the plan, the seed and `examples_of_length`; it returns a function that selects the
        sequences of a step.
        """
        self.plan, self.seed, self.topology, self.micro_batch_size = plan, seed, topology, micro_batch_size
        self._examples = lru_cache(maxsize=1)(examples_of_length)
        self.order = order(plan, seed, self._examples)

    @property
    def steps(self) -> int:
        """Number of steps of the run."""
        return self.plan.steps

    def examples_at(self, step: int) -> Examples:
        """Return the training examples with the sequence length of step number `step`.

        A call with another sequence length than the previous call builds an index of the examples of the new length.
        """
        return self._examples(self.plan.at(step).sequence_length)

    def at(self, step: int) -> StepBatch:
        """Return this process's batch of step number `step`, counted from 0."""
        planned = self.plan.at(step)
        whole = self.order(planned)
        examples = self._examples(planned.sequence_length)
        rank, processes = self.topology.rank, self.topology.world_size
        share = share_of_process(whole, rank, processes)
        pieces = micro_batches(share, self.micro_batch_size)
        examples_and_words = [_draw(examples, self.seed, piece, planned.mask_rate) for piece in pieces]
        drawn, words = [batch for batch, _ in examples_and_words], [words for _, words in examples_and_words]
        counts = [examples.counted(batch) for batch in drawn]
        # The engine counts rows of a batch, and a pair of texts has two rows.
        rows = self.plan.settings.objective.rows_of_sequence
        return StepBatch(
            drawn,
            counted=tuple(map(sum, zip(*counts, strict=True))),
            tokens=sum(map(examples.n_tokens, drawn)),
            words=sum(words),
            first_sequence=rows * first_of_share(sum(len(part.indices) for part in whole), rank, processes),
        )


def _draw(
    examples: Examples, seed: int, slices: list[EpochSlice], mask_rate: float | None
) -> tuple[dict[str, Tensor], int]:
    parts = [examples.counted_batch(seed, part.epoch, part.indices, mask_rate) for part in slices]
    return concatenate([batch for batch, _ in parts], examples.fillers), sum(words for _, words in parts)


def concatenate(parts: list[dict[str, Tensor]], fillers: Mapping[str, int | bool]) -> dict[str, Tensor]:
    """Return the concatenation of batches; each tensor is padded on the right to the longest tensor of the same name.

    `fillers` maps tensor names to padding values. Attention masks [sequences, length, length] are padded in both
    dimensions of length. Tensors with one value per sequence are not padded.
    """
    if len(parts) == 1:
        return parts[0]

    def joined(key: str) -> Tensor:
        tensors = [part[key] for part in parts]
        width, filler = max(tensor.shape[-1] for tensor in tensors), fillers.get(key, 0)
        return torch.cat([pad(t, (0, width - t.shape[-1]) * (t.dim() - 1), value=filler) for t in tensors])

    return {key: joined(key) for key in parts[0]}


# Number of batches that a thread, or each worker process, draws ahead.
AHEAD = 2


class BatchLoader:
    """The batches of a run in step order; `waited_seconds` is the time for which training waited for batches."""

    def __init__(self, batches: TrainingBatches, workers: int = 0, pin_memory: bool = False) -> None:
        """`workers` is the number of worker processes; 0 uses a thread. `pin_memory` is True for training on a GPU."""
        self.batches, self.workers, self.pin_memory = batches, workers, pin_memory
        self.waited_seconds = 0.0

    @contextmanager
    def from_step(self, first_step: int) -> Iterator[Iterator[StepBatch]]:
        """Yield, for a `with` statement, an iterator over the batches from step `first_step` on. When the `with` block
        is left, the thread or the processes that draw batches are stopped.

        Raises TrainingError in the `with` block if a worker process has died.
        """
        drawn = self._by_processes(first_step) if self.workers else self._by_thread(first_step)
        try:
            try:
                yield self._measured(drawn)
            finally:
                # End the thread here. A thread that still draws batches when the interpreter ends would abort the
                # process ("terminate called without an active exception").
                drawn.close()
        except RuntimeError as error:
            # If a worker has died, torch raises RuntimeError from a signal handler, at any point of the training.
            if "DataLoader worker" not in str(error):
                raise
            reason = first_line(error)
            raise TrainingError(f"runtime.workers: a process that draws batches has died: {reason}") from error

    def _measured(self, drawn: Iterator[StepBatch]) -> Iterator[StepBatch]:
        while True:
            started = time.monotonic()
            batch = next(drawn, None)
            self.waited_seconds += time.monotonic() - started
            if batch is None:
                return
            yield batch

    def _by_thread(self, first_step: int) -> Generator[StepBatch, None, None]:
        steps = range(first_step, self.batches.steps)
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="batches") as pool:
            waiting: list[Future[StepBatch]] = [pool.submit(self._draw, step) for step in steps[:AHEAD]]
            try:
                for following in steps[AHEAD:]:
                    current = waiting.pop(0).result()
                    waiting.append(pool.submit(self._draw, following))
                    yield current
                while waiting:
                    yield waiting.pop(0).result()
            finally:
                pool.shutdown(cancel_futures=True)

    def _draw(self, step: int) -> StepBatch:
        batch = self.batches.at(step)
        return batch.pin_memory() if self.pin_memory else batch

    def _by_processes(self, first_step: int) -> Generator[StepBatch, None, None]:
        if first_step >= self.batches.steps:
            return
        # Compute two results before the fork, so that all workers share them: the order of the sequences in step
        # `first_step`, and the index of the examples with the sequence length of this step.
        self.batches.order(self.batches.plan.at(first_step))
        self.batches.examples_at(first_step)
        loader: DataLoader[_FlatBatch | StepBatch | HatcheryError] = DataLoader(
            _Steps(self.batches),
            batch_size=None,
            sampler=range(first_step, self.batches.steps),
            num_workers=self.workers,
            prefetch_factor=AHEAD,
            pin_memory=self.pin_memory,
            multiprocessing_context="fork",
            worker_init_fn=_leave_signals_to_the_training,
        )
        iterator = iter(loader)
        try:
            for drawn in iterator:
                if isinstance(drawn, HatcheryError):
                    raise drawn
                yield drawn if isinstance(drawn, StepBatch) else drawn.step_batch()
        finally:
            # Call this private method of torch to end the workers. If training stops before the last batch, torch
            # itself would end the workers only at garbage collection.
            iterator._shutdown_workers()  # type: ignore[attr-defined]


@dataclass(frozen=True)
class _FlatBatch:
    """A step's micro-batches for transfer between processes: one flat array per tensor name.

    NumPy arrays replace tensors here, because torch would transfer tensors as files in shared memory, and a container
    may run out of shared memory or file descriptors.
    """

    arrays: dict[str, np.ndarray]
    # For each micro-batch, the shape of each tensor by the tensor's name.
    shapes: list[dict[str, torch.Size]]
    # Batch of the step, with an empty list of micro-batches.
    without_tensors: StepBatch

    @staticmethod
    def of(batch: StepBatch) -> "_FlatBatch":
        parts = batch.micro_batches
        flat = {name: torch.cat([part[name].flatten() for part in parts]).numpy() for name in parts[0]}
        shapes = [{name: tensor.shape for name, tensor in part.items()} for part in parts]
        return _FlatBatch(flat, shapes, replace(batch, micro_batches=[]))

    def pin_memory(self) -> StepBatch:
        """Return the batch in page-locked memory; torch's loader calls this method."""
        return self.step_batch({name: torch.from_numpy(array).pin_memory() for name, array in self.arrays.items()})

    def step_batch(self, tensors: dict[str, Tensor] | None = None) -> StepBatch:
        """Return the batch; its micro-batches are views of `tensors`, or of this object's arrays if `tensors` is
        None."""
        tensors = tensors or {name: torch.from_numpy(array) for name, array in self.arrays.items()}
        pieces = {
            name: tensor.split([shapes[name].numel() for shapes in self.shapes]) for name, tensor in tensors.items()
        }
        micro_batches = [
            {name: pieces[name][number].view(shape) for name, shape in shapes.items()}
            for number, shapes in enumerate(self.shapes)
        ]
        return replace(self.without_tensors, micro_batches=micro_batches)


class _Steps(Dataset["_FlatBatch | StepBatch | HatcheryError"]):
    """The batches of a run as a torch data set, indexed by step."""

    def __init__(self, batches: TrainingBatches) -> None:
        self.batches = batches

    def __getitem__(self, step: int) -> "_FlatBatch | HatcheryError":
        try:
            return _FlatBatch.of(self.batches.at(step))
        except HatcheryError as error:
            # Return the error instead of raising it, because torch would add the traceback of the worker process to a
            # raised error.
            return error


def _leave_signals_to_the_training(worker: int) -> None:
    """Ignore signals in a worker process.

    Ctrl-C and a cluster send signals to all processes at once, but the training process needs further batches until it
    has finished its current step.
    """
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
