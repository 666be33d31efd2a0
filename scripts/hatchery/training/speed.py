"""Speed, peak speed and memory of a run, and the reuse of freed memory.

On a CUDA device, memory is torch's allocated memory. On a CPU, memory is the resident memory of the process, including
libraries and data. Only this process is measured.

By default the C library returns the memory of a freed large tensor to the kernel, so every step requests 100,000 new
pages. The kernel fills these pages with zeros, which takes a seventh of a step's time in bf16. With glibc, this module
makes the process keep freed memory for the next step. Small objects and batches of different sizes fragment the kept
memory. Therefore all freed memory is occasionally returned to the kernel.
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
# getrusage counts in KiB, but on macOS in bytes.
_PEAK_UNIT = 1 if sys.platform == "darwin" else 2**10


class Memory(NamedTuple):
    """Memory in MiB, rounded to 0.1."""

    current: float
    peak: float
    """Peak memory since the start of the process."""


def memory_mib(device: "torch.device") -> Memory:
    """Return this process's memory use on `device`; the call does not wait for a GPU."""
    if device.type == "cuda":
        import torch

        current, peak = torch.cuda.memory_allocated(device), torch.cuda.max_memory_allocated(device)
    else:
        current = _resident_bytes()
        # The kernel updates the peak memory later than the current memory, so the reported peak may be below the
        # current memory. Therefore use the maximum of peak and current memory.
        peak = max(current, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _PEAK_UNIT)
    return Memory(round(current / _MIB, 1), round(peak / _MIB, 1))


def _resident_bytes() -> int:
    # The import is inside the function, because planning imports this module and needs only peak speeds.
    import psutil

    return int(psutil.Process().memory_info().rss)


class Speedometer:
    """Measures tokens, FLOPs and seconds between two calls of `read`, over all processes. The time of pauses can be
    left out.
    """

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
        """Count one step. `tokens` and `flops` are the number of tokens and the FLOPs of the step's global batch."""
        self._steps += 1
        self._tokens += tokens
        self._flops += flops

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Exclude the time of the `with` block, such as the time of an evaluation or checkpoint, from the measured
        time.
        """
        started = self._clock()
        try:
            yield
        finally:
            self._away += self._clock() - started

    def read(self) -> dict[str, float | None]:
        """Return speed and memory since the last call; empty if no step was counted.

        Keys are `tokens_per_second` (without padding), `step_seconds`, `mfu` (0 to 1, None if the peak is unknown),
        `memory_mib` and `peak_memory_mib` of this process. On a GPU, the caller must first wait for the last step, by
        copying one of its results to the CPU. Otherwise, steps that are still in the GPU's queue would count as
        finished.
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
        """Discard all counts, and begin a new measurement."""
        self._started, self._away = self._clock(), 0.0
        self._steps = self._tokens = 0
        self._flops = 0.0


_MMAP_MAX, _TRIM_THRESHOLD, _TOP_PAD = -4, -1, -2
# Freed memory is returned to the kernel if the process is more than GROWTH times as large as after FIRST_STEPS steps.
# The size is checked only every INTERVAL_STEPS steps, because the step after a return takes 1.5 times as long.
# Measured, this costs 3 % of the total time.
GROWTH, FIRST_STEPS, INTERVAL_STEPS = 1.5, 5, 20


