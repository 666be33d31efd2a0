"""The checkpoints of a run: when they are saved, and from which checkpoint the run resumes.

The first process chooses, verifies and writes checkpoints; all processes read them from the shared file system.
"""

import sys
from collections.abc import Callable, Collection
from pathlib import Path
from types import TracebackType
from typing import Self

import torch
from torch import Tensor, nn

from hatchery.errors import CheckpointError
from hatchery.training.checkpoint_writer import CheckpointWriter
from hatchery.training.checkpoints import (
    Loaded,
    Position,
    checkpoint_folder,
    checkpoint_folders,
    checkpoint_step,
    load_checkpoint,
    newest_sound_checkpoint,
)
from hatchery.training.engine import Engine
from hatchery.training.run_folder import RunLease
from hatchery.training.runtime_settings import RuntimeSettings
from hatchery.training.topology import Topology, from_first_process


class RunCheckpoints:
    """The checkpoints in the folder of a run. Only the first process writes checkpoints. At the end of the `with`
    block, this process waits until all checkpoints are written.
    """

    def __init__(
        self,
        folder: Path,
        topology: Topology,
        runtime: RuntimeSettings,
        milestones: Collection[int] = (),
        required: Collection[int] = (),
        lease: RunLease | None = None,
        check_inputs: Callable[[], None] = lambda: None,
    ) -> None:
        """Keep the checkpoints of the steps in `milestones` and `required`.

        A step in `required` whose checkpoint is missing is trained again. Before a checkpoint is written, `lease`, the
        right to write into `folder`, is verified, and `check_inputs` raises an error if the run's inputs have changed.
        """
        self.folder, self.runtime, self.is_first = folder, runtime, topology.is_first
        self.milestones = tuple(sorted({*milestones, *required}))
        self._required, self._lease, self._check_inputs = frozenset(required), lease, check_inputs
        keep, background = runtime.keep_checkpoints, runtime.background_checkpoints
        self._writer = CheckpointWriter(folder, keep, self.milestones, background) if self.is_first else None

    def newest(self, after: int = 0) -> Path | None:
        """Return the newest undamaged checkpoint of the run; None if there is no undamaged checkpoint. All processes
        return the same checkpoint.

        If the run continues another run after step `after`, checkpoints up to this step do not exist and are not
        required.
        """
        newest = None
        if self.is_first:
            required = {step for step in self._required if step > after}
            newest = newest_sound_checkpoint(self.folder, self.milestones, required)
        step = from_first_process(checkpoint_step(newest) if newest else -1)
        return None if step < 0 else checkpoint_folder(self.folder, step)

    def load(self, folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> Loaded:
        """Load model and optimiser from the checkpoint in `folder`. Raises CheckpointError if the checkpoint does not
        match the model.
        """
        return load_checkpoint(folder, model, optimizer, state_on_cpu=self.runtime.zero_stage > 0)

    def is_due(self, step: int) -> bool:
        """Return whether a checkpoint must be saved after `step` finished steps."""
        return step in self.milestones or step % self.runtime.checkpoint_interval_steps == 0

    def save(
        self, position: Position, engine: Engine, tensors: Callable[[], dict[str, Tensor]], metrics: Callable[[], str]
    ) -> None:
        """Save a checkpoint at `position`, and remove the oldest checkpoints; every process must call this method.

        In the first process, `tensors` returns all tensors except the tensors of model and optimiser, and `metrics`
        returns the metrics as text. Raises CheckpointError if the checkpoint cannot be written or another process owns
        the folder, and the error of `check_inputs`.
        """
        self._check_inputs()
        if self._lease is not None:
            self._lease.verify()
        with engine.whole_parameters():
            states = engine.whole_states()
            if self._writer is not None:
                self._writer.save(position, engine.model, states, tensors(), metrics())

    def wait(self) -> None:
        """Wait until the last checkpoint is on the disk. Raises CheckpointError if this checkpoint could not be
        written."""
        if self._writer is not None:
            self._writer.wait()

    def last(self) -> str:
        """Return a description of the newest checkpoint for messages."""
        try:
            self.wait()
        except CheckpointError as error:
            print(f"warning: {error}", file=sys.stderr, flush=True)
        folders = checkpoint_folders(self.folder)
        return f"the last good checkpoint is {folders[0]}" if folders else "there is no checkpoint yet"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._writer is not None:
            self._writer.__exit__(kind, error, traceback)
