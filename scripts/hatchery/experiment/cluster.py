"""The section `cluster` of config.yaml: resources that jobs may request, and the device for which costs are estimated.

Invalid settings are reported before the first job is submitted. Otherwise sbatch would report invalid settings one job
at a time. The sbatch options that `extra` must not contain are those that Snakemake's Slurm executor sets.

The section may name a device for the cost estimate. By default, the estimate uses the device of the jobs. This device
is a GPU if the cluster has GPUs, or if jobs would use a GPU of this machine; otherwise, the device is the processor of
this machine. So estimated costs may depend on this machine; no table of results contains estimated costs. The peak
speeds of devices are read from `training.speed`, which is also used for telemetry. The peak speed of a CPU is an
assumption, which is printed with every estimate.
"""

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Literal

from hatchery.artifacts.gpu_claims import visible_gpus
from hatchery.errors import ConfigError
from hatchery.modeling.flops import kaplan_flops
from hatchery.settings.base import Count, DeviceName, Natural, Range, RefusedError, Settings, ShareAboveZero, require
from hatchery.settings.fields import Text
from hatchery.training.speed import mfu, peak_flops

PlannedDevice = Literal["a100", "cpu", "h100", "h200", "l40s", "mi250x", "v100"]

# Name of each device as reported by its driver. `training.speed` stores the device's peak speed under this name.
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
"""Floating-point operations per second of one CPU thread in any precision: two 256-bit fused multiply-adds per cycle at
3.1 GHz.
"""


@dataclass(frozen=True)
class PlanSettings(Settings):
    """Settings of a cost estimate: the devices of a run, and the checkpoints that the run keeps on disk."""

    device: PlannedDevice
    devices: Count
    # Number of CPU threads per device, if the device is "cpu".
    threads: Count
    # Share of the device's peak speed that the training is assumed to reach.
    mfu: ShareAboveZero
    keep_checkpoints: int
    milestones: tuple[float, ...]


@dataclass(frozen=True)
class PublishedRun:
    """A published pretraining: its size, data, devices and duration, as its paper reports them."""

    parameters: int
    tokens: int
    device: PlannedDevice
    devices: int
    precision: str
    seconds: int

    @property
    def flops(self) -> float:
        """Number of training operations by the formula 6 N D. N is the number of all parameters, including embeddings,
        and D is the number of tokens; attention scores are not counted.
        """
        return kaplan_flops(self.parameters, self.tokens)

    @property
    def mfu(self) -> float:
        """Share of the devices' peak speed that the run reached, computed from `flops` and `seconds`."""
        share = mfu(self.flops, self.seconds, self.devices, peak_flops(DEVICES[self.device], self.precision))
        assert share is not None, "the peak of the device is in the table"
        return share


LTG_BERT_RUN = PublishedRun(
    parameters=98_229_760,
    tokens=31_250 * 32_768 * 128,
    device="mi250x",
    # The paper reports 128 MI250X on 16 nodes, but its script starts 8 processes per node. Therefore, one device of the
    # script is one of the two dies of an MI250X.
    devices=128,
    precision="fp16",
    seconds=8 * 3600 + 13 * 60,
)
"""The pretraining of LTG-BERT base on the BNC (docs/papers/ltg-bert.md, "Cost of a run")."""