def keep_freed_memory() -> None:
    """Make the C library keep freed memory instead of returning it to the kernel."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for option, value in ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, 2**31 - 1), (_TOP_PAD, 2**26)):
            mallopt(option, value)


class KeptMemory:
    """Returns freed memory to the kernel if the memory of this process grows too much."""

    def __init__(self) -> None:
        self._steps, self._limit = 0, float("inf")

    def step_finished(self) -> None:
        """Count a step. At intervals, return freed memory to the kernel if the resident memory of the process exceeds
        `GROWTH` times the resident memory after `FIRST_STEPS` steps.
        """
        self._steps += 1
        if self._steps == FIRST_STEPS:
            self._limit = GROWTH * _resident_bytes()
        elif self._steps % INTERVAL_STEPS == 0 and _resident_bytes() > self._limit:
            trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
            if trim is not None:
                trim(0)


_TERA = 1e12

# Peak speeds in 10^12 operations per second, for dense matrices. NVIDIA's newer data sheets print twice these numbers
# ("with sparsity"). The fp32 speeds are without TensorFloat-32. The patterns match the drivers' device names, and the
# first match counts. Sources: NVIDIA data sheets of the H100, H200, A100, V100 and L40S Tensor Core GPUs; AMD Instinct
# MI250X data sheet (fp32 by matrix cores). The numbers of the MI250X are halved, because torch sees each of its two
# dies as a device.
_PEAKS: tuple[tuple[str, dict[str, float]], ...] = (
    # A MIG partition has only a part of the GPU's speed, and the partition's name does not determine its clock rate, so
    # its peak speed is unknown.
    (r"\bMIG\b", {}),
    (r"\b(H200|H100) NVL\b", {"bf16": 835.5, "fp16": 835.5, "tf32": 417.5, "fp32": 60.0}),
    (r"\bH100 PCIe\b", {"bf16": 756.0, "fp16": 756.0, "tf32": 378.0, "fp32": 51.0}),
    (r"\b(H200|GH200|H100.*HBM3)\b", {"bf16": 989.5, "fp16": 989.5, "tf32": 494.5, "fp32": 67.0}),
    (r"\bA100(-SXM4|-PCIE| 80GB PCIe)\b", {"bf16": 312.0, "fp16": 312.0, "tf32": 156.0, "fp32": 19.5}),
    # Volta has tensor cores for fp16 only, so no peaks are listed for bf16 and TensorFloat-32.
    (r"\bV100-SXM2\b", {"fp16": 125.0, "fp32": 15.7}),
    (r"\bV100S-PCI[Ee]\b", {"fp16": 130.0, "fp32": 16.4}),
    (r"\bV100-PCI[Ee]\b", {"fp16": 112.0, "fp32": 14.0}),
    (r"\bL40S\b", {"bf16": 362.0, "fp16": 362.0, "tf32": 183.0, "fp32": 91.6}),
    (r"\bMI250X\b", {"bf16": 191.5, "fp16": 191.5, "fp32": 47.9}),
)


def peak_flops(device_name: str, precision: str) -> float | None:
    """Return the peak FLOP/s of one device for dense matrices; None if unknown.

    `device_name` is torch's name of the device, and `precision` is "fp32", "tf32", "bf16" or "fp16". CPUs are unknown:
    their peak depends on clock, cores and instructions, and measuring the peak would cost time at every start.
    """
    for pattern, peaks in _PEAKS:
        if re.search(pattern, device_name):
            return peaks[precision] * _TERA if precision in peaks else None
    return None


def peak_flops_of(device: "torch.device", precision: str) -> float | None:
    """Return the peak FLOP/s of this process's device; None if unknown.

    For fp32, the peak speed of TensorFloat-32 is used if torch may compute in TensorFloat-32.
    """
    if device.type != "cuda":
        return None
    import torch  # The import is inside the function, because planning computes FLOPs without torch.

    if precision == "fp32" and torch.get_float32_matmul_precision() != "highest":
        precision = "tf32"
    return peak_flops(torch.cuda.get_device_name(device), precision)


def mfu(flops: float, seconds: float, devices: int, peak: float | None) -> float | None:
    """Return the model FLOPs utilisation, 0 to 1: the speed `flops` / `seconds` divided by the peak speed of all
    devices.

    `peak` is the peak FLOP/s of one device; the result is None if `peak` is None. Recomputed activations are not part
    of `flops`. Source: Chowdhery et al. (2022), arXiv:2204.02311.
    """
    if peak is None or seconds <= 0:
        return None
    return flops / (seconds * devices * peak)
