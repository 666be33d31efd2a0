"""Speed, peak speed and memory of a run, and the reuse of freed memory.

On a CUDA device, memory is torch's allocated memory; on the CPU it is the resident set of the process, libraries and
data included. Only this process is measured, so a run of several processes has several figures.

By default the C library maps large tensors one by one and unmaps them when they are freed, so that a step touches
100,000 fresh pages, which the kernel zeroes: a seventh of a step's time in bf16. So this module keeps freed memory for
the tensors of the next step. Kept memory becomes fragmented, because small objects are allocated in it and batches
without padding differ in size; therefore all of it is occasionally returned to the kernel. C libraries other than glibc
are not changed.
"""

import ctypes
import re
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import torch

_MIB = 2**20
# getrusage counts in KiB, on macOS in bytes.
_PEAK_UNIT = 1 if sys.platform == "darwin" else 2**10


class Memory(NamedTuple):
    """Memory in MiB, rounded to a tenth."""

    current: float
    peak: float
    """Peak since the process started."""


def memory_mib(device: "torch.device") -> Memory:
    """Return this process's memory use on `device`; the call does not wait for a GPU."""
    if device.type == "cuda":
        import torch

        current, peak = torch.cuda.memory_allocated(device), torch.cuda.max_memory_allocated(device)
    else:
        current = _resident_bytes()
        # The maximum of both, because the kernel updates the peak later than the current size.
        peak = max(current, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _PEAK_UNIT)
    return Memory(round(current / _MIB, 1), round(peak / _MIB, 1))


def _resident_bytes() -> int:
    import psutil  # Imported here, because planning needs the peaks of devices without torch.

    return int(psutil.Process().memory_info().rss)


