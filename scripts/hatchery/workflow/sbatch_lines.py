"""The jobs of a target with the sbatch line that each would be sent by.

Snakemake plans, with the profile and the configuration in force, and the Slurm plugin's own functions write the lines,
so what is shown is what would be sent. Every job of the target is planned, also the finished ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from snakemake_executor_plugin_slurm.partitions import get_best_partition, read_partition_file
from snakemake_executor_plugin_slurm.submit_string import get_submit_command, safe_quote
from snakemake_executor_plugin_slurm.utils import get_job_wildcards, set_gres_string
from snakemake_executor_plugin_slurm.validation import validate_slurm_extra
from snakemake_interface_executor_plugins.registry import ExecutorPluginRegistry

from hatchery.errors import PlanError, first_line
from hatchery.workflow.planned_jobs import dag_of, opened, wildcards_of

RUN_NAME = "RUN"
"""Stands in the lines for the name that each run of Snakemake draws anew."""


@dataclass(frozen=True)
class ClusterJob:
    """One job: where it runs and what is asked for it."""

    rule: str
    wildcards: dict[str, str]
    # Runs on the machine that submits; then there is no sbatch line.
    local: bool
    # Without the command that Slurm wraps, which is Snakemake's call of itself.
    sbatch: str

    @property
    def name(self) -> str:
        """Rule and wildcards, as Snakemake writes them into the comment of the Slurm job."""
        return "_".join([f"rule_{self.rule}", *(["wildcards", *self.wildcards.values()] if self.wildcards else [])])


def plan(target: str, profile: str = "slurm", extra: Sequence[str] = ()) -> list[ClusterJob]:
    """Every job of `target` under a profile of the Slurm executor, by name; planned in the current folder.

    `extra` are further arguments of Snakemake. Raises PlanError, naming the rule if its resources are refused.
    """
    arguments = ["--profile", profile, "--dry-run", *extra, "--", target]
    with opened(arguments) as (parsed, api):
        if parsed.executor != "slurm":
            raise PlanError(f"profile {profile}: its executor is {parsed.executor or 'local'!r}, expected 'slurm'")
        settings = ExecutorPluginRegistry().get_plugin("slurm").get_settings(parsed)
        api.dag(dag_settings=dag_of(parsed, everything=True)).execute_workflow(
            executor="slurm", pseudo_executor="dryrun", executor_settings=settings
        )
        workflow = api._workflow
        # Under the dry run's own executor every rule would count as local.
        workflow._executor_plugin = ExecutorPluginRegistry().get_plugin("slurm")
        partitions = read_partition_file(settings.partition_config) if settings.partition_config else None
        jobs = [_planned(job, workflow, settings, partitions) for job in workflow.dag.jobs]
        return sorted(jobs, key=lambda job: job.name)


def _planned(job: Any, workflow: Any, settings: Any, partitions: Any) -> ClusterJob:
    local = bool(workflow.is_local(job.rule))
    return ClusterJob(
        rule=job.rule.name,
        wildcards=wildcards_of(job),
        local=local,
        sbatch="" if local else _sbatch_line(job, settings, partitions),
    )


def _sbatch_line(job: Any, settings: Any, partitions: Any) -> str:
    """What `Executor.run_job` of the plugin puts together, up to `--wrap`; the account is not looked up."""
    folder = Path(settings.logdir or ".snakemake/slurm_logs")
    wildcards = get_job_wildcards(job)
    partition = job.resources.get("slurm_partition")
    if not partition and partitions:
        partition = get_best_partition(partitions, job, _Silent())
    account = job.resources.get("slurm_account")
    try:
        validate_slurm_extra(job)
        line = get_submit_command(
            job,
            {
                "run_uuid": f"{settings.jobname_prefix}_{RUN_NAME}" if settings.jobname_prefix else RUN_NAME,
                "slurm_logfile": folder / f"rule_{job.rule.name}" / wildcards / "%j.log",
                "comment_str": f"rule_{job.rule.name}" + (f"_wildcards_{wildcards}" if wildcards else ""),
                "account": f"-A {safe_quote(account)}" if account else "",
                "partition": f"-p {safe_quote(partition)}" if partition else "",
                "workdir": None,
            },
            settings=settings,
        )
        return " ".join((line + set_gres_string(job)).split())
    except Exception as error:
        raise PlanError(f"rule {job.rule.name}: the Slurm plugin refuses its resources: {first_line(error)}") from error


class _Silent:
    """Takes the plugin's words about how it chose a partition."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None
