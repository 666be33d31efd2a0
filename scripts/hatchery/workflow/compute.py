"""How jobs compute: threads, devices, cluster resources. None of it belongs to a result, so none of it is tracked."""

import os
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hatchery.artifacts.checksums import canonical_json
from hatchery.artifacts.gpu_claims import visible_gpus
from hatchery.experiment.cluster import ClusterSettings
from hatchery.experiment.project import Project
from hatchery.stages.record import Stage, Threads, wanted
from hatchery.stages.registry import stage_of
from hatchery.workflow.launch import is_slurm_job, launch_command
from hatchery.workflow.resources import JobFacts, Resource, job_resources
from hatchery.workflow.result_store import KeptResults

if TYPE_CHECKING:
    from hatchery.workflow.planned_work import PlannedWork

TOKENIZATION_THREADS = 2
"""More do not help: tokenizers are trained and applied by one library call per shard."""


class Compute(KeptResults):
    """The layout together with what the rules need to start jobs."""

    def __init__(self, project: Project, is_main_process: bool = True) -> None:
        super().__init__(project)
        self.is_main_process = is_main_process

    @property
    def cluster_settings(self) -> ClusterSettings:
        """The `cluster` block."""
        return self.project.config.cluster

    def threads(self, kind: Threads | None) -> int:
        """Processor threads of a `corpus`, `tokenization`, `pretraining` or `evaluation` job; one of any other."""
        if kind is None:
            return 1
        return (
            TOKENIZATION_THREADS
            if kind == "tokenization"
            else int(getattr(self.project.config.compute, f"{kind}_threads"))
        )

    def resources(self, name: str) -> dict[str, Any]:
        """The `resources` of a stage's rule: constants, and functions of wildcards and attempt.

        A key that the job must not have is missing. What does not grow with the attempt is a constant, which keeps
        dry runs of many jobs short.
        """
        record = stage_of(name)
        first = job_resources(record, self.cluster_settings, JobFacts(self.threads(record.threads)))
        if record.sort == "local":
            return first
        return first | {key: self._growing(record, key) for key in ("mem_mb", "runtime")}

    def gpu_claim(self, resources: Any) -> str:
        """The beginning of a command that computes on GPUs: it takes as many of this machine as the job may have.

        A function of the job's resources, so that no rerun follows from it; empty where jobs compute on processors.
        """
        slots = resources.get("gpu_slots")
        if not slots or self.project.config.compute.device == "cpu":
            return ""
        return f"python scripts/claim_gpus.py --gpus {slots} -- "

    def launch(self, resources: Any) -> str:
        """The beginning of the command of a pretraining with these resources, which starts its processes.

        In a job of Slurm the GPUs are Slurm's to give; elsewhere they are claimed first.
        """
        in_slurm_job = is_slurm_job(self.is_main_process, os.environ)
        claim = "" if in_slurm_job else self.gpu_claim(resources)
        return claim + launch_command(resources, resources.cpus_per_task, in_slurm_job, self._gpus_here)

    def runtime(self, name: str) -> str:
        """Canonical JSON of how the job of a stage computes."""
        record, compute = stage_of(name), self.project.config.compute
        return canonical_json(
            {**{key: getattr(compute, key) for key in record.runtime}, "threads": self.threads(record.threads)}
        )

    def _growing(self, record: Stage, key: str) -> Callable[..., Resource]:
        def value(wildcards: Any, attempt: int) -> Resource:
            minutes = self._minutes(record, wildcards) if key == "runtime" else None
            facts = JobFacts(self.threads(record.threads), minutes)
            return job_resources(record, self.cluster_settings, facts, attempt)[key]

        return value

    def _minutes(self, record: Stage, wildcards: Any) -> float | None:
        if record.expected_minutes is None:
            return None
        names = self.names(wildcards.model, getattr(wildcards, "address", ""))
        try:
            known = {"work": self._planned(names["experiment"]), "layout": self, **names}
            return record.expected_minutes(**wanted(record.expected_minutes, known))
        # A suite or task that the experiment does not name can be asked for all the same; and the job that Slurm has
        # started does not ask for time any more.
        except KeyError:
            return None

    def _planned(self, experiment: str) -> "PlannedWork":
        # Counting operations needs more modules than starting Snakemake, which jobs do twice.
        from hatchery.workflow.planned_work import PlannedWork

        if experiment not in self._work:
            settings = self.settings("write_cost", experiment=experiment)
            threads = self.threads("evaluation")
            self._work[experiment] = PlannedWork(settings, self.cluster_settings, threads)
        return self._work[experiment]

    @cached_property
    def _gpus_here(self) -> int:
        return len(visible_gpus(os.environ))

    @cached_property
    def _work(self) -> "dict[str, PlannedWork]":
        return {}
