"""Writing what is made here into a checkout: the four lock files and `envs/*.yaml`."""

from pathlib import Path

from hatchery.artifacts.atomic import write_text
from hatchery.environments.conda import format_environment
from hatchery.environments.installation import BUILD_LOCK, CPU_LOCK, GPU_LOCK, MAIN_LOCK
from hatchery.environments.lock import LockedPackage, format_lock, read_lock
from hatchery.environments.resolution import resolve
from hatchery.errors import ConfigError
from hatchery.stages.registry import commands_by_environment

PURPOSES = {
    BUILD_LOCK: "Installed first: what builds the packages of requirements.lock that come as source archives only.",
    CPU_LOCK: "PyTorch's CPU-only build; installed where the machine's pip offers it, and then fits requirements.lock.",
    MAIN_LOCK: "Everything that Hatchery needs, for Python 3.11 on Linux and macOS; either build of PyTorch fits.",
    GPU_LOCK: "What PyTorch's CUDA build needs beside requirements.lock; not installed with its CPU build.",
}


def write_locks(repository: Path, uv: str) -> None:
    """Resolve `requirements.in` and write the lock files; pinned versions stay where they still fit."""
    previous = [repository / name for name in (MAIN_LOCK, GPU_LOCK)]
    locks = resolve(repository / "requirements.in", previous, uv)
    packages = {BUILD_LOCK: locks.build, CPU_LOCK: locks.cpu, MAIN_LOCK: locks.main, GPU_LOCK: locks.gpu}
    for name, purpose in PURPOSES.items():
        write_text(repository / name, format_lock(packages[name], purpose))


def conda_environments(repository: Path) -> dict[str, str]:
    """The text of every conda environment by name, from the locks and the scripts as they are now.

    What PyTorch's CUDA build needs is part of it: given hashes, pip refuses a requirement that nobody pinned. Raises
    ConfigError for a stage whose command has no script.
    """
    lock: dict[str, LockedPackage] = read_lock(repository / MAIN_LOCK) | read_lock(repository / GPU_LOCK)
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
