"""Write the conda environments (envs/*.yaml) from the dependency groups of pyproject.toml and from the lock files.

`requirements.lock` is written by uv (`make lock`) in pip's format: exact versions, with the hashes of the files that
may be installed, and without addresses. `requirements-cpu.lock` contains PyTorch's CPU-only build.

A dependency group lists the packages that the stages of an environment import. Python is installed from conda-forge.
All packages are installed with pip, because the lock file contains pip's versions. An environment file pins all
packages of its group and their dependencies, with the hashes of the lock file, so that later installations are
identical. The dependencies of PyTorch's CUDA build are also pinned, because pip, if requirements have hashes, refuses
requirements that are not pinned.
"""

import argparse
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from hatchery.artifacts.atomic import write_text
from hatchery.command import run_command

MAIN_LOCK, CPU_LOCK = "requirements.lock", "requirements-cpu.lock"
# Versions with which the workflow is tested; this version of pip is part of this version of Python.
CONDA_PACKAGES = ("python=3.11.7", "pip=23.2.1")


@dataclass(frozen=True)
class LockedPackage:
    """One pinned package.

    `marker` states on which machines the package is needed (PEP 508; empty for all machines). `hashes` are the SHA-256
    of the files that may be installed. `needed_by` are the packages that require this package, or `requirements.in` for
    a direct requirement.
    """

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]
    needed_by: tuple[str, ...]

    @property
    def pin(self) -> str:
        """Requirement for this package in pip's format, without hashes."""
        return f"{self.name}=={self.version}" + (f" ; {self.marker}" if self.marker else "")

    @property
    def hash_options(self) -> list[str]:
        """Options that follow the requirement, sorted. With these options, pip only installs files whose hashes are in
        the lock file.
        """
        return [f"--hash=sha256:{digest}" for digest in sorted(self.hashes)]


def canonical_name(name: str) -> str:
    """Return the normalised spelling of a package's name (PEP 503): `pyyaml` for `PyYAML`."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_lock(path: Path) -> dict[str, LockedPackage]:
    """Return the packages in a lock file by name of the package."""
    packages = {}
    for entry in re.split(r"^(?=[a-z0-9])", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        pin, _, marker = (part.strip(" \\") for part in entry.splitlines()[0].partition(";"))
        name, _, version = pin.partition("==")
        reasons = "".join(re.findall("# via (.*)", entry)).replace("-r requirements.in", "requirements.in").split(", ")
        hashes = re.findall(r"--hash=sha256:(\w+)", entry)
        packages[name] = LockedPackage(name, version, marker, tuple(hashes), tuple(reasons))
    return packages


def read_locks(repository: Path) -> dict[str, LockedPackage]:
    """Return all packages that Hatchery needs, by name of the package.

    `requirements.lock` pins all packages. The hashes of PyTorch's CPU-only build in `requirements-cpu.lock` are added
    to the hashes of PyTorch.
    """
    lock = read_lock(repository / MAIN_LOCK)
    (cpu,) = read_lock(repository / CPU_LOCK).values()
    return lock | {cpu.name: replace(lock[cpu.name], hashes=lock[cpu.name].hashes + cpu.hashes)}


def needed_packages(packages: Iterable[str], lock: Mapping[str, LockedPackage]) -> list[str]:
    """Return the sorted names of the packages that `packages` need directly or indirectly; `packages` are not
    included.
    """
    chosen = set(packages)
    reached = set(chosen)
    while True:
        more = {name for name, package in lock.items() if reached & set(package.needed_by)} - reached
        if not more:
            return sorted(reached - chosen)
        reached |= more


def read_groups(repository: Path) -> dict[str, list[str]]:
    """Return the sorted normalised names of the packages in each dependency group, by name of the group."""
    groups = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    return {group: sorted(map(canonical_name, names)) for group, names in groups.items()}


def conda_environments(repository: Path) -> dict[str, str]:
    """Return the text of each conda environment's file, by name of the environment."""
    lock = read_locks(repository)
    return {group: _environment(names, lock) for group, names in read_groups(repository).items()}


def _environment(names: list[str], lock: Mapping[str, LockedPackage]) -> str:
    """Return the text of an environment's file.

    Snakemake hashes the file including its comments. If the text changes, Snakemake builds the environment again, and
    runs again all rules that use the environment.
    """
    lines = [
        "# Made by `make envs` from requirements.lock; do not edit.",
        "channels:",
        "  - conda-forge",
        "  - nodefaults",
        "dependencies:",
        *(f"  - {package}" for package in CONDA_PACKAGES),
        "  - pip:",
        *_requirements(names, lock),
        "      # needed by the packages above",
        *_requirements(needed_packages(names, lock), lock),
    ]
    return "\n".join(lines) + "\n"


def _requirements(names: Iterable[str], lock: Mapping[str, LockedPackage]) -> Iterator[str]:
    """Yield lines of YAML, in which each package is a list entry over several lines: the pinned version, and the
    options with hashes. YAML joins the lines of an entry to one line for pip.
    """
    for name in names:
        yield "      - >-"
        yield from (f"        {part}" for part in (lock[name].pin, *lock[name].hash_options))


def main(arguments: argparse.Namespace) -> None:
    """Write `envs/<environment>.yaml` for each dependency group."""
    for environment, text in conda_environments(arguments.repository).items():
        write_text(arguments.repository / "envs" / f"{environment}.yaml", text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    repository = Path(__file__).resolve().parent.parent
    parser.add_argument("--repository", type=Path, default=repository, help="the checkout (default: this one)")
    run_command(main, parser)
