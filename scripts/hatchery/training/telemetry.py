"""What a run says about itself while it trains: one JSON line per step, speed beside it, and sinks where asked.

`metrics.jsonl` holds nothing that differs from run to run; a resumed run starts from the copy in its checkpoint, so no
step appears twice in it. `speed.jsonl` (see `training.speed`) is about one machine and one attempt: it goes on where it
was, and nobody takes its checksum. TensorBoard, trackio and Weights & Biases are off unless the configuration asks:
each is imported only when its sink is opened, and one that fails while training runs is given up with a message, and
the run goes on.
"""

import json
import os
import pkgutil
import sys
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from hatchery.artifacts.atomic import write_text
from hatchery.errors import ConfigError, first_line
from hatchery.training.runtime_settings import not_installed
from hatchery.units import bits_per_byte

METRICS_FILE = "metrics.jsonl"
SPEED_FILE = "speed.jsonl"
SECONDS = "training_seconds"
"""In a row of `speed.jsonl`: how long the run has trained by then, in all its attempts."""


class TensorBoardSink:
    """Event files of TensorBoard in a folder."""

    def __init__(self, folder: Path, run: str, after_step: int) -> None:
        """Write below `folder`; what earlier attempts wrote for steps after `after_step` is hidden by TensorBoard."""
        make_writer = _imported("tensorboard", "torch.utils.tensorboard:SummaryWriter")
        self._writer = make_writer(log_dir=str(folder / run), purge_step=after_step + 1)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """One scalar for each value."""
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        """Write and close the event file."""
        self._writer.close()


class TrackioSink:
    """A run of trackio's project "hatchery", in trackio's own folder or in `folder`."""

    def __init__(self, folder: Path, run: str, after_step: int) -> None:
        """Go on with the run of this name if there is one; its steps after `after_step` appear again."""
        # Read when the package is imported; whoever set it wants the runs elsewhere.
        os.environ.setdefault("TRACKIO_DIR", str(folder))
        self._trackio = _imported("trackio", "trackio:")
        self._trackio.init(project="hatchery", name=run, resume="allow")

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """All values in one row."""
        self._trackio.log(dict(values), step=step)

    def close(self) -> None:
        """End the run."""
        self._trackio.finish()


class WandbSink:
    """A run of the project "hatchery" of Weights & Biases: files in a folder, which `wandb sync` sends."""

    def __init__(self, folder: Path, run: str, after_step: int) -> None:
        """Go on with the run of this folder; its steps after `after_step` are not taken again."""
        # Otherwise it asks for an account, and waits. Whoever set it wants the numbers sent.
        os.environ.setdefault("WANDB_MODE", "offline")
        folder.mkdir(parents=True, exist_ok=True)
        identity = sha256(f"{folder.resolve()}/{run}".encode()).hexdigest()[:16]
        start = _imported("wandb", "wandb:init")
        self._run = start(project="hatchery", name=run, id=identity, dir=str(folder), resume="allow")

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """All values in one row."""
        self._run.log(dict(values), step=step)

    def close(self) -> None:
        """End the run."""
        self._run.finish()


Sink = TensorBoardSink | TrackioSink | WandbSink
SINKS: dict[str, type[Sink]] = {"tensorboard": TensorBoardSink, "trackio": TrackioSink, "wandb": WandbSink}


class Sinks:
    """All sinks of a run; none by default."""

    def __init__(self, sinks: Mapping[str, Sink] | None = None) -> None:
        self._sinks = dict(sinks or {})

    def log(self, step: int, values: Mapping[str, Any]) -> None:
        """Hand the numbers among `values` to every sink; what is not a number (an unknown MFU) is left out."""
        numbers = {name: value for name, value in values.items() if isinstance(value, int | float) and name != "step"}
        self._ask_each(lambda sink: sink.log(step, numbers))

    def close(self) -> None:
        """Close every sink."""
        self._ask_each(lambda sink: sink.close())
        self._sinks.clear()

    def _ask_each(self, act: Callable[[Sink], None]) -> None:
        for name, sink in list(self._sinks.items()):
            try:
                act(sink)
            except Exception as error:
                # Whatever a dashboard stumbles over must not end days of training.
                del self._sinks[name]
                reason = f"{type(error).__name__}: {first_line(error)}"
                print(f"warning: {name} takes no more metrics: {reason}", file=sys.stderr, flush=True)


