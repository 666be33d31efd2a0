"""What the job of every stage asks of the machine: processors, memory, time, GPUs, and where on a cluster it goes.

One pure function of the stage's record, the `cluster` block, what is known of the job's size, and the attempt. Names
are those that the Slurm executor of Snakemake reads; a key that a job must not have is missing. Shapes of pretraining
that this executor accepts were found by running it (`tests/workflow/planning/test_sbatch_lines.py` holds them).
"""

import math
from dataclasses import dataclass

from hatchery.experiment.cluster import ClusterSettings
from hatchery.settings.base import require
from hatchery.stages.record import Stage

Resource = int | str
LEAST_MINUTES = 5


@dataclass(frozen=True)
class JobFacts:
    """What is known of one job: processor threads of each of its processes, and minutes where an estimate says."""

    threads: int
    minutes: float | None = None


def job_resources(need: Stage, cluster: ClusterSettings, facts: JobFacts, attempt: int = 1) -> dict[str, Resource]:
    """Everything that the job of a stage asks for, by the executor's names.

    `mem_mb` is for a node, `runtime` in minutes. Both grow with the attempt, because neither the executor nor we know
    whether a job died of memory or of time, up to what the partition grants. The memory of a pretraining stays as it is
    where no bound is known: its attempts are pieces of one run, and a node's memory times six exists nowhere.
    `gpu_slots` counts the GPUs of one machine where jobs run at once; Slurm's executor does not know it and reads
    `gres`. Raises ConfigError for an impossible number of threads, minutes or attempts.
    """
    require(facts.threads >= 1, "resources: threads", facts.threads, "1 or more")
    require(attempt >= 1, "resources: attempt", attempt, "1 or more")
    known = facts.minutes is None or facts.minutes >= 0
    require(known, "resources: minutes", facts.minutes, "0 or more, or None")
    if need.sort == "local":
        return {"mem_mb": need.memory_mb, "runtime": need.minutes}
    target = cluster.target(with_model=need.sort in ("model", "pretraining"))
    if need.sort == "pretraining":
        memory = cluster.pretraining_memory_mb * cluster.processes_per_node
        minutes = cluster.pretraining_minutes or facts.minutes
        resources = _pretraining_shape(cluster, facts)
    else:
        memory = need.memory_mb + need.memory_mb_per_thread * facts.threads
        minutes = facts.minutes
        resources = _one_gpu(cluster) if need.sort == "model" else {}
    first = need.minutes if minutes is None else max(LEAST_MINUTES, math.ceil(minutes))
    keeps_memory = need.sort == "pretraining" and target.memory_mb_per_node is None
    resources["mem_mb"] = memory if keeps_memory else _bounded(memory * attempt, target.memory_mb_per_node)
    resources["runtime"] = _bounded(first * attempt, target.max_minutes)
    extra = " ".join(word for word in ("--requeue" if cluster.requeue else "--no-requeue", target.extra) if word)
    named = {
        "slurm_partition": target.partition,
        "slurm_account": target.account,
        "qos": target.qos,
        "constraint": target.constraint,
        "slurm_extra": extra,
    }
    return resources | {key: value for key, value in named.items() if value is not None}


def gres(cluster: ClusterSettings, gpus: int) -> str | None:
    """Slurm's generic resources for so many GPUs on each node; None for none."""
    if not gpus:
        return None
    return f"gpu:{gpus}" if cluster.gpu_type is None else f"gpu:{cluster.gpu_type}:{gpus}"


def _one_gpu(cluster: ClusterSettings) -> dict[str, Resource]:
    resources: dict[str, Resource] = {"gpu_slots": 1}
    if cluster.gpus_per_node:
        resources["gres"] = str(gres(cluster, 1))
        if cluster.cpus_per_gpu is not None:
            resources["cpus_per_task"] = cluster.cpus_per_gpu
    return resources


def _pretraining_shape(cluster: ClusterSettings, facts: JobFacts) -> dict[str, Resource]:
    """One process per GPU. Each of the four shapes needs other keys: one that is too many is refused, or waits forever.

    With one process the executor wants no tasks and no `mpi`; with several processes on a node it counts tasks per
    node, with one on each of several nodes all tasks, and there `tasks_per_gpu=0` keeps it from adding a
    contradictory `--ntasks-per-gpu`.
    """
    nodes, per_node = cluster.nodes, cluster.processes_per_node
    resources: dict[str, Resource] = {
        "cpus_per_task": cluster.cpus_per_gpu or facts.threads,
        "gpu_slots": per_node,
    }
    generic = gres(cluster, cluster.gpus_per_node)
    if generic is not None:
        resources["gres"] = generic
    if cluster.processes == 1:
        return resources
    resources |= {"nodes": nodes, "mpi": "srun"}
    if per_node > 1:
        return resources | {"tasks_per_node": per_node}
    return resources | {"tasks": nodes, "tasks_per_gpu": 0}


def _bounded(value: int, bound: int | None) -> int:
    return value if bound is None else min(value, bound)