class Speedometer:
    """Measures tokens, FLOPs and seconds between two readings, over all processes; the time of evaluations can be left
    out."""

    def __init__(
        self,
        device: "torch.device",
        devices: int = 1,
        peak: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`peak` is the peak FLOP/s of one device, None if unknown; `devices` is the number of devices."""
        self._device, self._devices, self.peak, self._clock = device, devices, peak, clock
        self.restart()

    def count(self, tokens: int, flops: float) -> None:
        """Add a step of all processes: the number of tokens and the FLOPs of its global batch."""
        self._steps += 1
        self._tokens += tokens
        self._flops += flops

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Exclude the time of the `with` block, because evaluation and saving are not training steps."""
        started = self._clock()
        try:
            yield
        finally:
            self._away += self._clock() - started

    def read(self) -> dict[str, float | None]:
        """Return speed and memory since the last call; empty if no step was counted.

        Keys are `tokens_per_second` (without padding), `step_seconds`, `mfu` (0 to 1, None if the peak is unknown),
        `memory_mib` and `peak_memory_mib` of this process. On a GPU, call it only after a value of the last step was
        fetched: otherwise steps that are still in the device's queue would count as done.
        """
        if not self._steps:
            return {}
        seconds = max(self._clock() - self._started - self._away, 1e-9)
        share = mfu(self._flops, seconds, self._devices, self.peak)
        memory = memory_mib(self._device)
        reading = {
            "tokens_per_second": round(self._tokens / seconds, 1),
            "step_seconds": round(seconds / self._steps, 6),
            "mfu": None if share is None else round(share, 5),
            "memory_mib": memory.current,
            "peak_memory_mib": memory.peak,
        }
        self.restart()
        return reading

    def restart(self) -> None:
        """Discard the steps since the last reading."""
        self._started, self._away = self._clock(), 0.0
        self._steps = self._tokens = 0
        self._flops = 0.0


_MMAP_MAX, _TRIM_THRESHOLD, _TOP_PAD = -4, -1, -2
# Memory is returned if the process has grown by this factor over its size after the first steps, but not more often
# than at this interval: the next step touches fresh pages, which costs half of its time (3 % in all, measured).
GROWTH, FIRST_STEPS, INTERVAL_STEPS = 1.5, 5, 20


def keep_freed_memory() -> None:
    """Have the C library keep freed memory instead of returning it to the kernel."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for option, value in ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, 2**31 - 1), (_TOP_PAD, 2**26)):
            mallopt(option, value)


class KeptMemory:
    """Limits the freed memory that this process keeps, relative to the size of the process after the first steps."""

    def __init__(self) -> None:
        self._steps, self._limit = 0, float("inf")

    def step_finished(self) -> None:
        """Count a step; at intervals, return freed memory to the kernel if the process has grown too much."""
        self._steps += 1
        if self._steps == FIRST_STEPS:
            self._limit = GROWTH * _resident_bytes()
        elif self._steps % INTERVAL_STEPS == 0 and _resident_bytes() > self._limit:
            trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
            if trim is not None:
                trim(0)


_TERA = 1e12

# Dense peaks in 10^12 operations per second, without structured sparsity: half of the numbers that NVIDIA's newer data
# sheets print "with sparsity". fp32 is without TensorFloat-32. Sources: NVIDIA data sheets of the H100, H200, A100,
# V100 and L40S Tensor Core GPUs; AMD Instinct MI250X data sheet, halved, because torch sees each of its two dies as a
# device (fp32 by matrix cores). The patterns match the drivers' device names, and the first match counts.
_PEAKS: tuple[tuple[str, dict[str, float]], ...] = (
    # The peak of a MIG partition of a GPU is unknown: it has a part of the GPU's speed, and the name does not determine
    # its clock.
    (r"\bMIG\b", {}),
    (r"\b(H200|H100) NVL\b", {"bf16": 835.5, "fp16": 835.5, "tf32": 417.5, "fp32": 60.0}),
    (r"\bH100 PCIe\b", {"bf16": 756.0, "fp16": 756.0, "tf32": 378.0, "fp32": 51.0}),
    (r"\b(H200|GH200|H100.*HBM3)\b", {"bf16": 989.5, "fp16": 989.5, "tf32": 494.5, "fp32": 67.0}),
    (r"\bA100(-SXM4|-PCIE| 80GB PCIe)\b", {"bf16": 312.0, "fp16": 312.0, "tf32": 156.0, "fp32": 19.5}),
    # Volta has tensor cores for fp16 only.
    (r"\bV100-SXM2\b", {"fp16": 125.0, "fp32": 15.7}),
    (r"\bV100S-PCI[Ee]\b", {"fp16": 130.0, "fp32": 16.4}),
    (r"\bV100-PCI[Ee]\b", {"fp16": 112.0, "fp32": 14.0}),
    (r"\bL40S\b", {"bf16": 362.0, "fp16": 362.0, "tf32": 183.0, "fp32": 91.6}),
    (r"\bMI250X\b", {"bf16": 191.5, "fp16": 191.5, "fp32": 47.9}),
)


def peak_flops(device_name: str, precision: str) -> float | None:
    """Return the peak FLOP/s of one device for dense matrices; None if unknown.

    `device_name` is torch's name, `precision` "fp32", "tf32", "bf16" or "fp16". CPUs are unknown: their peak depends on
    clock, cores and instructions, and measuring it would cost time at every start.
    """
    for pattern, peaks in _PEAKS:
        if re.search(pattern, device_name):
            return peaks[precision] * _TERA if precision in peaks else None
    return None


def peak_flops_of(device: "torch.device", precision: str) -> float | None:
    """Return the peak FLOP/s of this process's device (see `peak_flops`); fp32 counts as TensorFloat-32 if torch may
    use it."""
    if device.type != "cuda":
        return None
    import torch  # Imported here, because planning counts operations without torch.

    if precision == "fp32" and torch.get_float32_matmul_precision() != "highest":
        precision = "tf32"
    return peak_flops(torch.cuda.get_device_name(device), precision)


def mfu(flops: float, seconds: float, devices: int, peak: float | None) -> float | None:
    """Return model FLOPs utilisation, 0 to 1: `flops` of the model in `seconds` over the peak of `devices`.

    `peak` is the peak FLOP/s of one device; if it is None, the result is None. Source: Chowdhery et al. (2022),
    arXiv:2204.02311; recomputed activations do not count.
    """
    if peak is None or seconds <= 0:
        return None
    return flops / (seconds * devices * peak)