def open_sinks(names: Iterable[str], folder: Path, run: str, after_step: int = 0) -> Sinks:
    """The sinks called `names` (keys of `SINKS`) for the run called `run`, which goes on after step `after_step`.

    Each keeps its data below `folder` / its name. Raises ConfigError for a missing package.
    """
    return Sinks({name: SINKS[name](folder / name, run, after_step) for name in names})


class MetricsFile:
    """An append-only file of rows; only the first process has one."""

    def __init__(self, path: Path, text: str | None = "") -> None:
        """Begin the file with `text`, the lines up to the resumed step; None goes on with the file that is there."""
        if text is None:
            text = _whole_lines(path)
        write_text(path, text)
        self.path = path
        self._handle = path.open("a", encoding="utf-8")

    def append(self, row: Mapping[str, Any]) -> None:
        """Add one row; keys keep their order. Raises ValueError for a number that is not finite."""
        self._handle.write(json.dumps(row, allow_nan=False) + "\n")
        self._handle.flush()

    def text(self) -> str:
        """All lines so far, safely on the disk."""
        self._handle.flush()
        os.fsync(self._handle.fileno())
        return self.path.read_text(encoding="utf-8")

    def close(self) -> None:
        """Close the file."""
        self._handle.close()


class Telemetry:
    """All that a run says about itself while it trains: two files in its folder, and the sinks that were asked for."""

    def __init__(
        self, folder: Path, metrics_text: str = "", sinks: Sinks | None = None, per_byte: float | None = None
    ) -> None:
        """Begin `metrics.jsonl` in `folder` with `metrics_text`, from the checkpoint, and go on with `speed.jsonl`.

        `per_byte` are the tokens of development text that are asked for per byte, where it is known.
        """
        self._metrics = MetricsFile(folder / METRICS_FILE, metrics_text)
        self._speed = MetricsFile(folder / SPEED_FILE, text=None)
        self._sinks = sinks or Sinks()
        self._per_byte = per_byte

    def step(self, row: Mapping[str, Any], volatile: Mapping[str, Any] | None = None) -> None:
        """Note a step: `row`, which has the key `step`, is what every repetition of the run measures as well.

        `volatile` (see `Speedometer`), where there is any, is a row of `speed.jsonl`. The sinks get both, and bits per
        byte beside a development loss. Raises ValueError for a number that is not finite.
        """
        self._metrics.append(row)
        if volatile:
            self._speed.append({"step": row["step"], **volatile})
        more = dict(volatile or {})
        if self._per_byte is not None and "development_loss" in row:
            more["development_bits_per_byte"] = bits_per_byte(row["development_loss"], self._per_byte)
        self._sinks.log(row["step"], {**row, **more})

    def text(self) -> str:
        """All lines of `metrics.jsonl`, safely on the disk."""
        return self._metrics.text()

    def speed_text(self) -> str:
        """All lines of `speed.jsonl`, those of earlier attempts included."""
        return self._speed.text()

    def seconds(self) -> float:
        """How long the attempts before this one trained, up to their last reading."""
        last = self.speed_text().splitlines()[-1:]
        return float(json.loads(last[0]).get(SECONDS, 0.0)) if last else 0.0

    def close(self) -> None:
        """Close files and sinks."""
        self._metrics.close()
        self._speed.close()
        self._sinks.close()


def _imported(package: str, name: str) -> Any:
    """What `name` ("module:" or "module:object") stands for.

    By name and not by a statement: what statements import is a requirement of Hatchery, and sinks are optional.
    """
    try:
        return pkgutil.resolve_name(name)
    except ImportError as error:
        raise ConfigError(f"compute.sinks: {not_installed(package)}") from error


def _whole_lines(path: Path) -> str:
    """The lines of a file that is perhaps not there, without a last one that a kill left unfinished."""
    try:
        text = path.read_bytes().decode("utf-8", errors="ignore")
    except FileNotFoundError:
        return ""
    return text[: text.rfind("\n") + 1]
