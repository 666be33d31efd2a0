"""What the Snakefile does around the jobs of a call: before it reads the configuration, and before the first job.

SIGINT to Snakemake's own process stops its jobs as Ctrl-C does. Ctrl-C reaches every process of the terminal's
foreground group, and a pretraining saves its checkpoint. `kill -INT PID` reaches Snakemake alone, which then waits for
its jobs, however long they run. So the signal is handed on, but only where the jobs have not had it: a second one ends
a pretraining at once. Whether they have is seen from a child process that does nothing and that a signal to the group
ends.

The software of the jobs is the rules' conda environments where conda is, otherwise the environment of this shell. The
profile for Slurm asks for conda. Where there is none, `make env` has made an environment from the same pinned versions,
so jobs run in that. The main process decides, and hands what it decided to the jobs that it sends.
"""

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any

import psutil
from snakemake.logging import logger
from snakemake.settings.types import DeploymentMethod

from hatchery.workflow.job_lines import INTERRUPTED, Words, as_they_are, report_jobs

# Until a signal that was sent to the whole group has ended the child.
PATIENCE_SECONDS = 0.5


def hand_on_interrupts() -> None:
    """From now on SIGINT to this process alone reaches its descendants, too; raises KeyboardInterrupt as before.

    Called where Snakemake begins to run jobs, in the main thread. Also where SIGINT was ignored, as in the background
    of a script: whoever sends it means it.
    """
    if threading.current_thread() is not threading.main_thread():
        return

    def handle(number: int, frame: FrameType | None) -> None:
        INTERRUPTED.set()
        try:
            witness.wait(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            _signal_descendants(except_for=witness.pid)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, handle)
    # Its input ends when this process does, however that ends.
    witness = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _signal_descendants(except_for: int) -> None:
    for process in psutil.Process().children(recursive=True):
        if process.pid != except_for:
            try:
                process.send_signal(signal.SIGINT)
            except psutil.Error:
                continue


# A shell function that is handed to child processes, as conda's own set-up can make one.
_SHELL_FUNCTION = "BASH_FUNC_conda%%"


def has_conda(which: Callable[[str], str | None] = shutil.which, surroundings: Mapping[str, str] = os.environ) -> bool:
    """Whether a command of this shell can call `conda`, which is all that Snakemake needs of it."""
    return which("conda") is not None or _SHELL_FUNCTION in surroundings


def choose_software(settings: Any, has_conda_here: Callable[[], bool] = has_conda) -> str | None:
    """Take conda from Snakemake's deployment settings where it is not here; what to tell the user then.

    Containers bring a conda of their own, so with them the settings stay.
    """
    asked = set(settings.deployment_method)
    if DeploymentMethod.CONDA not in asked or DeploymentMethod.APPTAINER in asked or has_conda_here():
        return None
    settings.deployment_method = asked - {DeploymentMethod.CONDA}
    return (
        f"conda is not on PATH: jobs run in the environment of this shell ({sys.prefix}), which `make env` makes from "
        "the same pinned versions"
    )


def put_own_environment_first(settings: Any) -> None:
    """Let jobs without conda and containers find this interpreter's `python`, also where its folder is not on PATH.

    Only where it can run them: Snakemake may live in an environment of its own.
    """
    if {DeploymentMethod.CONDA, DeploymentMethod.APPTAINER} & set(settings.deployment_method):
        return
    own = Path(sys.executable).parent
    found = shutil.which("python")
    if (found is None or Path(found).parent != own) and (own / "python").exists() and find_spec("torch") is not None:
        os.environ["PATH"] = os.pathsep.join([str(own), os.environ.get("PATH", os.defpath)])


def is_real_run(workflow: Any) -> bool:
    """Whether a call may make something: the process that the user started, and no dry run."""
    return bool(workflow.is_main_process and not workflow.output_settings.dryrun)


def prepare_call(workflow: Any, words: Words = as_they_are) -> None:
    """Choose the software of the jobs and how much is said of them. Jobs on other machines take what was chosen.

    `words` names the wildcards of a job for its line on the terminal.
    """
    if not workflow.is_main_process:
        return
    told = choose_software(workflow.deployment_settings)
    if told is not None:
        print(told, file=sys.stderr)
    put_own_environment_first(workflow.deployment_settings)
    output = workflow.output_settings
    if is_real_run(workflow):
        # Whoever asks for more or less than usual gets Snakemake's own words.
        report_jobs(logger, bool(output.quiet or output.verbose or output.debug_dag or output.printshellcmds), words)


def begin_jobs(dag: Any) -> None:
    """Called once the plan `dag` stands, before the first job of a real run."""
    hand_on_interrupts()
    remove_empty_folders = dag.cleanup_workdir

    def cleanup_workdir() -> None:
        # Snakemake removes empty folders in the end, but cannot remove a link to one: the place of a stopped result.
        with suppress(NotADirectoryError):
            remove_empty_folders()

    dag.cleanup_workdir = cleanup_workdir
