"""The software environment of jobs: if conda is installed, the conda environments of the rules; otherwise, the
environment of this shell.

The Slurm profile requests conda. Without conda, jobs use the environment that `make env` creates, with the same pinned
versions. Snakemake's main process chooses the environment, and passes this choice to the jobs that it submits.
"""

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from snakemake.settings.types import DeploymentMethod

# Environment variable that contains the shell function `conda`, if conda's set-up has defined and exported this
# function.
_SHELL_FUNCTION = "BASH_FUNC_conda%%"


def has_conda(which: Callable[[str], str | None] = shutil.which, surroundings: Mapping[str, str] = os.environ) -> bool:
    """Return True if commands of this shell can call `conda`."""
    return which("conda") is not None or _SHELL_FUNCTION in surroundings


def choose_software(settings: Any, has_conda_here: Callable[[], bool] = has_conda) -> str | None:
    """Remove conda from Snakemake's deployment settings if conda is not installed, and return a message for the user.

    None if the settings are unchanged. If the settings request containers, they are unchanged, because containers
    contain conda.
    """
    asked = set(settings.deployment_method)
    if DeploymentMethod.CONDA not in asked or DeploymentMethod.APPTAINER in asked or has_conda_here():
        return None
    settings.deployment_method = asked - {DeploymentMethod.CONDA}
    return (
        f"conda is not on PATH: jobs run in the environment of this shell ({sys.prefix}); `make env` creates it with "
        "the pinned versions of the conda environments"
    )


def is_own_environment(settings: Any) -> bool:
    """Return True if jobs run in the environment of this shell, with neither conda nor containers."""
    return not {DeploymentMethod.CONDA, DeploymentMethod.APPTAINER} & set(settings.deployment_method)


def put_own_environment_first(settings: Any) -> None:
    """Put the folder of this Python interpreter first on PATH, if jobs use neither conda nor containers.

    Snakemake may be installed in an environment without PyTorch, in which jobs cannot run. Then PATH is unchanged.
    """
    if not is_own_environment(settings):
        return
    own = Path(sys.executable).parent
    found = shutil.which("python")
    if (found is None or Path(found).parent != own) and (own / "python").exists() and find_spec("torch") is not None:
        os.environ["PATH"] = os.pathsep.join([str(own), os.environ.get("PATH", os.defpath)])
