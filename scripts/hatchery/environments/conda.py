"""The conda environments of the rules: `envs/<environment>.yaml`, made from the imports and the lock.

Python comes from conda-forge and everything else from pip, because the lock's versions are pip's. An environment
pins what its commands import and what those packages need, with the lock's hashes, so that two installations a year
apart are the same.
"""

from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import packages_distributions
from pathlib import Path

from hatchery.environments.imports import third_party_imports
from hatchery.environments.lock import LockedPackage, canonical_name
from hatchery.errors import ConfigError

# The versions that the whole workflow is tested with; pip is the one that comes with this Python.
CONDA_PACKAGES = ("python=3.11.7", "pip=23.2.1")


def imported_packages(commands: Iterable[Path], lock: Mapping[str, LockedPackage]) -> list[str]:
    """The locked packages (canonical names, sorted) that the commands import.

    Raises ConfigError for an import that no locked package provides, naming the module that holds it. Must run where
    the locked packages are installed, since only their metadata says which package provides which import.
    """
    providers = packages_distributions()
    packages: set[str] = set()
    for command in commands:
        for top, importer in third_party_imports(command).items():
            locked = {canonical_name(name) for name in providers.get(top, [])} & lock.keys()
            if not locked:
                raise ConfigError(f"{importer}: imports {top}, which no package in requirements.lock provides")
            packages |= locked
    return sorted(packages)


def needed_packages(packages: Iterable[str], lock: Mapping[str, LockedPackage]) -> list[str]:
    """What `packages` need in turn, without `packages` themselves, sorted."""
    chosen = set(packages)
    reached = set(chosen)
    while True:
        more = {name for name, package in lock.items() if reached & set(package.needed_by)} - reached
        if not more:
            return sorted(reached - chosen)
        reached |= more


def format_environment(commands: Iterable[Path], lock: Mapping[str, LockedPackage]) -> str:
    """The text of `envs/<environment>.yaml` for the environment that serves `commands`.

    Snakemake hashes these bytes, comments included: another text rebuilds the environment and reruns its rules.
    """
    imported = imported_packages(commands, lock)
    needed = needed_packages(imported, lock)
    lines = [
        "# Made by `make envs` from requirements.lock; do not edit.",
        "channels:",
        "  - conda-forge",
        "  - nodefaults",
    ]
    lines += ["dependencies:", *(f"  - {package}" for package in CONDA_PACKAGES)]
    if imported:
        lines += ["  - pip:", *_requirements(imported, lock)]
    if needed:
        lines += ["      # needed by the packages above", *_requirements(needed, lock)]
    return "\n".join(lines) + "\n"


def _requirements(names: Iterable[str], lock: Mapping[str, LockedPackage]) -> Iterator[str]:
    """The lines of one requirement each; YAML folds them into the single line that pip is given."""
    for name in names:
        yield "      - >-"
        yield from (f"        {part}" for part in (lock[name].pin, *lock[name].hash_options))
