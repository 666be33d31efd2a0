"""Telemetry of a run: a metrics file with a JSON line per step, a speed file, and optional sinks.

`metrics.jsonl` contains only reproducible values. A resumed run begins with the copy of this file in its checkpoint, so
no step appears twice. `speed.jsonl` depends on the machine. Later attempts of the run append to `speed.jsonl`, and
manifests record no checksum of it. TensorBoard, trackio and Weights & Biases are off by default, and imported only if
they are used. A sink that fails during training is closed with a warning, and the run continues.
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
"""Key in a row of `speed.jsonl`: training seconds of all attempts of the run up to this row."""


class TensorBoardSink:
    """Writes metrics as event files of TensorBoard."""

    def __init__(self, folder: Path, run: str, after_step: int) -> None:
        """Write into the subfolder `run` of `folder`. TensorBoard hides the values that an earlier attempt wrote for
        steps after `after_step`.
        """
        make_writer = _imported("tensorboard", "torch.utils.tensorboard:SummaryWriter")
        self._writer = make_writer(log_dir=str(folder / run), purge_step=after_step + 1)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Write one scalar for each value."""
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        """Write and close the event file."""
        self._writer.close()


class TrackioSink:
    """A run of trackio's project "hatchery". It is stored in `folder`, unless the environment variable TRACKIO_DIR
    names another folder.
    """

    def __init__(self, folder: Path, run: str, after_step: int) -> None:
        """Continue the trackio run `run`, if it exists. Steps after `after_step` appear twice if an earlier attempt
        logged them."""
        # The variable is set before the import, because trackio reads it at import; a value set by the user has
        # priority.
        os.environ.setdefault("TRACKIO_DIR", str(folder))
        self._trackio = _imported("trackio", "trackio:")
        self._trackio.init(project="hatchery", name=run, resume="allow")

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Write all values as one row."""
        self._trackio.log(dict(values), step=step)

    def close(self) -> None:
        """End the run."""
        self._trackio.finish()


class WandbSink:
    """A run of the project "hatchery" of Weights & Biases. Unless WANDB_MODE is set, the run is stored in files, which
    `wandb sync` uploads.
    """

    def __init__(self, folder: Path, run: str, after_step: int) -> None:
        """Continue the run in `folder`, if it exists. Steps after `after_step` that an earlier attempt logged are not
        logged again."""
        # Keep wandb offline by default, because it would otherwise wait for the name of an account. Users can request
        # an upload by this variable.
        os.environ.setdefault("WANDB_MODE", "offline")
        folder.mkdir(parents=True, exist_ok=True)
        identity = sha256(f"{folder.resolve()}/{run}".encode()).hexdigest()[:16]
        start = _imported("wandb", "wandb:init")
        self._run = start(project="hatchery", name=run, id=identity, dir=str(folder), resume="allow")

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Write all values as one row."""
        self._run.log(dict(values), step=step)

    def close(self) -> None:
        """End the run."""
        self._run.finish()


Sink = TensorBoardSink | TrackioSink | WandbSink
SINKS: dict[str, type[Sink]] = {"tensorboard": TensorBoardSink, "trackio": TrackioSink, "wandb": WandbSink}


class Sinks:
    """All sinks of a run (TensorBoard and similar tools that receive metrics). By default, a run has no sinks."""

    def __init__(self, sinks: Mapping[str, Sink] | None = None) -> None:
        self._sinks = dict(sinks or {})

    def log(self, step: int, values: Mapping[str, Any]) -> None:
        """Write `values` to every sink. Values that are not numbers are omitted, for example an unknown MFU."""
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
                # The training continues without a sink that fails.
                del self._sinks[name]
                reason = f"{type(error).__name__}: {first_line(error)}"
                print(
                    f"warning: the tracker {name} is closed and receives no more metrics: {reason}",
                    file=sys.stderr,
                    flush=True,
                )


def open_sinks(names: Iterable[str], folder: Path, run: str, after_step: int = 0) -> Sinks:
    """Return the sinks called `names` (keys of `SINKS`) for the run called `run`, which continues after step
    `after_step`.

    Each sink writes into `folder`/<name of the sink>. Raises ConfigError for a missing package.
    """
    return Sinks({name: SINKS[name](folder / name, run, after_step) for name in names})


class MetricsFile:
    """An append-only file of JSON lines; used in the first process only."""

    def __init__(self, path: Path, text: str | None = "") -> None:
        """Begin the file with `text`, the lines up to the resumed step; if `text` is None, append to the existing
        file."""
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
        """Return all lines of the file, after writing them to the disk."""
        self._handle.flush()
        os.fsync(self._handle.fileno())
        return self.path.read_text(encoding="utf-8")

    def close(self) -> None:
        """Close the file."""
        self._handle.close()


class Telemetry:
    """The telemetry of a run: metrics file and speed file in the run folder, and sinks."""

    def __init__(
        self, folder: Path, metrics_text: str = "", sinks: Sinks | None = None, per_byte: float | None = None
    ) -> None:
        """Write `metrics_text` (the metrics in the loaded checkpoint) as the beginning of `metrics.jsonl` in `folder`,
        and continue `speed.jsonl` at its end.

        `per_byte` is the number of development tokens that the objective can predict, per byte of text; None if
        unknown.
        """
        self._metrics = MetricsFile(folder / METRICS_FILE, metrics_text)
        self._speed = MetricsFile(folder / SPEED_FILE, text=None)
        self._sinks = sinks or Sinks()
        self._per_byte = per_byte

    def step(self, row: Mapping[str, Any], volatile: Mapping[str, Any] | None = None) -> None:
        """Write the metrics of a step: `row` contains `step` and reproducible values only.

        `volatile`, a result of `Speedometer.read`, becomes a row of `speed.jsonl` unless it is empty. The sinks (metric
        trackers such as TensorBoard) get the values of both rows. If `row` has a development loss, the sinks also get
        bits per byte. Raises ValueError for a number that is not finite.
        """
        self._metrics.append(row)
        if volatile:
            self._speed.append({"step": row["step"], **volatile})
        more = dict(volatile or {})
        if self._per_byte is not None and "development_loss" in row:
            more["development_bits_per_byte"] = bits_per_byte(row["development_loss"], self._per_byte)
        self._sinks.log(row["step"], {**row, **more})

    def text(self) -> str:
        """Return all lines of `metrics.jsonl`, after writing them to the disk."""
        return self._metrics.text()

    def speed_text(self) -> str:
        """Return all lines of `speed.jsonl`, including the lines of earlier attempts."""
        return self._speed.text()

    def seconds(self) -> float:
        """Return the training seconds of earlier attempts, up to the last row of `speed.jsonl`."""
        last = self.speed_text().splitlines()[-1:]
        return float(json.loads(last[0]).get(SECONDS, 0.0)) if last else 0.0

    def close(self) -> None:
        """Close files and sinks."""
        self._metrics.close()
        self._speed.close()
        self._sinks.close()


def _imported(package: str, name: str) -> Any:
    """Return the object called `name` ("module:" or "module:object") of the optional `package`.

    An import statement would make the package a requirement of Hatchery. Raises ConfigError if the package is missing.
    """
    try:
        return pkgutil.resolve_name(name)
    except ImportError as error:
        raise ConfigError(f"compute.sinks: {not_installed(package)}") from error


def _whole_lines(path: Path) -> str:
    """Return the complete lines of the file `path`, which may be missing or end with an incomplete line."""
    try:
        text = path.read_bytes().decode("utf-8", errors="ignore")
    except FileNotFoundError:
        return ""
    return text[: text.rfind("\n") + 1]
