"""What the first process keeps of a run while it trains: metrics, checkpoints and the progress line.

The other processes have a record without files, which keeps nothing, so the loop reads the same in every process.
"""

import json
import math
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Self

import torch
from torch import Tensor, nn

from hatchery.errors import CheckpointError
from hatchery.modeling.families import training_flops
from hatchery.progress import Progress
from hatchery.training.batches import StepBatch
from hatchery.training.checkpoint_writer import CheckpointWriter
from hatchery.training.checkpoints import (
    Position,
    checkpoint_folder,
    checkpoint_folders,
    checkpoint_step,
    load_checkpoint,
    milestone_steps,
    newest_sound_checkpoint,
)
from hatchery.training.compilation import COMPILATION_TAKES, COMPILED_FROM_STEPS, chosen_compilation
from hatchery.training.early_stopping import BestWeights
from hatchery.training.engine import Engine
from hatchery.training.followers import Follower
from hatchery.training.objective import Objective
from hatchery.training.precision import Precision
from hatchery.training.run_folder import RunLease
from hatchery.training.runtime_settings import RuntimeSettings
from hatchery.training.speed import Speedometer, peak_flops_of
from hatchery.training.telemetry import SECONDS, Telemetry, open_sinks
from hatchery.training.topology import Topology, from_first_process

FROM_THE_START = Position(step=0, tokens=0, words=0)
SKIPPED_STEPS = "skipped_steps"