def precision_and_peak(requested: str, plan: PlanSettings) -> tuple[str, float]:
    """Return the precision of a run on the planned devices, and the total peak speed of these devices in operations per
    second.

    `requested` is "auto", "fp32", "bf16" or "fp16". Raises ConfigError for a precision that the device does not
    support.
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
            f"cost: precision: got {precision!r}, which a {plan.device} does not support; plan with another device "
            "(cluster.planned_device) or set another precision"
        )
    return precision, peak * plan.devices


Word = Annotated[str, Text(r"^\S+$", "text without spaces")]
Minutes = Annotated[int, Range(ge=5)]
Megabytes = Annotated[int, Range(ge=256)]

# Options of sbatch that Snakemake's executor sets, with the key of `cluster` that determines each option.
MANAGED = {
    ("--account", "-A"): "account",
    ("--partition", "-p"): "partition",
    ("--qos", "-q"): "qos",
    ("--constraint", "-C"): "constraint",
    ("--time", "-t"): "max_minutes",
    ("--mem", "--mem-per-cpu", "--mem-per-gpu"): "memory_mb_per_node",
    ("--nodes", "-N"): "nodes",
    ("--gres", "--gpus", "-G", "--gpus-per-node", "--gpus-per-task"): "gpus_per_node",
    ("--cpus-per-task", "-c", "--cpus-per-gpu"): "cpus_per_gpu",
    ("--requeue", "--no-requeue"): "requeue",
}
# Options of sbatch that Snakemake's executor sets, and that no key of `cluster` determines.
WITHOUT_KEY = frozenset(
    [
        "--ntasks",
        "-n",
        "--ntasks-per-node",
        "--ntasks-per-gpu",
        "--array",
        "-a",
        "--job-name",
        "-J",
        "--output",
        "-o",
        "--error",
        "-e",
        "--parsable",
        "--export",
        "--comment",
        "--workdir",
        "--chdir",
        "-D",
        "--clusters",
        "-M",
        "--wrap",
    ]
)


@dataclass(frozen=True)
class JobTarget:
    """The partition to which jobs are submitted, and the limits of a job. Jobs that compute with a model and all other
    jobs have separate targets.
    """

    account: str | None
    partition: str | None
    qos: str | None
    constraint: str | None
    # Additional options of sbatch in one string; "" for no options.
    extra: str
    max_minutes: int
    memory_mb_per_node: int | None


@dataclass(frozen=True, kw_only=True)
class ClusterSettings(Settings):
    """Settings of the machines to which jobs are submitted. If jobs run on this machine, only `gpus_per_node`,
    `jobs_per_gpu` and the keys of the cost estimate have an effect. Each key that begins with `gpu_`, except
    `gpu_type`, replaces the key without `gpu_` in jobs that compute with models; `null` replaces nothing. The keys
    change only estimated costs, and the pages that use these costs; no other result depends on the keys.
    """

    account: Word | None = None
    """Account that is charged (sbatch -A); `null` uses Slurm's default."""
    partition: Word | None = None
    """Partition of jobs that compute without a model (sbatch -p); `null` uses the cluster's default."""
    qos: Word | None = None
    """Quality of service (sbatch --qos); `null` uses the cluster's default."""
    constraint: Word | None = None
    """Node features that jobs require (sbatch -C); `null` requires no feature."""
    extra: str | None = None
    """Additional options of sbatch in one text, such as `--reservation=r1`. "" in `gpu_extra` means no additional
    options.
    """
    max_minutes: Minutes = 1440
    """Maximum duration of a job in the partition, in minutes. A longer pretraining continues in the next attempt of its
    job.
    """
    memory_mb_per_node: Megabytes | None = None
    """Memory of a node in MB. No job requests more memory than this; `null` sets no maximum."""
    gpu_account: Word | None = None
    """Value of `account` for jobs that compute with a model; `null` uses `account`."""
    gpu_partition: Word | None = None
    """Value of `partition` for jobs that compute with a model; `null` uses `partition`."""
    gpu_qos: Word | None = None
    """Value of `qos` for jobs that compute with a model; `null` uses `qos`."""
    gpu_constraint: Word | None = None
    """Value of `constraint` for jobs that compute with a model; `null` uses `constraint`."""
    gpu_extra: str | None = None
    """Value of `extra` for jobs that compute with a model; `null` uses `extra`."""
    gpu_max_minutes: Minutes | None = None
    """Value of `max_minutes` for jobs that compute with a model; `null` uses `max_minutes`."""
    gpu_memory_mb_per_node: Megabytes | None = None
    """Value of `memory_mb_per_node` for jobs that compute with a model; `null` uses `memory_mb_per_node`."""
    nodes: Count = 1
    """Number of nodes of one pretraining."""
    gpus_per_node: Natural = 0
    """Number of GPUs per node for one pretraining. 0 requests no GPUs from Slurm; on this machine, a pretraining then
    uses one GPU if there is a GPU and `compute.device` is not `cpu`. All other jobs that compute with a model use one
    GPU each.
    """
    jobs_per_gpu: Count = 1
    """Number of evaluations that share a GPU, on this machine and on clusters where Slurm does not allocate GPUs. A
    pretraining never shares its GPU. A GPU with 80 GB holds several models of fewer than 200 million parameters.
    """
    gpu_type: Annotated[str, Text("^[A-Za-z0-9_.]+$", "letters, digits, _ and full stops")] | None = None
    """GPU type in Slurm's generic resources, as printed by `sinfo -o %G`; `null` accepts any type."""
    cpus_per_gpu: Count | None = None
    """Number of processor cores per GPU, and thus per process of a pretraining. `null` uses the thread counts under
    `compute`.
    """
    requeue: bool = True
    """Allow Slurm to restart a job after preemption or a node failure."""
    pretraining_memory_mb: Megabytes = 16000
    """Memory in MB of each process of a pretraining; there is one process per GPU."""
    pretraining_minutes: Minutes | None = None
    """Requested duration of one attempt of a pretraining, in minutes; `null` uses the estimated duration."""
    planned_device: PlannedDevice | None = None
    """Device for the cost estimate of an experiment (results/<experiment>/cost.md); `mi250x` means one of the two dies
    of an MI250X. `null` uses the device that `gpu_type` names. Without `gpu_type`, `null` means h100 if jobs compute on
    GPUs (`gpus_per_node` above 0, or a GPU in this machine), and otherwise the processor of this machine.
    """
    planned_mfu: ShareAboveZero = 0.3
    """Share of the device's peak speed that the cost estimate assumes for training."""

    def __post_init__(self) -> None:
        for key in ("extra", "gpu_extra"):
            _check_extra(key, getattr(self, key) or "")
        no_type = self.gpu_type is None or self.gpus_per_node > 0
        require(no_type, "gpu_type", self.gpu_type, "null with gpus_per_node 0, because jobs then request no GPU")
        bound, processes = self.target(with_model=True).memory_mb_per_node, self.processes_per_node
        if bound is not None and self.pretraining_memory_mb * processes > bound:
            raise RefusedError(
                "pretraining_memory_mb",
                f"got {self.pretraining_memory_mb} for each of {processes} processes of a node, "
                f"expected at most {bound // processes}, because a node has {bound} MB",
            )

    def target(self, with_model: bool) -> JobTarget:
        """Return the Slurm partition, account and limits of jobs that compute with a model or, if `with_model` is
        false, of all other jobs.

        Jobs that compute with a model use the keys that begin with `gpu_`. If such a key is null, these jobs use the
        key without `gpu_`.
        """
        values = {key: getattr(self, key) for key in JobTarget.__dataclass_fields__}
        if with_model:
            own = {key: getattr(self, f"gpu_{key}") for key in values}
            values |= {key: value for key, value in own.items() if value is not None}
        return JobTarget(**{**values, "extra": values["extra"] or ""})

    @property
    def processes_per_node(self) -> int:
        """Number of processes of a pretraining on each node: one per GPU, or one without GPUs."""
        return max(1, self.gpus_per_node)

    @property
    def processes(self) -> int:
        """Number of processes of a pretraining on all nodes."""
        return self.nodes * self.processes_per_node


