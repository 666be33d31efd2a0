"""What the jobs of a plan ask of one node and of how many: the numbers that partitions and nodes must have.

Slurm's meaning of the resources, as the plugin passes them on: memory and `gres` are for each node, processors for
each task. Source: the manual page of sbatch.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from hatchery.workflow.planned_jobs import ClusterJob
from hatchery.workflow.slurm_text import gres_gpus


@dataclass(frozen=True)
class JobShape:
    """One shape of a job; equal jobs of one rule have equal shapes."""

    partition: str | None
    account: str | None
    nodes: int
    tasks_per_node: int
    processors_per_node: int
    memory_mb: int
    gpus_per_node: int
    gpu_model: str
    minutes: int | None
    constraint: str | None = None
    qos: str | None = None
    # More options of sbatch.
    extra: str = ""

    def __str__(self) -> str:
        parts = [f"{self.processors_per_node} processors", f"{self.memory_mb:,} MB"]
        if self.gpus_per_node:
            parts.append(f"{self.gpus_per_node} GPUs" + (f" ({self.gpu_model})" if self.gpu_model else ""))
        return f"{self.nodes} x ({', '.join(parts)})"


def job_shape(job: ClusterJob) -> JobShape:
    """The shape of a job. Jobs of several nodes name `tasks_per_node`, or `tasks` for all of them together."""
    given = job.resources
    nodes = int(given.get("nodes", 1))
    tasks_per_node = int(given.get("tasks_per_node") or -(-int(given.get("tasks", 1)) // nodes))
    kinds = gres_gpus(str(given.get("gres", "")))
    gpus, model = sum(count for _, count in kinds), next((model for model, _ in kinds if model), "")
    if "gpu" in given:
        gpus, model = -(-int(given["gpu"]) // nodes), str(given.get("gpu_model", ""))
    processors = int(given.get("cpus_per_task") or job.threads)
    return JobShape(
        partition=str(given["slurm_partition"]) if given.get("slurm_partition") else None,
        account=str(given["slurm_account"]) if given.get("slurm_account") else None,
        nodes=nodes,
        tasks_per_node=tasks_per_node,
        processors_per_node=max(1, processors) * tasks_per_node,
        memory_mb=int(given.get("mem_mb", 0)),
        gpus_per_node=gpus,
        gpu_model=model,
        minutes=int(given["runtime"]) if "runtime" in given else None,
        constraint=str(given["constraint"]) if given.get("constraint") else None,
        qos=str(given["qos"]) if given.get("qos") else None,
        extra=str(given.get("slurm_extra", "")),
    )


def job_shapes(jobs: Iterable[ClusterJob]) -> dict[JobShape, list[str]]:
    """Each shape among the jobs that go to Slurm, with the rules that have it, in the order of their names."""
    shapes: dict[JobShape, set[str]] = {}
    for job in jobs:
        if not job.local:
            shapes.setdefault(job_shape(job), set()).add(job.rule)
    return {shape: sorted(rules) for shape, rules in sorted(shapes.items(), key=lambda pair: sorted(pair[1]))}
