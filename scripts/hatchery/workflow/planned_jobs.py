"""Snakemake's plan as Python objects, read through Snakemake's API, for `make why`, cost estimates and the cluster
check.

Snakemake alone decides which files are out of date and why. No job is run, and files are only written in Snakemake's
own folder.
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
from hatchery.workflow.stale_results import report_stale_results

SNAKEFILES = ("Snakefile", "snakefile", "workflow/Snakefile", "workflow/snakefile")
"""Paths at which Snakemake looks for a Snakefile."""


@dataclass(frozen=True)
class PlannedJob:
    """One job that would run, with the reason that Snakemake states."""

    rule: str
    outputs: tuple[str, ...]
    wildcards: dict[str, str]
    reason: Reason = field(default_factory=Reason)


@contextmanager
def opened(arguments: Sequence[str]) -> Iterator[tuple[Any, WorkflowApi]]:
    """Yield the parsed command line and the API of the workflow in the current folder, opened with `arguments`.

    If the folder has no Snakefile, the Snakefile of the checkout is used. Snakemake's output is suppressed. Raises
    PlanError for a wrong command line, profile or rule. Raises SystemExit with the messages of `workflow.open_workflow`
    for an invalid configuration or target.
    """
    printed = StringIO()
    if not any(Path(name).is_file() for name in SNAKEFILES):
        arguments = ["--snakefile", str(SCRIPTS.absolute().parent / "Snakefile"), *arguments]
    try:
        with redirect_stdout(printed), redirect_stderr(printed):
            _, parsed = parse_args(list(arguments))
    except SystemExit as error:
        last = (printed.getvalue().strip().splitlines() or [""])[-1]
        raise PlanError(f"snakemake {' '.join(arguments)}: {last}") from error
    except Exception as error:
        raise PlanError(f"snakemake {' '.join(arguments)}: {first_line(error)}") from error
    output = OutputSettings(dryrun=True, quiet={Quietness.ALL})
    own, sys.argv = sys.argv, ["snakemake", *arguments]
    with (
        catch_warnings(),
        redirect_stdout(printed),
        redirect_stderr(printed),
        SnakemakeApi(output) as api,
    ):
        # Ignore this warning, which is harmless: Snakemake creates coroutines that would read the sizes of missing
        # inputs, but does not await them.
        filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
        # Remove Snakemake's logging handlers, because a dry run prints text even with the option `--quiet`.
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
                # Set no deployment method, so that planning works without conda.
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
            # When the process ends, these functions would report missing data and stale results. Unregister the
            # functions, because the caller of `opened` only reads the plan.
            for function in (list_missing_data, report_stale_results):
                atexit.unregister(function)


def dag_of(parsed: Any, everything: bool = False) -> DAGSettings:
    """Return Snakemake's settings for planning, from the parsed command line and profile. If `everything` is true, the
    plan includes finished jobs.
    """
    return DAGSettings(
        targets=parsed.targets,
        forceall=everything,
        force_incomplete=parsed.rerun_incomplete,
        rerun_triggers=parsed.rerun_triggers,
        max_checksum_file_size=parsed.max_checksum_file_size,
    )


def planned_jobs(targets: Sequence[str], project: str | Path = ".") -> list[PlannedJob]:
    """Return the jobs that Snakemake would run for `targets` in the folder `project`, sorted so that inputs are made
    first.

    Raises PlanError or SystemExit, as `opened` does.
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
    """Return the wildcards of a Snakemake job by name."""
    return {name: str(value) for name, value in job.wildcards_dict.items()}
