"""Writing the conda environments into a checkout: `envs/*.yaml`."""

from pathlib import Path

from hatchery.artifacts.atomic import write_text
from hatchery.environments.conda import format_environment
from hatchery.environments.lock import read_locks
from hatchery.errors import ConfigError
from hatchery.stages.registry import commands_by_environment


def conda_environments(repository: Path) -> dict[str, str]:
    """The text of every conda environment by name, from the locks and the scripts as they are now.

    What PyTorch's CUDA build needs is part of it: given hashes, pip refuses a requirement that nobody pinned. Raises
    ConfigError for a stage whose command has no script.
    """
    lock = read_locks(repository)
    texts = {}
    for environment, commands in commands_by_environment().items():
        scripts = [repository / "scripts" / f"{command}.py" for command in commands]
        for script in scripts:
            if not script.is_file():
                raise ConfigError(
                    f"{script}: the command of a stage in scripts/hatchery/stages, but there is no such file"
                )
        texts[environment] = format_environment(scripts, lock)
    return texts


def write_conda_environments(repository: Path) -> None:
    """Write `envs/<environment>.yaml` for every environment."""
    for environment, text in conda_environments(repository).items():
        write_text(repository / "envs" / f"{environment}.yaml", text)
