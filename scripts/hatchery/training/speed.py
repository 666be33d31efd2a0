"""How fast a run goes on this machine, how much memory it takes, and which freed memory it keeps.

Memory is, on a CUDA device, what torch has allocated there, on the CPU the resident set of the process, libraries and
data included. Only this process is seen, so a run of several processes has as many figures.

The C library maps large tensors one by one and unmaps them when they are freed, so that a step meets 100,000 fresh
pages and has them all zeroed: a seventh of its time in bf16. So freed memory is kept for the tensors of the next step.
Kept memory falls to pieces in time, since small objects are cut out of it and no two batches without padding are of one
size; now and then it has to go back as a whole. Other libraries than glibc are left as they are.
"""

import ctypes
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import psutil
import torch

from hatchery.training.peaks import mfu

_MIB = 2**20
# getrusage counts in KiB, on macOS in bytes.
_PEAK_UNIT = 1 if sys.platform == "darwin" else 2**10


class Memory(NamedTuple):
    """MiB, rounded to a tenth."""

    current: float
    peak: float
    """Since the process started."""


def memory_mib(device: torch.device) -> Memory:
    """What this process holds on `device`; asking does not wait for a GPU."""
    if device.type == "cuda":
        current, peak = torch.cuda.memory_allocated(device), torch.cuda.max_memory_allocated(device)
    else:
        current = psutil.Process().memory_info().rss
        # The kernel keeps the two figures apart, and the peak can lag behind by some pages.
        peak = max(current, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _PEAK_UNIT)
    return Memory(round(current / _MIB, 1), round(peak / _MIB, 1))


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


_MMAP_MAX, _TRIM_THRESHOLD, _TOP_PAD = -4, -1, -2
# Memory goes back where a process has grown to so many times what it was after the first steps, but not more often than
# after so many steps: the next one meets fresh pages, which costs half of its time (3 % in all, measured).
GROWTH, FIRST_STEPS, INTERVAL_STEPS = 1.5, 5, 20


def keep_freed_memory() -> None:
    """Let the C library keep what tensors free instead of handing it back to the kernel."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for option, value in ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, 2**31 - 1), (_TOP_PAD, 2**26)):
            mallopt(option, value)


class KeptMemory:
    """Bounds the memory of this process by what it took after the first steps."""

    def __init__(self) -> None:
        self._steps, self._limit = 0, float("inf")

    def step_finished(self) -> None:
        """Count a step; at intervals, hand freed memory back if the process has grown too much."""
        self._steps += 1
        if self._steps == FIRST_STEPS:
            self._limit = GROWTH * _resident_mib()
        elif self._steps % INTERVAL_STEPS == 0 and _resident_mib() > self._limit:
            trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
            if trim is not None:
                trim(0)


def _resident_mib() -> float:
    return memory_mib(torch.device("cpu")).current
