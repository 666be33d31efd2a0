"""What the Snakefile does around the jobs of a call: before it reads the configuration, and before the first job."""

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from snakemake.logging import logger

from hatchery.workflow.interrupts import hand_on_interrupts
from hatchery.workflow.software import choose_software, put_own_environment_first

if TYPE_CHECKING:
    from hatchery.workflow.job_lines import NamesOf


def is_real_run(workflow: Any) -> bool:
    """Whether a call may make something: the process that the user started, and no dry run."""
    return bool(workflow.is_main_process and not workflow.output_settings.dryrun)


def prepare_call(workflow: Any, names_of: "NamesOf") -> None:
    """Choose the software of the jobs and how much is said of them. Jobs on other machines take what was chosen.

    `names_of` names the wildcards of a job for its line on the terminal.
    """
    if not workflow.is_main_process:
        return
    note = choose_software(workflow.deployment_settings)
    if note is not None:
        print(note, file=sys.stderr)
    put_own_environment_first(workflow.deployment_settings)
    output = workflow.output_settings
    if is_real_run(workflow):
        # Planning does without the modules that the lines need: Snakemake's scheduler imports numpy.
        from hatchery.workflow.job_lines import report_jobs

        # Whoever asks for more or less than usual gets Snakemake's own words.
        report_jobs(logger, bool(output.quiet or output.verbose or output.debug_dag or output.printshellcmds), names_of)


def begin_jobs(dag: Any) -> None:
    """Called once the plan `dag` stands, before the first job of a real run."""
    hand_on_interrupts()
    remove_empty_folders = dag.cleanup_workdir

    def cleanup_workdir() -> None:
        # Snakemake removes empty folders in the end, but cannot remove a link to one: the place of a stopped result.
        with suppress(NotADirectoryError):
            remove_empty_folders()

    dag.cleanup_workdir = cleanup_workdir
