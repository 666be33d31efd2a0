"""The `cluster` block of config.yaml as a typed value: which machines jobs may ask for.

A mistake is told before the first job is sent, and not by sbatch, one job at a time. Source of the refused options: the
Slurm executor of Snakemake.

Where the block names no device to estimate costs for, it is what the jobs will compute on: a GPU with GPUs asked of a
cluster, or with one in this machine that jobs would take; otherwise this machine's processor. Costs tell of the
machine, no table of results does, so this alone may depend on where the plan is made.
"""

import os
import shlex
from dataclasses import dataclass
from functools import cache
from typing import Annotated

from hatchery.artifacts.gpu_claims import visible_gpus
from hatchery.experiment.planned_device import PlannedDevice
from hatchery.settings.base import Count, DeviceName, Natural, Range, RefusedError, Settings, ShareAboveZero, require
from hatchery.settings.fields import Text

Word = Annotated[str, Text(r"^\S+$", "text without spaces")]
Minutes = Annotated[int, Range(ge=5)]
Megabytes = Annotated[int, Range(ge=256)]

# Options of sbatch that the executor sets itself, and the key of the block that they come from.
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
# Options that it sets and that no key of the block speaks of.
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
    """Where jobs of one sort go, and the most that one of them may ask for."""

    account: str | None
    partition: str | None
    qos: str | None
    constraint: str | None
    # More options of sbatch, as one text; "" for none.
    extra: str
    max_minutes: int
    memory_mb_per_node: int | None


@dataclass(frozen=True, kw_only=True)
class ClusterSettings(Settings):
    """The machines that jobs are sent to; ignored where jobs run at once. A key that begins with `gpu_` is for jobs
    that compute with models, null there takes the key without `gpu_`. No result depends on any of them; estimated costs
    do, and the page and cards that show them."""

    account: Word | None = None
    """Account that is charged (sbatch -A); null leaves it to Slurm."""
    partition: Word | None = None
    """Partition of jobs without a model (sbatch -p); null is the cluster's default."""
    qos: Word | None = None
    """Quality of service (sbatch --qos)."""
    constraint: Word | None = None
    """Features that a node must have (sbatch -C)."""
    extra: str | None = None
    """More options of sbatch, as one text, such as `--reservation=r1`; "" in gpu_extra for none."""
    max_minutes: Minutes = 1440
    """Longest time that the partition grants a job; longer runs go on in the next attempt."""
    memory_mb_per_node: Megabytes | None = None
    """Memory of a node; no job asks for more. null for no bound."""
    gpu_account: Word | None = None
    """`account` of jobs with a model; null is that of the others."""
    gpu_partition: Word | None = None
    """`partition` of jobs with a model; null is that of the others."""
    gpu_qos: Word | None = None
    """`qos` of jobs with a model; null is that of the others."""
    gpu_constraint: Word | None = None
    """`constraint` of jobs with a model; null is that of the others."""
    gpu_extra: str | None = None
    """`extra` of jobs with a model; null is that of the others."""
    gpu_max_minutes: Minutes | None = None
    """`max_minutes` of jobs with a model; null is that of the others."""
    gpu_memory_mb_per_node: Megabytes | None = None
    """`memory_mb_per_node` of jobs with a model; null is that of the others."""
    nodes: Count = 1
    """Nodes of one pretraining."""
    gpus_per_node: Natural = 0
    """GPUs of one pretraining on each node; 0 for processors only. Every other GPU job takes one."""
    gpu_type: Annotated[str, Text("^[A-Za-z0-9_.]+$", "letters, digits, _ and full stops")] | None = None
    """Type of the GPUs in Slurm's generic resources, as `sinfo -o %G` names it; null for any."""
    cpus_per_gpu: Count | None = None
    """Processors for each GPU, and for each process of a pretraining; null takes compute's threads."""
    requeue: bool = True
    """Whether Slurm may start a job again after preemption or a failed node."""
    pretraining_memory_mb: Megabytes = 16000
    """Memory of each process of a pretraining, of which there is one per GPU."""
    pretraining_minutes: Minutes | None = None
    """Time of one attempt of a pretraining; null takes the estimate of its cost."""
    planned_device: PlannedDevice | None = None
    """Device that an experiment's cost is estimated for (results/<experiment>/cost.md); mi250x is one of its two dies.
    null is h100 where jobs compute on GPUs (gpus_per_node above 0, or a GPU in this machine), otherwise its
    processor."""
    planned_mfu: ShareAboveZero = 0.3
    """Share of the device's peak that training is taken to reach in that estimate."""

    def __post_init__(self) -> None:
        for key in ("extra", "gpu_extra"):
            _check_extra(key, getattr(self, key) or "")
        no_type = self.gpu_type is None or self.gpus_per_node > 0
        require(no_type, "gpu_type", self.gpu_type, "null with gpus_per_node 0")
        bound, processes = self.target(with_model=True).memory_mb_per_node, self.processes_per_node
        if bound is not None and self.pretraining_memory_mb * processes > bound:
            raise RefusedError(
                "pretraining_memory_mb",
                f"got {self.pretraining_memory_mb} for each of {processes} processes of a node, "
                f"expected at most {bound // processes}, because a node has {bound}",
            )

    def target(self, with_model: bool) -> JobTarget:
        """Where jobs with or without a model go: a `gpu_` key that is null is as the key without `gpu_`."""
        values = {key: getattr(self, key) for key in JobTarget.__dataclass_fields__}
        if with_model:
            own = {key: getattr(self, f"gpu_{key}") for key in values}
            values |= {key: value for key, value in own.items() if value is not None}
        return JobTarget(**{**values, "extra": values["extra"] or ""})

    @property
    def processes_per_node(self) -> int:
        """Processes of a pretraining on each node: one per GPU, or one."""
        return max(1, self.gpus_per_node)

    @property
    def processes(self) -> int:
        """Processes of a pretraining on all nodes."""
        return self.nodes * self.processes_per_node


def _check_extra(key: str, extra: str) -> None:
    """Options that come from a key of the block, or from the executor itself, are refused."""
    try:
        words = shlex.split(extra)
    except ValueError as error:
        raise RefusedError(key, f"got {extra!r}, which a shell cannot read: {error}") from None
    expected = "options of sbatch without characters of the shell"
    require(not any(character in extra for character in ";&|<>$`\n"), key, extra, expected)
    for word in words:
        option = word.split("=", 1)[0]
        if not option.startswith("-"):
            continue
        if not option.startswith("--"):
            option = option[:2]
        for options, managed in MANAGED.items():
            require(option not in options, key, word, f"it under the key {managed!r}")
        require(option not in WITHOUT_KEY, key, word, "no option that Snakemake itself sets")


GPU = "h100"
CPU = "cpu"


def planned_device(cluster: ClusterSettings, device: DeviceName) -> str:
    """`cluster.planned_device`, or what null stands for where models compute on `device`."""
    if cluster.planned_device is not None:
        return cluster.planned_device
    if cluster.gpus_per_node:
        return GPU
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
