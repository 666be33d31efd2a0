"""The software of the jobs: the rules' conda environments where conda is, otherwise the environment of this shell.

The profile for Slurm asks for conda. Where there is none, `make env` has made an environment from the same pinned
versions, so jobs run in that. The main process decides, and hands what it decided to the jobs that it sends.
"""

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from snakemake.settings.types import DeploymentMethod

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


def is_own_environment(settings: Any) -> bool:
    """Whether jobs run in the environment of this shell, with neither conda nor containers."""
    return not {DeploymentMethod.CONDA, DeploymentMethod.APPTAINER} & set(settings.deployment_method)


def put_own_environment_first(settings: Any) -> None:
    """Let jobs without conda and containers find this interpreter's `python`, also where its folder is not on PATH.

    Only where it can run them: Snakemake may live in an environment of its own.
    """
    if not is_own_environment(settings):
        return
    own = Path(sys.executable).parent
    found = shutil.which("python")
    if (found is None or Path(found).parent != own) and (own / "python").exists() and find_spec("torch") is not None:
        os.environ["PATH"] = os.pathsep.join([str(own), os.environ.get("PATH", os.defpath)])
