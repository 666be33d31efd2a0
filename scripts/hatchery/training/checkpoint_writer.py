"""Save a run's checkpoints. With background writing, training continues while a copy of the run's state is written.

Only one checkpoint is written at a time, so memory holds at most one copy of the run's state. The training loop raises
the error of a failed write at the next checkpoint or at the end. An older checkpoint is removed only after a newer one
is completely written.
"""

import sys
from collections.abc import Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

from torch import Tensor, nn

from hatchery.errors import CheckpointError
from hatchery.training.checkpoints import (
    Position,
    Snapshot,
    States,
    prune_checkpoints,
    save_checkpoint,
    take_snapshot,
)


class CheckpointWriter:
    """Writes the checkpoints of one run folder and removes old checkpoints, except milestones; used in the first
    process only.
    """

    def __init__(self, run_folder: Path, keep: int, milestones: Collection[int] = (), background: bool = False) -> None:
        """Write into `run_folder`; keep the newest `keep` checkpoints and the checkpoints of the steps in `milestones`.

        If `background` is true, a thread writes the checkpoints while training continues.
        """
        self.run_folder, self.keep, self.milestones, self.background = run_folder, keep, milestones, background
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._writing: Future[None] | None = None

    def save(
        self,
        position: Position,
        model: nn.Module,
        states: States,
        extra: Mapping[str, Tensor],
        metrics: str,
    ) -> None:
        """Save a checkpoint; with background writing, return after copying the run's state. `extra` contains tensors
        that belong neither to the model nor to the optimiser (`states`), and `metrics` is the content of the metrics
        file.

        First waits for the previous checkpoint. Raises CheckpointError if the previous checkpoint cannot be written.
        Without background writing, also raises CheckpointError if this checkpoint cannot be written.
        """
        self.wait()
        snapshot = take_snapshot(model, states, extra, copy=self.background)
        self._writing = self._executor.submit(self._write, position, snapshot, metrics)
        if not self.background:
            self.wait()

    def wait(self) -> None:
        """Wait until no checkpoint is being written. Raises CheckpointError, once, if the last checkpoint could not be
        written."""
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()

    def close(self) -> None:
        """Wait for the last checkpoint and end the thread. Raises CheckpointError if this checkpoint could not be
        written."""
        try:
            self.wait()
        finally:
            self._executor.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.close()
        except CheckpointError as failure:
            if error is None:
                raise
            # Only print the checkpoint's error, because the exception that ended training has priority.
            print(f"warning: {failure}", file=sys.stderr, flush=True)

    def _write(self, position: Position, snapshot: Snapshot, metrics: str) -> None:
        save_checkpoint(self.run_folder, position, snapshot, metrics)
        prune_checkpoints(self.run_folder, self.keep, self.milestones)
