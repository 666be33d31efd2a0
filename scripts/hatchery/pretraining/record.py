"""What the first process keeps of a run while it trains: metrics, checkpoints and the progress line.

The other processes have a record without a folder, which keeps nothing, so the loop reads the same in every process.
"""

import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch
from torch import nn

from hatchery.pretraining.checkpoints import (
    METRICS,
    Position,
    checkpoint_folders,
    load_checkpoint,
    newest_sound_checkpoint,
    prune_checkpoints,
    save_checkpoint,
)
from hatchery.pretraining.processes import from_first_process
from hatchery.pretraining.settings import RuntimeSettings
from hatchery.pretraining.telemetry import MetricsFile
from hatchery.progress import Progress

FROM_THE_START = Position(step=0, tokens=0)


class RunRecord:
    """The memory of one run in `folder`; only with `is_writer` is anything written."""

    def __init__(self, folder: Path, is_writer: bool, steps: int, label: str, runtime: RuntimeSettings) -> None:
        self.folder, self.is_writer, self.steps, self.label, self.runtime = folder, is_writer, steps, label, runtime
        self.position = self.resumed_from = FROM_THE_START
        self.training_seconds = 0.0
        self._metrics: MetricsFile | None = None
        self._progress: Progress | None = None
        self._shown_at, self._shown_tokens = time.monotonic(), 0

    def resume(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        """Fill model and optimiser from the newest sound checkpoint, if there is one.

        The first process chooses and verifies it; all processes read it from the shared file system.
        """
        found = newest_sound_checkpoint(self.folder) if self.is_writer else None
        step = from_first_process(int(found.name.removeprefix("step_")) if found else -1)
        text = ""
        if step >= 0:
            chosen = self.folder / f"step_{step:08d}"
            self.position, text = load_checkpoint(chosen, model, optimizer)
            self.resumed_from = self.position
        if self.is_writer:
            self._metrics = MetricsFile(self.folder / METRICS, text)

    def __enter__(self) -> Self:
        self._started = self._shown_at = time.monotonic()
        self._shown_tokens = self.position.tokens
        if self.is_writer:
            self._progress = Progress(self.steps, self.label, "steps", initial=self.position.step).__enter__()
            if self.position.step:
                self._progress.note(f"{self.label}: goes on after step {self.position.step:,} from {self.folder}")
        return self

    def append(self, position: Position, row: dict[str, Any]) -> None:
        """Note that a step is finished."""
        self.position = position
        if self._metrics is not None and self._progress is not None:
            self._metrics.append(row)
            self._progress.update(1, **self._fields(row))

    def checkpoint(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        """Save the run as it is after the last finished step, and remove the oldest checkpoints."""
        if self._metrics is not None:
            save_checkpoint(self.folder, self.position, model, optimizer, self._metrics.text())
            prune_checkpoints(self.folder, self.runtime.keep_checkpoints)

    def metrics_text(self) -> str:
        """The metrics of all finished steps; only the first process has them."""
        return self._metrics.text() if self._metrics is not None else ""

    def last_checkpoint(self) -> str:
        """The newest checkpoint in words, for messages."""
        folders = checkpoint_folders(self.folder)
        return f"the last good checkpoint is {folders[0]}" if folders else "there is no checkpoint yet"

    def tokens_per_second(self) -> float:
        """Mean speed of this process's part of the run, over all processes, evaluation and checkpoints included."""
        return (self.position.tokens - self.resumed_from.tokens) / max(self.training_seconds, 1e-9)

    def _fields(self, row: dict[str, Any]) -> dict[str, str]:
        if self.position.step % self.runtime.log_interval_steps and self.position.step != self.steps:
            return {}
        now = time.monotonic()
        rate = (self.position.tokens - self._shown_tokens) / max(now - self._shown_at, 1e-9)
        self._shown_at, self._shown_tokens = now, self.position.tokens
        fields = {"loss": f"{row['loss']:.3f}", "tokens/s": f"{rate:,.0f}"}
        if "development_loss" in row:
            fields["development_loss"] = f"{row['development_loss']:.3f}"
        return fields

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.training_seconds = time.monotonic() - self._started
        if self._progress is not None:
            self._progress.__exit__(kind, error, traceback)
