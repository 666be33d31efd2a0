"""The device that an experiment is planned for: its peak, its precision, and a published run as a yardstick of MFU.

Peaks are those of `training.peaks`, so that planning and telemetry measure by one table; a CPU's is an assumption
that is printed with every estimate. Source of the yardstick: docs/papers/ltg-bert.md, "Cost of a run".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from hatchery.errors import ConfigError
from hatchery.modeling.flops import kaplan_flops
from hatchery.settings.base import Count, Settings, ShareAboveZero
from hatchery.training.peaks import mfu, peak_flops

PlannedDevice = Literal["a100", "cpu", "h100", "h200", "l40s", "mi250x", "v100"]

# The name by which its driver reports it, under which `training.peaks` knows its peak.
DEVICES: Mapping[PlannedDevice, str] = {
    "a100": "NVIDIA A100-SXM4-80GB",
    "cpu": "cpu",
    "h100": "NVIDIA H100 80GB HBM3",
    "h200": "NVIDIA H200",
    "l40s": "NVIDIA L40S",
    "mi250x": "AMD Instinct MI250X",
    "v100": "Tesla V100-SXM2-32GB",
}
CPU_THREAD_PEAK = 1e11
"""Operations per second of one CPU thread in any precision: two 256-bit fused multiply-adds per cycle at 3.1 GHz."""


@dataclass(frozen=True)
class PlanSettings(Settings):
    """On what an experiment is planned to run, and what a run keeps on disk."""

    device: PlannedDevice
    devices: Count
    # CPU threads of a run; counts where the device is "cpu".
    threads: Count
    # Share of the device's peak that training is taken to reach.
    mfu: ShareAboveZero
    keep_checkpoints: int
    milestones: tuple[float, ...]


@dataclass(frozen=True)
class PublishedRun:
    """A run whose cost is published."""

    parameters: int
    tokens: int
    device: PlannedDevice
    devices: int
    precision: str
    seconds: int

    @property
    def flops(self) -> float:
        """6 N D with all parameters, embeddings included; attention scores are left out."""
        return kaplan_flops(self.parameters, self.tokens)

    @property
    def mfu(self) -> float:
        """The share of the devices' peak that the run reached by this count."""
        share = mfu(self.flops, self.seconds, self.devices, peak_flops(DEVICES[self.device], self.precision))
        assert share is not None, "the peak of the device is in the table"
        return share


LTG_BERT_RUN = PublishedRun(
    parameters=98_229_760,
    tokens=31_250 * 32_768 * 128,
    device="mi250x",
    # The paper says 128 MI250X on 16 nodes; its script has 8 processes a node, so a device is one of two dies.
    devices=128,
    precision="fp16",
    seconds=8 * 3600 + 13 * 60,
)
"""LTG-BERT base on the BNC (docs/papers/ltg-bert.md, "Cost of a run")."""


def precision_and_peak(requested: str, plan: PlanSettings) -> tuple[str, float]:
    """The precision of a run on the planned device, and operations per second of all planned devices together.

    `requested` is "auto", "fp32", "bf16" or "fp16". Raises ConfigError for one that the device does not compute in.
    """
    if plan.device == "cpu":
        precision = "fp32" if requested == "auto" else requested
        return precision, CPU_THREAD_PEAK * plan.threads * plan.devices
    name = DEVICES[plan.device]
    precision = requested
    if precision == "auto":
        precision = "fp32" if peak_flops(name, "bf16") is None else "bf16"
    peak = peak_flops(name, precision)
    if peak is None:
        raise ConfigError(
            f"cost: precision: got {precision!r}, which a {plan.device} does not compute in; "
            "plan with another device (cluster.planned_device) or set another precision"
        )
    return precision, peak * plan.devices
