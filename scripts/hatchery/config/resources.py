"""What the job of every rule asks of the machine: processors, memory, time, GPUs, and where on a cluster it goes.

One pure function of the rule, the `cluster` block, what is known of the job's size, and the attempt. Names are those
that the Slurm executor of Snakemake reads; a key that a job must not have is missing. Shapes of pretraining that this
executor accepts were found by running it (`tests/config/test_sbatch_lines.py` holds them).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from hatchery.config.cluster import ClusterSettings
from hatchery.config.schema import nearest
from hatchery.errors import ConfigError

Resource = int | str
Sort = Literal["local", "cpu", "model", "pretraining"]
LEAST_MINUTES = 5


@dataclass(frozen=True)
class Demand:
    """What a rule's job needs at its first attempt, whatever the cluster."""

    # "local": on the submitting machine; "cpu": without a model; "model": on one GPU, if there are any.
    sort: Sort
    memory_mb: int
    # Where a job's time follows from its size (`JobFacts.minutes`), the time without that knowledge.
    minutes: int
    memory_mb_per_thread: int = 0


DEMANDS: Mapping[str, Demand] = {
    # Local: light, or in need of the network, which nodes of a cluster often lack.
    "show_result": Demand("local", 100, 1),
    "register_source": Demand("local", 1500, 1440),
    "write_cost": Demand("local", 2000, 10),
    "summarise": Demand("local", 2000, 10),
    "draw_figure": Demand("local", 2000, 10),
    "tabulate_layer_contributions": Demand("local", 2000, 10),
    "write_page": Demand("local", 500, 10),
    "write_run_card": Demand("local", 1000, 10),
    "write_provenance": Demand("local", 1000, 10),
    "write_tables": Demand("local", 2000, 10),
    "export_model": Demand("local", 3000, 10),
    "fill_sentences": Demand("local", 3000, 10),
    "list_exported_models": Demand("local", 500, 10),
    # On processors.
    "generate_embedded_sources": Demand("cpu", 1000, 10),
    "build_vocabulary": Demand("cpu", 2000, 60),
    "select_text": Demand("cpu", 2000, 1440, memory_mb_per_thread=1000),
    "convert_corpus": Demand("cpu", 2000, 240, memory_mb_per_thread=1000),
    "sample_corpus": Demand("cpu", 4000, 240),
    "group_sequences": Demand("cpu", 4000, 240),
    "describe_corpus": Demand("cpu", 4000, 120),
    "train_tokenizer": Demand("cpu", 8000, 120),
    "encode_corpus": Demand("cpu", 8000, 120),
    "select_tokenizer": Demand("cpu", 8000, 1440, memory_mb_per_thread=2000),
    # With a model; its weights, the task's rows and the libraries of a GPU come to a few gigabytes of main memory.
    "score_minimal_pairs": Demand("model", 8000, 480),
    "score_baseline": Demand("model", 16000, 480),
    "measure_perplexity": Demand("model", 8000, 240),
    "finetune": Demand("model", 8000, 480),
    "finetune_tasks": Demand("model", 8000, 480),
    # Memory and time are in the `cluster` block.
    "pretrain": Demand("pretraining", 0, 1440),
}


@dataclass(frozen=True)
class JobFacts:
    """What is known of one job: processor threads of each of its processes, and minutes where an estimate says."""

    threads: int
    minutes: float | None = None


def demand(rule: str) -> Demand:
    """The demand of a rule's job. Raises ConfigError for a rule without one."""
    if rule not in DEMANDS:
        raise ConfigError(
            f"resources: got the rule {rule!r}, which has no entry in scripts/hatchery/config/resources.py"
            f"{nearest(rule, DEMANDS)}"
        )
    return DEMANDS[rule]


def job_resources(rule: str, cluster: ClusterSettings, facts: JobFacts, attempt: int = 1) -> dict[str, Resource]:
    """Everything that the job of `rule` asks for, by the executor's names.

    `mem_mb` is for a node, `runtime` in minutes. Both grow with the attempt, because neither the executor nor we know
    whether a job died of memory or of time, up to what the partition grants. The memory of a pretraining stays as it is
    where no bound is known: its attempts are pieces of one run, and a node's memory times six exists nowhere.
    `gpu_slots` counts the GPUs of one machine where jobs run at once; Slurm's executor does not know it and reads
    `gres`. Raises ConfigError for an unknown rule or an impossible number of threads, minutes or attempts.
    """
    need = demand(rule)
    _require("threads", facts.threads, facts.threads >= 1, "1 or more")
    _require("attempt", attempt, attempt >= 1, "1 or more")
    _require("minutes", facts.minutes, facts.minutes is None or facts.minutes >= 0, "0 or more, or None")
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


def _require(name: str, value: object, condition: bool, expected: str) -> None:
    if not condition:
        raise ConfigError(f"resources: {name}: got {value!r}, expected {expected}")
