"""The jobs of a target with the sbatch line that each would be sent by.

Snakemake plans (its own dry run, with the profile and the configuration in force), and the Slurm plugin's own functions
write the lines: nothing of that is computed anew here, so what is shown is what would be sent. Every job of the target
is planned, also the finished ones. Nothing is run and nothing is written but Snakemake's own folder.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from logging import NullHandler
from pathlib import Path
from typing import Any
from warnings import catch_warnings, filterwarnings

from snakemake.api import SnakemakeApi, WorkflowApi
from snakemake.cli import parse_args, parse_config
from snakemake.settings.types import (
    ConfigSettings,
    DAGSettings,
    DeploymentSettings,
    OutputSettings,
    Quietness,
    ResourceSettings,
    StorageSettings,
    WorkflowSettings,
)
from snakemake_executor_plugin_slurm.partitions import get_best_partition, read_partition_file
from snakemake_executor_plugin_slurm.submit_string import get_submit_command, safe_quote
from snakemake_executor_plugin_slurm.utils import get_job_wildcards, set_gres_string
from snakemake_executor_plugin_slurm.validation import validate_slurm_extra
from snakemake_interface_executor_plugins.registry import ExecutorPluginRegistry

from hatchery.errors import HatcheryError, PlanError, first_line

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


@contextmanager
def opened(arguments: Sequence[str]) -> Iterator[tuple[Any, WorkflowApi]]:
    """The workflow of the current folder as Snakemake reads it with these command line arguments.

    Raises PlanError when the command line, a profile or the configuration is wrong.
    """
    said = StringIO()
    try:
        with redirect_stdout(said), redirect_stderr(said):
            _, parsed = parse_args(list(arguments))
    except SystemExit as error:
        last = (said.getvalue().strip().splitlines() or [""])[-1]
        raise PlanError(f"snakemake {' '.join(arguments)}: {last}") from error
    except Exception as error:
        raise PlanError(f"snakemake {' '.join(arguments)}: {first_line(error)}") from error
    output = OutputSettings(dryrun=True, quiet={Quietness.ALL})
    with catch_warnings(), SnakemakeApi(output) as api:
        # Sizes of inputs that are not there yet are asked for and dropped by Snakemake.
        filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
        # A dry run talks however quiet it is asked to be.
        api.logger_manager.logger.handlers.clear()
        api.logger_manager.logger.addHandler(NullHandler())
        try:
            workflow = api.workflow(
                resource_settings=ResourceSettings(
                    cores=parsed.cores,
                    nodes=parsed.jobs,
                    local_cores=parsed.local_cores,
                    max_threads=parsed.max_threads,
                    resources=parsed.resources,
                    overwrite_threads=parsed.set_threads,
                    overwrite_scatter=parsed.set_scatter,
                    overwrite_resource_scopes=parsed.set_resource_scopes,
                    overwrite_resources=parsed.set_resources,
                    default_resources=parsed.default_resources,
                ),
                config_settings=ConfigSettings(
                    config=parse_config(parsed.config), configfiles=parsed.configfile, config_args=parsed.config
                ),
                storage_settings=StorageSettings(shared_fs_usage=parsed.shared_fs_usage),
                workflow_settings=WorkflowSettings(),
                # Planning must not need conda.
                deployment_settings=DeploymentSettings(deployment_method=set()),
                snakefile=parsed.snakefile,
            )
            yield parsed, workflow
        except HatcheryError:
            raise
        except Exception as error:
            raise PlanError(f"snakemake {' '.join(arguments)}: {first_line(error)}") from error


def plan(target: str, profile: str = "slurm", extra: Sequence[str] = ()) -> list[ClusterJob]:
    """Every job of `target` under a profile of the Slurm executor, by name; planned in the current folder.

    `extra` are further arguments of Snakemake. Raises PlanError, naming the rule if its resources are refused.
    """
    arguments = ["--profile", profile, "--dry-run", *extra, "--", target]
    with opened(arguments) as (parsed, api):
        if parsed.executor != "slurm":
            raise PlanError(f"profile {profile}: its executor is {parsed.executor or 'local'!r}, expected 'slurm'")
        settings = ExecutorPluginRegistry().get_plugin("slurm").get_settings(parsed)
        dag = api.dag(
            dag_settings=DAGSettings(
                targets=parsed.targets, forceall=True, max_checksum_file_size=parsed.max_checksum_file_size
            )
        )
        dag.execute_workflow(executor="slurm", pseudo_executor="dryrun", executor_settings=settings)
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
        wildcards={name: str(value) for name, value in job.wildcards_dict.items()},
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
