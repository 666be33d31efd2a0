"""What a device can do at best, and the share of it that a model's operations were (MFU)."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_TERA = 1e12

# Dense peaks in 10^12 operations per second, without structured sparsity: half of what NVIDIA's newer data sheets print
# "with sparsity". fp32 is without TensorFloat-32. Sources: NVIDIA data sheets of the H100, H200, A100, V100 and L40S
# Tensor Core GPUs; AMD Instinct MI250X data sheet, halved, because torch sees each of its two dies as a device (fp32 by
# matrix cores). The name patterns are those that the drivers report, and the first one that is found counts.
_PEAKS: tuple[tuple[str, dict[str, float]], ...] = (
    # A part of a GPU has a part of its speed, and its name does not tell which clock it gets.
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
    """Operations per second that one device can do at best, dense; None where that is not known.

    `device_name` is what torch reports (`device_name_of`), `precision` "fp32", "tf32", "bf16" or "fp16". CPUs are not
    known: their peak depends on clock, cores and instructions, and measuring it would cost time at every start.
    """
    for pattern, peaks in _PEAKS:
        if re.search(pattern, device_name):
            return peaks[precision] * _TERA if precision in peaks else None
    return None


def device_name_of(device: "torch.device") -> str:
    """The name of a device as its driver reports it; "cpu" for the CPU."""
    import torch  # Planning counts operations without it.

    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def peak_flops_of(device: "torch.device", precision: str) -> float | None:
    """`peak_flops` of a device of this process; fp32 counts as TensorFloat-32 where torch is allowed to use that."""
    import torch

    if device.type == "cuda" and precision == "fp32" and torch.get_float32_matmul_precision() != "highest":
        precision = "tf32"
    return peak_flops(device_name_of(device), precision)


def mfu(flops: float, seconds: float, devices: int, peak: float | None) -> float | None:
    """Model FLOPs utilisation, 0 to 1: `flops` of the model in `seconds` as a share of what `devices` could do.

    `peak` is one device's operations per second; None, where it is not known, gives None. Source: Chowdhery et al.
    (2022), "PaLM", appendix B: operations that the model needs, none that were done twice.
    """
    if peak is None or seconds <= 0:
        return None
    return flops / (seconds * devices * peak)
