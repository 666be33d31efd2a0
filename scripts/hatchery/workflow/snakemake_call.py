"""Steps of the Snakefile around the jobs of a call: before the configuration is read, and before the first job."""

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from snakemake.logging import logger

from hatchery.workflow.interrupts import hand_on_interrupts
from hatchery.workflow.software import choose_software, put_own_environment_first

if TYPE_CHECKING:
    from hatchery.workflow.job_lines import NamesOf


def is_real_run(workflow: Any) -> bool:
    """Return True if a call may make files: it is the process that the user started, and no dry run."""
    return bool(workflow.is_main_process and not workflow.output_settings.dryrun)


def prepare_call(workflow: Any, names_of: "NamesOf") -> None:
    """Choose the software environment of the jobs and the verbosity. Jobs on other machines use the same choice.

    `names_of` returns readable names for the wildcards of a job for its line on the terminal.
    """
    if not workflow.is_main_process:
        return
    note = choose_software(workflow.deployment_settings)
    if note is not None:
        print(note, file=sys.stderr)
    put_own_environment_first(workflow.deployment_settings)
    output = workflow.output_settings
    if is_real_run(workflow):
        # Imported only for real runs, because Snakemake's scheduler imports NumPy.
        from hatchery.workflow.job_lines import report_jobs

        # With an option for more or less output, Snakemake's own records are shown.
        report_jobs(logger, bool(output.quiet or output.verbose or output.debug_dag or output.printshellcmds), names_of)


def begin_jobs(dag: Any) -> None:
    """Prepare the first job of a real run, when the plan `dag` is complete."""
    hand_on_interrupts()
    remove_empty_folders = dag.cleanup_workdir

    def cleanup_workdir() -> None:
        # At its end, Snakemake removes empty folders but cannot remove a link to one: the place of a stopped result.
        with suppress(NotADirectoryError):
            remove_empty_folders()

    dag.cleanup_workdir = cleanup_workdir
