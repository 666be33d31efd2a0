"""Steps of the Snakefile before it reads the configuration, and before the first job starts."""

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from snakemake.logging import logger

from hatchery.workflow.interrupts import hand_on_interrupts
from hatchery.workflow.software import choose_software, put_own_environment_first

if TYPE_CHECKING:
    from hatchery.workflow.job_lines import NamesOf


def is_real_run(workflow: Any) -> bool:
    """Return True if this Snakemake process may write files: a user has started it, and it is not a dry run."""
    return bool(workflow.is_main_process and not workflow.output_settings.dryrun)


def prepare_call(workflow: Any, names_of: "NamesOf") -> None:
    """Set up the software environment of all jobs, on this and on other machines, and the output on the terminal.

    `names_of` maps the wildcards of a job to the readable names that the terminal shows.
    """
    if not workflow.is_main_process:
        return
    note = choose_software(workflow.deployment_settings)
    if note is not None:
        print(note, file=sys.stderr)
    put_own_environment_first(workflow.deployment_settings)
    output = workflow.output_settings
    if is_real_run(workflow):
        # Import this function only here, because the import also loads Snakemake's scheduler and NumPy.
        from hatchery.workflow.job_lines import report_jobs

        # If an option requests more or less output, show Snakemake's original messages instead of one line per job.
        report_jobs(logger, bool(output.quiet or output.verbose or output.debug_dag or output.printshellcmds), names_of)


def begin_jobs(dag: Any) -> None:
    """Prepare Snakemake for the jobs of a run. Snakemake then forwards interrupts to jobs, starts local jobs without a
    rate limit, and ignores an error in its final cleanup.

    `dag` is the complete plan.
    """
    hand_on_interrupts()
    _start_jobs_at_once(dag.workflow)
    remove_empty_folders = dag.cleanup_workdir

    def cleanup_workdir() -> None:
        # At the end, Snakemake removes empty folders, and raises an error if a path is a link to an empty folder. There
        # is such a link if the job of a shared result was stopped.
        with suppress(NotADirectoryError):
            remove_empty_folders()

    dag.cleanup_workdir = cleanup_workdir


def _start_jobs_at_once(workflow: Any) -> None:
    """Disable Snakemake's limit of 100 started jobs per second. The limit is not changed if the user has set another
    limit, or if jobs are submitted to a cluster.

    With the limit, each choice of the next jobs causes another choice one second later, in a new thread, as long as a
    job waits. Each finished job also causes a choice, and thus starts a further series of choices, one per second. So
    the number of choices per second grows with every finished job.
    """
    limit = workflow.scheduling_settings.max_jobs_per_timespan
    if workflow.local_exec and limit is not None and (limit.max_jobs, limit.timespan) == (100, 1):
        workflow.scheduler.job_rate_limiter = None
