"""Memory that tensors have freed, on the CPU: kept for those of the next step, as long as that does not take too much.

The C library maps large tensors one by one and unmaps them when they are freed, so that a step meets 100,000 fresh
pages and has them all zeroed: a seventh of its time in bf16. Kept memory falls to pieces in time, since small objects
are cut out of it and no two batches without padding are of one size; now and then it has to go back as a whole. Other
libraries than glibc are left as they are.
"""

import ctypes

import torch

from hatchery.training.speed import memory_mib

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
