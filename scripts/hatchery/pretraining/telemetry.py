"""The training curve: one JSON line per step, with nothing in it that differs from run to run, and speed beside it.

`metrics.jsonl` is deterministic; a resumed run starts from the copy in its checkpoint, so no step appears twice in it.
`speed.jsonl` (tokens per second, MFU, memory, seconds per step) is about one machine and one attempt: it goes on where
it was, and nobody takes its checksum. Both grow while training runs, so they can be watched.
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from hatchery.pretraining.flops import mfu
from hatchery.pretraining.memory import memory_mib
from hatchery.pretraining.sinks import Sinks
from hatchery.storage.atomic import write_text

METRICS_FILE = "metrics.jsonl"
SPEED_FILE = "speed.jsonl"


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

    def __init__(self, folder: Path, metrics_text: str = "", sinks: Sinks | None = None) -> None:
        """Begin `metrics.jsonl` in `folder` with `metrics_text`, from the checkpoint, and go on with `speed.jsonl`."""
        self._metrics = MetricsFile(folder / METRICS_FILE, metrics_text)
        self._speed = MetricsFile(folder / SPEED_FILE, text=None)
        self._sinks = sinks or Sinks()

    def step(self, row: Mapping[str, Any], volatile: Mapping[str, Any] | None = None) -> None:
        """Note a step: `row`, which has the key `step`, is what every repetition of the run measures as well.

        `volatile` (see `Speedometer`), where there is any, is a row of `speed.jsonl`. The sinks get both. Raises
        ValueError for a number that is not finite.
        """
        self._metrics.append(row)
        if volatile:
            self._speed.append({"step": row["step"], **volatile})
        self._sinks.log(row["step"], {**row, **(volatile or {})})

    def text(self) -> str:
        """All lines of `metrics.jsonl`, safely on the disk."""
        return self._metrics.text()

    def speed_text(self) -> str:
        """All lines of `speed.jsonl`, those of earlier attempts included."""
        return self._speed.text()

    def close(self) -> None:
        """Close files and sinks."""
        self._metrics.close()
        self._speed.close()
        self._sinks.close()


class Speedometer:
    """Tokens, operations and seconds between two readings, over all processes; evaluation can be left out."""

    def __init__(
        self,
        device: torch.device,
        devices: int = 1,
        peak: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`peak` is the most operations per second of one of the `devices`; None where it is not known."""
        self._device, self._devices, self._peak, self._clock = device, devices, peak, clock
        self._reset()

    def count(self, tokens: int, flops: float) -> None:
        """Note a step of all processes: the tokens of its global batch and the operations that they took."""
        self._steps += 1
        self._tokens += tokens
        self._flops += flops

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave out the time of the block: evaluation and saving are no training steps."""
        started = self._clock()
        try:
            yield
        finally:
            self._away += self._clock() - started

    def read(self) -> dict[str, float | None]:
        """What the steps since the last reading were like; empty when there was none.

        `tokens_per_second` (padding is no token), `step_seconds`, `mfu` (0 to 1, None where the peak is not known),
        `memory_mib` and `peak_memory_mib` of this process. On a GPU read only after a value of the last step was
        fetched: what is still in its queue would count as done.
        """
        if not self._steps:
            return {}
        seconds = max(self._clock() - self._started - self._away, 1e-9)
        share = mfu(self._flops, seconds, self._devices, self._peak)
        memory = memory_mib(self._device)
        reading = {
            "tokens_per_second": round(self._tokens / seconds, 1),
            "step_seconds": round(seconds / self._steps, 6),
            "mfu": None if share is None else round(share, 5),
            "memory_mib": memory.current,
            "peak_memory_mib": memory.peak,
        }
        self._reset()
        return reading

    def _reset(self) -> None:
        self._started, self._away = self._clock(), 0.0
        self._steps = self._tokens = 0
        self._flops = 0.0


def _whole_lines(path: Path) -> str:
    """The lines of a file that is perhaps not there, without a last one that a kill left unfinished."""
    try:
        text = path.read_bytes().decode("utf-8", errors="ignore")
    except FileNotFoundError:
        return ""
    return text[: text.rfind("\n") + 1]
