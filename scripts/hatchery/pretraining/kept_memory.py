"""Memory that tensors have freed, on the CPU: kept for those of the next step, as long as that does not take too much.

The C library maps large tensors one by one and unmaps them when they are freed, so that a step meets 100,000 fresh
pages and has them all zeroed: a seventh of its time in bf16. Kept memory falls to pieces in time, since no two batches
without padding are of one size; now and then it has to go back as a whole. Other libraries than glibc are left as they
are.
"""

import ctypes

import torch

from hatchery.runs.speed import memory_mib

_MMAP_MAX, _TRIM_THRESHOLD, _TOP_PAD = -4, -1, -2
# Times the memory after the first steps. The fresh pages after each return cost about one step of twenty.
GROWTH = 1.5


def keep_freed_memory() -> None:
    """Let the C library keep what tensors free instead of handing it back to the kernel."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for option, value in ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, 2**31 - 1), (_TOP_PAD, 2**26)):
            mallopt(option, value)


class KeptMemory:
    """Bounds the memory of this process by what it takes when `bound` is first called, after some steps."""

    def __init__(self) -> None:
        self._limit: float | None = None

    def bound(self) -> bool:
        """Hand freed memory back if the process has grown to `GROWTH` times what it was; whether that was done."""
        resident = memory_mib(torch.device("cpu")).current
        if self._limit is None:
            self._limit = GROWTH * resident
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if resident <= self._limit or trim is None:
            return False
        trim(0)
        return True
