"""Resources of jobs: processors, memory, run time, GPUs, and the partition of a cluster.

`job_resources` is a pure function of the stage's record, the section `cluster` of the configuration, the job's threads
and estimated run time, and the attempt. The names of resources are those that Snakemake's Slurm executor reads;
resources that a job must not request are left out. The combinations of resources that the executor accepts for
pretraining were found by running it (`tests/workflow/planning/test_sbatch_lines.py`). `Resources` computes the
resources of a project's jobs. No result depends on resources, so Snakemake does not record them.
"""

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from hatchery.artifacts.gpu_claims import visible_gpus
from hatchery.experiment.cluster import ClusterSettings
from hatchery.settings.base import require
from hatchery.stage import SCRIPTS, Stage, Threads
from hatchery.workflow.jobs import Jobs
from hatchery.workflow.launch import PLAIN, is_slurm_job, launch_command
from hatchery.workflow.registry import stage_of

if TYPE_CHECKING:
    from hatchery.workflow.pretraining_time import PretrainingTimes

Resource = int | str
LEAST_MINUTES = 5
SLOTS = "gpu_slots"
TOKENIZATION_THREADS = 2
"""Number of threads for tokenizers. More threads would not help, because the tokenizer library trains a tokenizer, or
tokenizes a shard, in one call.
"""


@dataclass(frozen=True)
class JobFacts:
    """Number of processor threads of each process of a job, and the job's estimated run time in minutes, if known."""

    threads: int
    minutes: float | None = None


def job_resources(need: Stage, cluster: ClusterSettings, facts: JobFacts, attempt: int = 1) -> dict[str, Resource]:
    """Return the resources of a stage's job; the keys are the names that Snakemake's Slurm executor reads.

    `mem_mb` is the memory per node, and `runtime` is the run time in minutes. For a stage that never runs on the
    cluster, both values are constant. For other stages, both values grow with each attempt, up to the limits of the
    partition, because the cause of a failure (memory or time) is unknown. There is one exception: if the partition's
    memory limit is unknown, the memory of a pretraining does not grow. A pretraining may need many attempts, and the
    last attempts would request more memory than any node has. `gpu_slots` is the number of GPU slots that the job needs
    on this machine; a GPU has `jobs_per_gpu` slots. The Slurm executor ignores `gpu_slots` and uses `gres`. Raises
    ConfigError for an invalid number of threads, minutes or attempts.
    """
    require(facts.threads >= 1, "resources: threads", facts.threads, "1 or more")
    require(attempt >= 1, "resources: attempt", attempt, "1 or more")
    known = facts.minutes is None or facts.minutes >= 0
    require(known, "resources: minutes", facts.minutes, "0 or more, or None")
    if need.runs_on == "local":
        return {"mem_mb": need.memory_mb, "runtime": need.minutes}
    target = cluster.target(with_model=need.runs_on in ("gpu", "gpus"))
    if need.runs_on == "gpus":
        memory = cluster.pretraining_memory_mb * cluster.processes_per_node
        minutes = cluster.pretraining_minutes or facts.minutes
        resources = _pretraining_shape(cluster, facts)
    else:
        memory = need.memory_mb + need.memory_mb_per_thread * facts.threads
        minutes = facts.minutes
        resources = _one_gpu(cluster) if need.runs_on == "gpu" else {}
    first = need.minutes if minutes is None else max(LEAST_MINUTES, math.ceil(minutes))
    keeps_memory = need.runs_on == "gpus" and target.memory_mb_per_node is None
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
    """Return Slurm's generic resource (GRES) that requests `gpus` GPUs per node; None for 0 GPUs."""
    if not gpus:
        return None
    return f"gpu:{gpus}" if cluster.gpu_type is None else f"gpu:{cluster.gpu_type}:{gpus}"


def _one_gpu(cluster: ClusterSettings) -> dict[str, Resource]:
    resources: dict[str, Resource] = {SLOTS: 1}
    if cluster.gpus_per_node:
        resources["gres"] = str(gres(cluster, 1))
        if cluster.cpus_per_gpu is not None:
            resources["cpus_per_task"] = cluster.cpus_per_gpu
    return resources


