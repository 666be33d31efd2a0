"""How jobs compute: threads, devices, cluster resources. None of it belongs to a result, so none of it is tracked."""

import os
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hatchery.config.cluster import ClusterSettings, cluster_settings
from hatchery.config.kept_results import KeptResults
from hatchery.config.launch import is_slurm_job, launch_command, pretraining_resources
from hatchery.config.resources import JobFacts, Resource, demand, job_resources
from hatchery.storage.checksums import canonical_json
from hatchery.storage.gpu_claims import visible_gpus

if TYPE_CHECKING:
    from hatchery.config.planned_work import PlannedWork

TOKENIZATION_THREADS = 2
"""More do not help: tokenizers are trained and applied by one library call per shard."""

# Threads of a rule's job by kind; a rule that is not here has one.
KINDS = {
    "select_text": "corpus",
    "convert_corpus": "corpus",
    "select_tokenizer": "corpus",
    "train_tokenizer": "tokenization",
    "encode_corpus": "tokenization",
    "score_minimal_pairs": "evaluation",
    "score_baseline": "evaluation",
    "measure_perplexity": "evaluation",
    "finetune": "evaluation",
    "finetune_tasks": "evaluation",
    "pretrain": "pretraining",
}

# What a job of each of these rules asks for is known before it runs, so its size decides about its time.
SIZED = ("score_minimal_pairs", "finetune", "finetune_tasks")


class Compute(KeptResults):
    """The layout together with what the rules need to start jobs."""

    @cached_property
    def cluster_settings(self) -> ClusterSettings:
        """The `cluster` block. Raises ConfigError for values that do not fit each other."""
        return cluster_settings(self.project.config["cluster"], f"{self.project.folder / 'config.yaml'}: cluster")

    def threads(self, kind: str) -> int:
        """Processor threads of a `corpus`, `tokenization`, `pretraining` or `evaluation` job."""
        return (
            TOKENIZATION_THREADS if kind == "tokenization" else int(self.project.config["compute"][f"{kind}_threads"])
        )

    def resources(self, rule: str) -> dict[str, Any]:
        """The `resources` of a rule but for `pretrain`: constants, and functions of wildcards and attempt.

        A key that the job must not have is missing. What does not grow with the attempt is a constant, which keeps
        dry runs of many jobs short.
        """
        first = job_resources(rule, self.cluster_settings, self._facts(rule))
        if demand(rule).sort == "local":
            return first
        return {**first, "mem_mb": self._memory(rule), "runtime": self._runtime(rule)}

    def pretraining_resource(self, key: str, wildcards: Any, attempt: int = 1) -> Resource | None:
        """One of the resources of a pretraining; None, which removes the resource, where its job must not have it."""
        names = self.names(wildcards.model) if key == "runtime" else {}
        minutes = self._planned(names["experiment"]).pretraining_minutes(names["cell"]) if names else None
        facts = JobFacts(self.threads("pretraining"), minutes)
        return job_resources("pretrain", self.cluster_settings, facts, attempt).get(key)

    def gpu_claim(self, resources: Any) -> str:
        """The beginning of a command that computes on GPUs: it takes as many of this machine as the job may have.

        A function of the job's resources, so that no rerun follows from it; empty where jobs compute on processors.
        """
        slots = resources.get("gpu_slots")
        if not slots or self.project.config["compute"]["device"] == "cpu":
            return ""
        return f"python scripts/claim_gpus.py --gpus {slots} -- "

    def resources_of_pretraining(self) -> dict[str, Callable[..., Any]]:
        """The `resources` of `pretrain`: for each key a function of wildcards and attempt."""
        return pretraining_resources(self.pretraining_resource)

    def launch(self, resources: Any, is_main_process: bool) -> str:
        """The beginning of the command of a pretraining with these resources, which starts its processes.

        In a job of Slurm the GPUs are Slurm's to give; elsewhere they are claimed first.
        """
        in_slurm_job = is_slurm_job(is_main_process, os.environ)
        claim = "" if in_slurm_job else self.gpu_claim(resources)
        return claim + launch_command(resources, resources.cpus_per_task, in_slurm_job, self._gpus_here)

    def runtime(self, stage: str) -> str:
        """Canonical JSON of how the job of `stage` computes."""
        compute = self.project.config["compute"]
        match stage:
            case "pretrain":
                keys = [
                    "device",
                    "micro_batch_size",
                    "checkpoint_interval_steps",
                    "keep_checkpoints",
                    "log_interval_steps",
                    "milestones",
                    "background_checkpoints",
                    "workers",
                    "compile",
                    "time_limit_minutes",
                    "grace_seconds",
                    "sinks",
                ]
                return canonical_json({**{k: compute[k] for k in keys}, "threads": compute["pretraining_threads"]})
            case "score_minimal_pairs":
                chosen = {k: compute[k] for k in ["device", "tokens_per_batch"]}
                return canonical_json({**chosen, "threads": compute["evaluation_threads"]})
            case "finetune":
                chosen = {k: compute[k] for k in ["device", "frozen_layers_mib"]}
                return canonical_json({**chosen, "threads": compute["evaluation_threads"]})
            case _:
                raise ValueError(f"the stage {stage!r} takes no runtime settings")

    def _facts(self, rule: str, minutes: float | None = None) -> JobFacts:
        return JobFacts(self.threads(KINDS[rule]) if rule in KINDS else 1, minutes)

    def _memory(self, rule: str) -> Callable[..., Resource]:
        def memory(wildcards: Any, attempt: int) -> Resource:
            return job_resources(rule, self.cluster_settings, self._facts(rule), attempt)["mem_mb"]

        return memory

    def _runtime(self, rule: str) -> Callable[..., Resource]:
        def runtime(wildcards: Any, attempt: int) -> Resource:
            facts = self._facts(rule, self._minutes(rule, wildcards) if rule in SIZED else None)
            return job_resources(rule, self.cluster_settings, facts, attempt)["runtime"]

        return runtime

    def _minutes(self, rule: str, wildcards: Any) -> float | None:
        names = self.names(wildcards.model, wildcards.address)
        try:
            work, cell = self._planned(names["experiment"]), names["cell"]
            match rule:
                case "score_minimal_pairs":
                    return work.minimal_pairs_minutes(cell, names["suite"])
                case "finetune":
                    return work.finetuning_minutes(cell, [names["task"]])
                case _:
                    return work.finetuning_minutes(cell, self.batch_tasks(names["experiment"], names["batch"]))
        # A suite or task that the experiment does not name can be asked for all the same; and the job that Slurm has
        # started does not ask for time any more.
        except KeyError:
            return None

    def _planned(self, experiment: str) -> "PlannedWork":
        # Counting operations needs more modules than starting Snakemake, which jobs do twice.
        from hatchery.config.planned_work import PlannedWork

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
