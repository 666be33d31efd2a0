"""Memory that a training process holds now and held at most, in MiB.

On a CUDA device it is what torch has allocated there, on the CPU the resident set of the process, libraries and data
included. Only this process is seen, so a run of several processes has as many figures.
"""

import resource
import sys
from typing import NamedTuple

import psutil
import torch

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