class RunRecord:
    """The memory of one run in `folder`; only the first process writes anything."""

    def __init__(
        self,
        folder: Path,
        topology: Topology,
        steps: int,
        label: str,
        runtime: RuntimeSettings,
        device: torch.device,
        precision: Precision,
        sinks_folder: Path | None = None,
        lease: RunLease | None = None,
        check_inputs: Callable[[], None] = lambda: None,
        milestones: Collection[int] = (),
        followers: Sequence[Follower] = (),
        per_byte: float | None = None,
    ) -> None:
        """`sinks_folder` is where sinks such as TensorBoard write, if they are asked for; by default `folder`.

        `lease` is the right to write into `folder`. It is asked before each checkpoint, and so is `check_inputs`, which
        raises where what the run reads has changed. Checkpoints of `milestones` are kept, besides those that `runtime`
        names. `followers` are saved and resumed with them, in every process. `per_byte` are the tokens of development
        text that are asked for per byte, for sinks.
        """
        self.lease, self.check_inputs = lease, check_inputs
        self.folder, self.topology, self.steps, self.label, self.runtime = folder, topology, steps, label, runtime
        self.device, self.precision, self.sinks_folder = device, precision, sinks_folder or folder
        # At stage 3 a layer's parameters are not whole before it is called.
        pays = steps >= COMPILED_FROM_STEPS and runtime.zero_stage < 3
        self.compilation = chosen_compilation(runtime.compile, device, pays)
        self.milestones = tuple(sorted({*milestone_steps(runtime.milestones, steps), *milestones}))
        # Steps in `runtime` may be requested after they have passed.
        self._required = frozenset(milestones)
        self.position = self.resumed_from = FROM_THE_START
        # Empty where a run may not stop early.
        self.best = BestWeights(topology.is_first)
        self.followers: tuple[Follower, ...] = (*followers, self.best)
        # Updates that fp16 left out so far.
        self.skipped_steps = 0
        # Of the finished steps, in nats; where another run is continued, of those since then.
        self.lowest_loss = math.inf
        # Of this attempt and of those before it, evaluation and checkpoints included.
        self._own_seconds = self._earlier_seconds = 0.0
        # On the CPU there is no queue that reading a loss would empty.
        self._read_interval = 1 if device.type == "cpu" else runtime.log_interval_steps
        self._peak = peak_flops_of(device, precision.name)
        self._speed = Speedometer(device, topology.world_size, self._peak)
        self._text, self._speed_text = "", ""
        self._per_byte = per_byte
        self._loaded_from = folder
        # The steps of the earlier run, where one is continued: it may have had another loss.
        self._earlier_steps = 0
        self._telemetry: Telemetry | None = None
        self._writer: CheckpointWriter | None = None
        self._progress: Progress | None = None

    def resume(self, model: nn.Module, optimizer: torch.optim.Optimizer, start: Path | None = None) -> None:
        """Fill model, optimiser and loss scaler from the newest sound checkpoint, or from `start` where there is none.

        The first process chooses and verifies it; all processes read it from the shared file system.
        """
        self._earlier_steps = checkpoint_step(start) if start else 0
        found = None
        if self.topology.is_first:
            required = {step for step in self._required if step > self._earlier_steps}
            found = newest_sound_checkpoint(self.folder, self.milestones, required)
        step = from_first_process(checkpoint_step(found) if found else -1)
        if step < 0 and start is None:
            return
        folder = start if start and step < 0 else checkpoint_folder(self.folder, step)
        self._loaded_from = folder.parent
        loaded = load_checkpoint(folder, model, optimizer, state_on_cpu=self.runtime.zero_stage > 0)
        # Best weights of another run are none of this one's; an average goes on.
        for follower in self.followers:
            if step >= 0 or follower is not self.best:
                follower.load(loaded.extra)
        self.precision.load(loaded.extra)
        self.skipped_steps = int(loaded.extra.get(SKIPPED_STEPS, torch.zeros(())))
        self.position = self.resumed_from = loaded.position
        self._text = loaded.metrics
        self.lowest_loss = min((row["loss"] for row in self.rows() if "loss" in row), default=math.inf)

    def __enter__(self) -> Self:
        self._started = time.monotonic()
        self._speed = Speedometer(self.device, self.topology.world_size, self._peak)
        if self.topology.is_first:
            sinks = open_sinks(self.runtime.sinks, self.sinks_folder, self.label, self.position.step)
            self._telemetry = Telemetry(self.folder, self._text, sinks, self._per_byte)
            self._earlier_seconds = self._telemetry.seconds()
            keep, background = self.runtime.keep_checkpoints, self.runtime.background_checkpoints
            self._writer = CheckpointWriter(self.folder, keep, self.milestones, background)
            self._progress = Progress(self.steps, self.label, "steps", initial=self.position.step).__enter__()
            if self.position.step:
                self.note(f"goes on after step {self.position.step:,} from {self._loaded_from}")
            if self.compilation != "off":
                self.note(COMPILATION_TAKES)
        return self

    def is_claimed(self) -> bool:
        """Whether another attempt of the same job asks for the run folder."""
        return self.lease is not None and self.lease.is_claimed

    def note(self, text: str) -> None:
        """One line for the log."""
        if self._progress is not None:
            self._progress.note(f"{self.label}: {text}")

    def saves_after(self, step: int) -> bool:
        """Whether a checkpoint is due after `step` finished steps."""
        return step in self.milestones or step % self.runtime.checkpoint_interval_steps == 0

    def reads_after(self, step: int) -> bool:
        """Whether losses are read after `step` finished steps, even if nothing else needs them."""
        return step % self._read_interval == 0

    def count(self, batch: StepBatch, engine: Engine, objective: Objective) -> None:
        """Note that a step has been handed to the device; a process stands for all, whose shares are alike."""
        size = self.topology.world_size
        flops = 0.0
        if self._peak is not None:
            share = batch.labelled / batch.sequences
            for part in batch.micro_batches:
                flops += size * training_flops(engine.model.config, objective.pass_shape(part, share))
        self._speed.count(size * batch.tokens, flops)

    def paused(self) -> AbstractContextManager[None]:
        """The time of the block does not count as training, but for the run as a whole."""
        return self._speed.paused()

    def append(self, row: dict[str, float]) -> None:
        """Note a finished step in order: its row of metrics, with `step` and `tokens` since the start of the run."""
        words = None if "words" not in row else int(row["words"])
        position = Position(int(row["step"]), int(row["tokens"]), words)
        finished = position.step - self.position.step
        self.position = position
        self.skipped_steps = int(row.get(SKIPPED_STEPS, self.skipped_steps))
        self.lowest_loss = min(self.lowest_loss, row.get("loss", math.inf))
        if self._telemetry is None or self._progress is None:
            return
        is_due = self.position.step % self.runtime.log_interval_steps == 0 or self.position.step == self.steps
        volatile = self._speed.read() if is_due and finished else {}
        if volatile:
            volatile[SECONDS] = round(self._earlier_seconds + time.monotonic() - self._started, 3)
        self._telemetry.step(row, volatile)
        self._progress.update(finished, **_fields(row, volatile))

    def checkpoint(self, engine: Engine) -> None:
        """Save the run as it is after the last finished step, and remove the oldest checkpoints.

        Raises CheckpointError when that cannot be, or when the folder belongs to another process by now, and the error
        of `check_inputs`.
        """
        self.check_inputs()
        if self.lease is not None:
            self.lease.verify()
        with self.paused(), engine.whole_parameters():
            states = engine.whole_states()
            if self._writer is not None and self._telemetry is not None:
                extra: dict[str, Tensor] = self.precision.state()
                if extra:
                    extra[SKIPPED_STEPS] = torch.tensor(self.skipped_steps)
                for follower in self.followers:
                    extra |= follower.state()
                self._writer.save(self.position, engine.model, states, extra, self._telemetry.text())

    def wait(self) -> None:
        """Wait until the last checkpoint is on the disk. Raises CheckpointError when it could not be written."""
        if self._writer is not None:
            self._writer.wait()

    def metrics_text(self) -> str:
        """The metrics of all finished steps; only the first process has them."""
        return self._text if self._telemetry is None else self._telemetry.text()

    def rows(self) -> list[dict[str, float]]:
        """The metrics of this run's own steps that were done when it was resumed, in every process.

        Those of an earlier run, which it goes on from, are no measure of its own.
        """
        rows = [json.loads(line) for line in self._text.splitlines()]
        return [row for row in rows if row["step"] > self._earlier_steps]

    def speed_text(self) -> str:
        """The readings of speed of all attempts; only the first process has them."""
        return self._speed_text if self._telemetry is None else self._telemetry.speed_text()

    def last_checkpoint(self) -> str:
        """The newest checkpoint in words, for messages."""
        try:
            self.wait()
        except CheckpointError as error:
            print(f"warning: {error}", file=sys.stderr, flush=True)
        folders = checkpoint_folders(self.folder)
        return f"the last good checkpoint is {folders[0]}" if folders else "there is no checkpoint yet"

    def training_seconds(self) -> float:
        """How long all attempts trained, killed ones up to their last reading; the first process knows it."""
        return self._earlier_seconds + self._own_seconds

    def tokens_per_second(self) -> float:
        """Mean speed of this process's part of the run, over all processes, evaluation and checkpoints included."""
        return (self.position.tokens - self.resumed_from.tokens) / max(self._own_seconds, 1e-9)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._own_seconds = time.monotonic() - self._started
        try:
            if self._progress is not None:
                self._progress.__exit__(kind, error, traceback)
            if self._writer is not None:
                self._writer.__exit__(kind, error, traceback)
        finally:
            if self._telemetry is not None:
                self._text, self._speed_text = self._telemetry.text(), self._telemetry.speed_text()
                self._telemetry.close()
                self._telemetry = None


def _fields(row: Mapping[str, float], volatile: Mapping[str, float | None]) -> dict[str, str]:
    """What the progress line says; the loss where there is a new speed, so that the line does not flicker."""
    if not volatile:
        return {}
    fields = {"loss": f"{row['loss']:.3f}", "tokens/s": f"{volatile['tokens_per_second']:,.0f}"}
    if volatile["mfu"] is not None:
        fields["mfu"] = f"{volatile['mfu']:.3f}"
    if "development_loss" in row:
        fields["development_loss"] = f"{row['development_loss']:.3f}"
    return fields