def _check_extra(key: str, extra: str) -> None:
    """Raise RefusedError for options of sbatch that Snakemake's executor sets, or that a key of `cluster` determines,
    and for text that a shell would interpret.
    """
    try:
        arguments = shlex.split(extra)
    except ValueError as error:
        raise RefusedError(key, f"got {extra!r}, expected options in shell syntax: {error}") from None
    expected = "options of sbatch without special characters of the shell"
    require(not any(character in extra for character in ";&|<>$`\n"), key, extra, expected)
    for word in arguments:
        option = word.split("=", 1)[0]
        if not option.startswith("-"):
            continue
        if not option.startswith("--"):
            option = option[:2]
        for options, managed in MANAGED.items():
            require(option not in options, key, word, f"this option as the key {managed!r} of `cluster`")
        require(option not in WITHOUT_KEY, key, word, "only options that Snakemake does not set itself")


GPU = "h100"
CPU = "cpu"


def planned_device(cluster: ClusterSettings, device: DeviceName) -> str:
    """Return the device for the cost estimate. If `cluster.planned_device` is `null`, return the default for models
    that compute on `device`.
    """
    if cluster.planned_device is not None:
        return cluster.planned_device
    if cluster.gpus_per_node:
        # Clusters name GPU types differently (`a100`, `nvidia_a100_80gb`, `mi250`), so search the type for the device's
        # name.
        named = (cluster.gpu_type or "").lower()
        return next((device for device in DEVICES if device != CPU and device.removesuffix("x") in named), GPU)
    match device:
        case "cpu":
            return CPU
        case "cuda":
            return GPU
        case _:
            return GPU if _has_gpu() else CPU


@cache
def _has_gpu() -> bool:
    return bool(visible_gpus(os.environ))
