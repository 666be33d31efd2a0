"""Steps of the Snakefile before the configuration is read, and before the first job starts."""

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from snakemake.logging import logger

from hatchery.workflow.interrupts import hand_on_interrupts
from hatchery.workflow.software import choose_software, put_own_environment_first

if TYPE_CHECKING:
    from hatchery.workflow.job_lines import NamesOf


def is_real_run(workflow: Any) -> bool:
    """Return True if this Snakemake process may write files: the user started this process, and it is not a dry run."""
    return bool(workflow.is_main_process and not workflow.output_settings.dryrun)


def prepare_call(workflow: Any, names_of: "NamesOf") -> None:
    """Choose the software environment of all jobs, on this and on other machines, and the output on the terminal.

    `names_of` returns readable names for the wildcards of a job, which the terminal shows.
    """
    if not workflow.is_main_process:
        return
    note = choose_software(workflow.deployment_settings)
    if note is not None:
        print(note, file=sys.stderr)
    put_own_environment_first(workflow.deployment_settings)
    output = workflow.output_settings
    if is_real_run(workflow):
        # The import is inside the function, because it also imports Snakemake's scheduler and NumPy.
        from hatchery.workflow.job_lines import report_jobs

        # If the user requests more or less output, Snakemake's original messages are shown instead of one line per job.
        report_jobs(logger, bool(output.quiet or output.verbose or output.debug_dag or output.printshellcmds), names_of)


def begin_jobs(dag: Any) -> None:
    """Prepare the first job of a run; `dag` is the complete plan."""
    hand_on_interrupts()
    remove_empty_folders = dag.cleanup_workdir

    def cleanup_workdir() -> None:
        # At the end, Snakemake removes empty folders, and fails for a link to an empty folder. Such a link remains if
        # the job of a shared result was stopped.
        with suppress(NotADirectoryError):
            remove_empty_folders()

    dag.cleanup_workdir = cleanup_workdir
