"""The progress of a run: the number of finished steps, the rows of metrics, the speed and the progress line.

The training loop is the same in all processes; only the first process writes telemetry.
"""

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import torch
from torch import Tensor, nn

from hatchery.modeling.families import training_flops
from hatchery.modeling.language_model import LanguageModel
from hatchery.progress import Progress
from hatchery.training.batches import StepBatch
from hatchery.training.checkpoints import Position, checkpoint_step
from hatchery.training.engine import Engine
from hatchery.training.objective import Objective
from hatchery.training.precision import Precision
from hatchery.training.run_checkpoints import RunCheckpoints
from hatchery.training.speed import Speedometer
from hatchery.training.telemetry import SECONDS, Telemetry
from hatchery.training.watchers import Watcher

FROM_THE_START = Position(step=0, tokens=0, words=0)
SKIPPED_STEPS = "skipped_steps"

OpenTelemetry = Callable[[str, int], Telemetry]
"""A function that opens a run's telemetry, from the text of the metrics so far and the number of finished steps."""


class RunRecord:
    """The progress of a run; only the first process writes files."""

    def __init__(
        self,
        label: str,
        steps: int,
        checkpoints: RunCheckpoints,
        speed: Speedometer,
        open_telemetry: OpenTelemetry | None = None,
        log_interval_steps: int = 1,
        read_interval_steps: int = 1,
    ) -> None:
        """`open_telemetry` is None in all processes except the first.

        Speed is logged every `log_interval_steps` steps, and losses are read at least every `read_interval_steps`
        steps.
        """
        self.label, self.steps, self.checkpoints = label, steps, checkpoints
        self.position = self.resumed_from = FROM_THE_START
        # Number of updates that fp16 has skipped.
        self.skipped_steps = 0
        # Lowest loss of this run's finished steps, in nats. Steps of a run that this run continues do not count.
        self.lowest_loss = math.inf
        # Seconds of this attempt, and seconds of earlier attempts; evaluations and checkpoints are included.
        self._own_seconds = self._earlier_seconds = 0.0
        self._speed, self._open_telemetry = speed, open_telemetry
        self._log_interval, self._read_interval = log_interval_steps, read_interval_steps
        self._text, self._speed_text = "", ""
        self._loaded_from = checkpoints.folder
        # Number of steps of the run that this run continues. The losses of the continued run are not compared with this
        # run's losses, because the runs' objectives may differ.
        self._earlier_steps = 0
        self._telemetry: Telemetry | None = None
        self._progress: Progress | None = None
        self._open = ExitStack()

    def resume(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        precision: Precision,
        watchers: Sequence[Watcher] = (),
        start: Path | None = None,
    ) -> None:
        """Load model, optimiser, loss scaler and watchers from the run's newest undamaged checkpoint.

        Without such a checkpoint, the run continues from `start`, a checkpoint of another run, if `start` is given.
        """
        self._earlier_steps = checkpoint_step(start) if start else 0
        folder = self.checkpoints.newest(self._earlier_steps) or start
        if folder is None:
            return
        self._loaded_from = folder.parent
        loaded = self.checkpoints.load(folder, model, optimizer)
        precision.load(loaded.extra)
        self.skipped_steps = int(loaded.extra.get(SKIPPED_STEPS, torch.zeros(())))
        self.position = self.resumed_from = loaded.position
        self._text = loaded.metrics
        rows = self.rows()
        self.lowest_loss = min((row["loss"] for row in rows if "loss" in row), default=math.inf)
        for watcher in watchers:
            watcher.load(loaded.extra, rows)

    def __enter__(self) -> Self:
        self._started = time.monotonic()
        self._speed.restart()
        self._open.enter_context(self.checkpoints)
        if self._open_telemetry is not None:
            self._telemetry = self._open_telemetry(self._text, self.position.step)
            self._earlier_seconds = self._telemetry.seconds()
            progress = Progress(self.steps, self.label, "steps", initial=self.position.step)
            self._progress = self._open.enter_context(progress)
            if self.position.step:
                self.note(f"continues after step {self.position.step:,} from {self._loaded_from}")
        return self

    def note(self, text: str) -> None:
        """Log one line of text."""
        if self._progress is not None:
            self._progress.note(f"{self.label}: {text}")

    def reads_after(self, step: int) -> bool:
        """Return whether losses are read from the device after `step` finished steps."""
        return step % self._read_interval == 0

    def count(self, batch: StepBatch, engine: Engine, objective: Objective) -> None:
        """Add the FLOPs and tokens of a step to the sums from which speed is computed. A GPU may still be computing
        this step.

        The sums over all processes are estimated as this process's FLOPs and tokens times the number of processes,
        because all processes read a similar amount of text.
        """
        size = engine.topology.world_size
        flops = 0.0
        if self._speed.peak is not None and isinstance(engine.model, LanguageModel):
            share = batch.labelled / batch.sequences
            for part in batch.micro_batches:
                flops += size * training_flops(engine.model.config, objective.pass_shape(part, share))
        self._speed.count(size * batch.tokens, flops)

    def paused(self) -> AbstractContextManager[None]:
        """Exclude the time of the `with` block from the training speed, but not from the run's total time."""
        return self._speed.paused()

    def append(self, row: dict[str, float]) -> None:
        """Add the metrics of a finished step as a row. The row's values `step` and `tokens` are totals since step 0 of
        the run.
        """
        words = None if "words" not in row else int(row["words"])
        position = Position(int(row["step"]), int(row["tokens"]), words)
        finished = position.step - self.position.step
        self.position = position
        self.skipped_steps = int(row.get(SKIPPED_STEPS, self.skipped_steps))
        self.lowest_loss = min(self.lowest_loss, row.get("loss", math.inf))
        if self._telemetry is None or self._progress is None:
            return
        is_due = position.step % self._log_interval == 0 or position.step == self.steps
        volatile = self._speed.read() if is_due and finished else {}
        if volatile:
            volatile[SECONDS] = round(self._earlier_seconds + time.monotonic() - self._started, 3)
        self._telemetry.step(row, volatile)
        self._progress.update(finished, **_fields(row, volatile))

    def checkpoint(self, engine: Engine, watchers: Sequence[Watcher] = ()) -> None:
        """Save a checkpoint after the last finished step. Raises the errors of `RunCheckpoints.save`."""

        def tensors() -> dict[str, Tensor]:
            state: dict[str, Tensor] = engine.precision.state()
            if state:
                state[SKIPPED_STEPS] = torch.tensor(self.skipped_steps)
            for watcher in watchers:
                state |= watcher.state()
            return state

        with self.paused():
            self.checkpoints.save(self.position, engine, tensors, self.metrics_text)

    def metrics_text(self) -> str:
        """Return the metrics of all finished steps as text; only in the first process is the text complete."""
        return self._text if self._telemetry is None else self._telemetry.text()

    def rows(self) -> list[dict[str, float]]:
        """Return this run's metrics rows in the loaded checkpoint; all processes return the same rows.

        The row of step 0, and the rows of another run that this run continues, are left out.
        """
        rows = [json.loads(line) for line in self._text.splitlines()]
        return [row for row in rows if row["step"] > self._earlier_steps]

    def speed_text(self) -> str:
        """Return the lines of the speed file from all attempts; only in the first process is the text complete."""
        return self._speed_text if self._telemetry is None else self._telemetry.speed_text()

    def training_seconds(self) -> float:
        """Return the seconds of training in all attempts (starts and restarts of the run). Only the first process knows
        the seconds of earlier attempts.

        For earlier attempts, the time after their last line in the speed file is not included.
        """
        return self._earlier_seconds + self._own_seconds

    def tokens_per_second(self) -> float:
        """Return the mean number of tokens per second since the run was last started or resumed, summed over all
        processes. The time includes evaluations and checkpoints.
        """
        return (self.position.tokens - self.resumed_from.tokens) / max(self._own_seconds, 1e-9)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._own_seconds = time.monotonic() - self._started
        try:
            self._open.__exit__(kind, error, traceback)
        finally:
            if self._telemetry is not None:
                self._text, self._speed_text = self._telemetry.text(), self._telemetry.speed_text()
                self._telemetry.close()
                self._telemetry = None


def _fields(row: Mapping[str, float], volatile: Mapping[str, float | None]) -> dict[str, str]:
    """Return the fields that the progress line shows, as text by name. `row` are the step's metrics, and `volatile` are
    speed measurements. Fields change only at steps with speed measurements. At other steps, `volatile` is empty, and so
    is the result.
    """
    if not volatile:
        return {}
    fields = {"loss": f"{row['loss']:.3f}", "tokens/s": f"{volatile['tokens_per_second']:,.0f}"}
    if volatile["mfu"] is not None:
        fields["mfu"] = f"{volatile['mfu']:.3f}"
    if "development_loss" in row:
        fields["development_loss"] = f"{row['development_loss']:.3f}"
    return fields