def _pretraining_shape(cluster: ClusterSettings, facts: JobFacts) -> dict[str, Resource]:
    """Return the resources of a pretraining with one process per GPU.

    There are three cases, and each case has its own resource names; with the names of another case, Slurm refuses the
    job or never starts it. A single process needs neither tasks nor `mpi`. Several processes per node need the number
    of tasks per node. One process on each of several nodes needs the total number of tasks, and `tasks_per_gpu=0`,
    which prevents a contradictory `--ntasks-per-gpu`.
    """
    nodes, per_node = cluster.nodes, cluster.processes_per_node
    resources: dict[str, Resource] = {
        "cpus_per_task": cluster.cpus_per_gpu or facts.threads,
        SLOTS: per_node * cluster.jobs_per_gpu,
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


def program(name: str) -> str:
    """Return the path of a program in `scripts/`, for use in a command.

    The path is relative if the current folder is the checkout, otherwise absolute.
    """
    is_here = Path("scripts").resolve() == SCRIPTS.resolve()
    return f"scripts/{name}" if is_here else quote(str((SCRIPTS / name).absolute()))


def _bounded(value: int, bound: int | None) -> int:
    return value if bound is None else min(value, bound)


class Resources:
    """Resources of the jobs of a project. The run time of a pretraining is estimated from its FLOPs and the speed of
    the planned device, unless `cluster.pretraining_minutes` is set.
    """

    def __init__(self, jobs: Jobs, is_main_process: bool = True) -> None:
        self.jobs = jobs
        self._config = jobs.project.config
        self._cluster = jobs.project.config.cluster
        self._is_main_process = is_main_process
        self._times: dict[str, PretrainingTimes] = {}

    def threads(self, kind: Threads | None) -> int:
        """Return the number of processor threads of a stage's job. `kind` is the field `threads` of the stage's record
        (`Stage`), such as `evaluation` for the number in `compute.evaluation_threads`; None means one thread.
        """
        if kind is None:
            return 1
        return TOKENIZATION_THREADS if kind == "tokenization" else int(getattr(self._config.compute, f"{kind}_threads"))

    def of_rule(self, name: str) -> Mapping[str, Resource | Callable[..., Resource]]:
        """Return the `resources` of a stage's rule: constants, or functions of wildcards and attempt.

        Resources that the job must not request are left out. Only resources that grow with the attempt are functions,
        so that dry runs of many jobs are fast.
        """
        record = stage_of(name)
        first = job_resources(record, self._cluster, JobFacts(self.threads(record.threads)))
        if record.runs_on == "local":
            return first
        return first | {key: self._growing(record, key) for key in ("mem_mb", "runtime")}

    def gpu_slots_here(self) -> int | None:
        """Return the total number of `gpu_slots` on this machine; None if jobs use the CPU or the machine has no
        GPUs.
        """
        return None if self._config.compute.device == "cpu" else self._gpus_here * self._cluster.jobs_per_gpu or None

    def gpu_claim(self, resources: Any, shared: bool = False) -> str:
        """Return the first part of a job's command line: the call of the program that reserves the job's GPUs on this
        machine. Empty if the job uses the CPU.

        If `shared` is true and GPUs have several slots, the program reserves slots instead of whole GPUs. The text does
        not depend on which GPUs are free, so that Snakemake does not find a changed command.
        """
        slots, each = resources.get(SLOTS), self._cluster.jobs_per_gpu
        if not slots or self._config.compute.device == "cpu":
            return ""
        wanted = f"--gpus {slots} --jobs-per-gpu {each}" if shared and each > 1 else f"--gpus {slots // each}"
        return f"python {program('claim_gpus.py')} {wanted} -- "

    def command(self, record: Stage, resources: Any) -> str:
        """Return the beginning of the command of a stage's job with these resources.

        Unless `compute.device` is `cpu`, the command of a job that uses a model first reserves GPUs. The command of a
        pretraining in a Slurm job reserves no GPUs, because Slurm has assigned GPUs to the job. The command of a
        pretraining starts one process per GPU.
        """
        script = f"{program('run.py')} {record.name}"
        if record.runs_on == "gpus":
            in_slurm_job = is_slurm_job(self._is_main_process, os.environ)
            claim = "" if in_slurm_job else self.gpu_claim(resources)
            launch = launch_command(resources, resources.cpus_per_task, in_slurm_job, self._gpus_here)
            return f"{claim}{launch} {script}"
        claim = self.gpu_claim(resources, shared=True) if record.runs_on == "gpu" else ""
        return f"{claim}{PLAIN} {script}"

    def runtime(self, name: str) -> dict[str, object]:
        """Return the runtime settings (section `compute` of the configuration) for the jobs of a stage."""
        record, compute = stage_of(name), self._config.compute
        return {**{key: getattr(compute, key) for key in record.runtime}, "threads": self.threads(record.threads)}

    def _growing(self, record: Stage, key: str) -> Callable[..., Resource]:
        def value(wildcards: Any, attempt: int) -> Resource:
            minutes = self._minutes(record, wildcards) if key == "runtime" else None
            facts = JobFacts(self.threads(record.threads), minutes)
            return job_resources(record, self._cluster, facts, attempt)[key]

        return value

    def _minutes(self, record: Stage, wildcards: Any) -> float | None:
        if record.runs_on != "gpus":
            return None
        names = self.jobs.names(wildcards.model)
        # Return None if the name of the run is unknown. This happens only in the Snakemake process inside a Slurm job,
        # which requests no run time.
        return self.pretraining_times(names["experiment"]).minutes(names["run"]) if names else None

    def pretraining_times(self, experiment: str) -> "PretrainingTimes":
        """Return the estimated run times of the pretrainings of an experiment."""
        # Import this class only here: Snakemake starts faster without the import, and each job starts Snakemake twice.
        from hatchery.workflow.pretraining_time import PretrainingTimes

        if experiment not in self._times:
            settings = self.jobs.settings("write_cost", experiment=experiment)
            self._times[experiment] = PretrainingTimes(self.jobs.project, settings)
        return self._times[experiment]

    @cached_property
    def _gpus_here(self) -> int:
        return len(visible_gpus(os.environ))
