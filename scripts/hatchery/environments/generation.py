"""Writing the conda environments into a checkout: `envs/*.yaml`."""

from pathlib import Path

from hatchery.artifacts.atomic import write_text
from hatchery.environments.conda import format_environment
from hatchery.environments.lock import read_locks
from hatchery.stages.registry import code_by_environment


def conda_environments(repository: Path) -> dict[str, str]:
    """The text of every conda environment by name, from the locks and the scripts as they are now.

    What PyTorch's CUDA build needs is part of it: given hashes, pip refuses a requirement that nobody pinned.
    """
    lock = read_locks(repository)
    texts = {}
    for environment, files in code_by_environment(repository / "scripts").items():
        texts[environment] = format_environment(files, lock)
    return texts


def write_conda_environments(repository: Path) -> None:
    """Write `envs/<environment>.yaml` for every environment."""
    for environment, text in conda_environments(repository).items():
        write_text(repository / "envs" / f"{environment}.yaml", text)
