"""What Snakemake plans, as its own objects, read through its API: the one reader for `make why`, costs and the cluster.

Snakemake alone decides what is out of date, and why; nothing of that is computed anew here. Nothing is run and nothing
is written but Snakemake's own folder.
"""

import atexit
import sys
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from logging import NullHandler
from pathlib import Path
from typing import Any
from warnings import catch_warnings, filterwarnings

from snakemake.api import SnakemakeApi, WorkflowApi
from snakemake.cli import parse_args, parse_config
from snakemake.jobs import Reason
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

from hatchery.errors import HatcheryError, PlanError, first_line
from hatchery.stage import SCRIPTS, stage_called
from hatchery.workflow.open_workflow import list_missing_data
from hatchery.workflow.stale_results import tell_stale_results

SNAKEFILES = ("Snakefile", "snakefile", "workflow/Snakefile", "workflow/snakefile")
"""Where Snakemake looks for one."""


@dataclass(frozen=True)
class PlannedJob:
    """One job that would run, with Snakemake's reason."""

    rule: str
    outputs: tuple[str, ...]
    wildcards: dict[str, str]
    reason: Reason = field(default_factory=Reason)


@contextmanager
def opened(arguments: Sequence[str]) -> Iterator[tuple[Any, WorkflowApi]]:
    """The workflow of the current folder as Snakemake reads it with these command line arguments.

    In a folder without a Snakefile, it is that of the checkout.

    Says nothing of its own. Raises PlanError when the command line, a profile or a rule is wrong, and SystemExit with
    the lines of `workflow.open_workflow` when the configuration or a target is.
    """
    said = StringIO()
    if not any(Path(name).is_file() for name in SNAKEFILES):
        arguments = ["--snakefile", str(SCRIPTS.absolute().parent / "Snakefile"), *arguments]
    try:
        with redirect_stdout(said), redirect_stderr(said):
            _, parsed = parse_args(list(arguments))
    except SystemExit as error:
        last = (said.getvalue().strip().splitlines() or [""])[-1]
        raise PlanError(f"snakemake {' '.join(arguments)}: {last}") from error
    except Exception as error:
        raise PlanError(f"snakemake {' '.join(arguments)}: {first_line(error)}") from error
    output = OutputSettings(dryrun=True, quiet={Quietness.ALL})
    own, sys.argv = sys.argv, ["snakemake", *arguments]
    with (
        catch_warnings(),
        redirect_stdout(said),
        redirect_stderr(said),
        SnakemakeApi(output) as api,
    ):
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
        finally:
            sys.argv = own
            # Whoever asks for the plan says what is missing.
            for function in (list_missing_data, tell_stale_results):
                atexit.unregister(function)


def dag_of(parsed: Any, everything: bool = False) -> DAGSettings:
    """What is planned, as the command line and the profile say; with `everything`, also what is up to date."""
    return DAGSettings(
        targets=parsed.targets,
        forceall=everything,
        force_incomplete=parsed.rerun_incomplete,
        rerun_triggers=parsed.rerun_triggers,
        max_checksum_file_size=parsed.max_checksum_file_size,
    )


def planned_jobs(targets: Sequence[str], project: str | Path = ".") -> list[PlannedJob]:
    """The jobs that Snakemake would run for `targets` in `project`, makers before readers; empty when all is made.

    Raises like `opened`.
    """
    with chdir(project), opened(["--dry-run", "--", *targets]) as (parsed, api):
        api.dag(dag_settings=dag_of(parsed)).execute_workflow(executor="dryrun")
        dag = api._workflow.dag
        order = {rule.name: number for number, rule in enumerate(api._workflow.rules)}
        levels = dag.toposorted(set(dag.needrun_jobs(exclude_finished=False)))
        jobs = [job for level in levels for job in sorted(level, key=lambda job: (order[job.rule.name], job.output))]
        return [
            PlannedJob(stage_called(job.rule.name), tuple(job.output), wildcards_of(job), dag.reason(job))
            for job in jobs
        ]


def wildcards_of(job: Any) -> dict[str, str]:
    """The wildcards of a job of Snakemake."""
    return {name: str(value) for name, value in job.wildcards_dict.items()}
