"""Progress of long tasks: on a terminal, a bar with rate and remaining time; in a log file, lines with date and
time.
"""

import sys
import time
from datetime import datetime
from types import TracebackType
from typing import Any, Self, TextIO

from tqdm import tqdm

LOG_INTERVAL_SECONDS = 10.0
# Maximum interval between log lines in seconds. Until this maximum is reached, the interval is a twentieth of the
# elapsed time, but at least LOG_INTERVAL_SECONDS.
LONGEST_INTERVAL_SECONDS = 60.0
# If a task takes less than this number of seconds, its start is not logged. Its end is logged only if the line contains
# fields such as the loss.
SHORT_SECONDS = 1.0


class Progress:
    """Progress of a long task: the number of finished units, such as documents or steps, out of a known total number.

    `update` may set fields, such as the loss, which are shown after the bar.
    """

    def __init__(self, total: int, label: str, unit: str, initial: int = 0, stream: TextIO | None = None) -> None:
        self.total, self.label, self.unit = total, label, unit
        self.done = self.initial = initial
        self.stream = stream or sys.stderr
        self._fields: dict[str, Any] = {}
        self._started = self._last_line = time.monotonic()
        self._is_announced = False
        self._bar = None
        if self.stream.isatty():
            more = {"file": self.stream, "dynamic_ncols": True, "delay": SHORT_SECONDS}
            self._bar = tqdm(total=total, desc=label, unit=f" {unit}", initial=initial, **more)

    def __enter__(self) -> Self:
        return self

    def note(self, text: str) -> None:
        """Write one line of text, above the bar on a terminal, or into the log."""
        if self._bar is not None:
            self._bar.write(text, file=self.stream)
        else:
            print(f"{datetime.now():%Y-%m-%d %H:%M:%S} {text}", file=self.stream, flush=True)

    def update(self, count: int = 1, **fields: Any) -> None:
        """Add `count` finished units, and show the values of `fields`, such as the loss, after the bar."""
        self.done += count
        self._fields.update(fields)
        if self._bar is not None:
            self._bar.set_postfix(self._fields, refresh=False)
            self._bar.update(count)
            return
        now = time.monotonic()
        interval = min(max(LOG_INTERVAL_SECONDS, (now - self._started) / 20), LONGEST_INTERVAL_SECONDS)
        if now - self._last_line >= interval:
            self._last_line, self._is_announced = now, True
            self.note(self._line())
        elif not self._is_announced and now - self._started >= SHORT_SECONDS:
            self._is_announced = True
            self.note(f"{self.label}: {self.total - self.initial:,} {self.unit} to do")

    def _line(self) -> str:
        elapsed = max(time.monotonic() - self._started, 1e-9)
        rate = (self.done - self.initial) / elapsed
        remaining = (self.total - self.done) / rate if rate > 0 else float("inf")
        share = 100 * self.done / self.total if self.total else 100.0
        fields = "".join(f" {key}={value}" for key, value in self._fields.items())
        return (
            f"{self.label}: {self.done:,}/{self.total:,} {self.unit} ({share:.0f} %), "
            f"{rate:,.1f} {self.unit}/s, {remaining:,.0f} s left{fields}"
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()
        elif kind is None:
            elapsed = time.monotonic() - self._started
            if elapsed < SHORT_SECONDS and not self._fields:
                return
            fields = "".join(f" {key}={value}" for key, value in self._fields.items())
            self.note(f"{self.label}: {self.done:,} {self.unit} done in {elapsed:,.1f} s{fields}")
