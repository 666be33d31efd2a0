"""Write the conda environments (envs/*.yaml) from the dependency groups of pyproject.toml and from the lock files.

`requirements.lock` is written by uv (`make lock`) in pip's format: exact versions, with the hashes of the files that
may be installed, and without addresses; `requirements-cpu.lock` contains PyTorch's CPU-only build.

A dependency group lists the packages that the stages of an environment import. Python comes from conda-forge and all
packages from pip, because the lock contains pip's versions. An environment file pins all packages of its group and
their dependencies, with the hashes of the lock file, so that later installations are identical. The dependencies of
PyTorch's CUDA build are also pinned, because pip with hashes refuses requirements that are not pinned.
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
# Versions with which the workflow is tested; the pip version is the one included in this Python.
CONDA_PACKAGES = ("python=3.11.7", "pip=23.2.1")


@dataclass(frozen=True)
class LockedPackage:
    """One pinned package.

    `marker` states on which machines the package is needed (PEP 508, empty for all), `hashes` are the SHA-256 of the
    files that may be installed, and `needed_by` the packages that require it (`requirements.in` for a direct
    requirement).
    """

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]
    needed_by: tuple[str, ...]

    @property
    def pin(self) -> str:
        """Requirement in pip's format, without hashes."""
        return f"{self.name}=={self.version}" + (f" ; {self.marker}" if self.marker else "")

    @property
    def hash_options(self) -> list[str]:
        """Options that follow the requirement, sorted, so that pip only installs files whose hashes are in the lock."""
        return [f"--hash=sha256:{digest}" for digest in sorted(self.hashes)]


def canonical_name(name: str) -> str:
    """Return the normalised spelling of a package's name (PEP 503): `pyyaml` for `PyYAML`."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_lock(path: Path) -> dict[str, LockedPackage]:
    """Return the packages of a lock file by name."""
    packages = {}
    for entry in re.split(r"^(?=[a-z0-9])", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        pin, _, marker = (part.strip(" \\") for part in entry.splitlines()[0].partition(";"))
        name, _, version = pin.partition("==")
        reasons = "".join(re.findall("# via (.*)", entry)).replace("-r requirements.in", "requirements.in").split(", ")
        hashes = re.findall(r"--hash=sha256:(\w+)", entry)
        packages[name] = LockedPackage(name, version, marker, tuple(hashes), tuple(reasons))
    return packages


def read_locks(repository: Path) -> dict[str, LockedPackage]:
    """Return all packages that Hatchery needs, by name, with the hashes of both builds of PyTorch (CUDA and CPU)."""
    lock = read_lock(repository / MAIN_LOCK)
    (cpu,) = read_lock(repository / CPU_LOCK).values()
    return lock | {cpu.name: replace(lock[cpu.name], hashes=lock[cpu.name].hashes + cpu.hashes)}


def needed_packages(packages: Iterable[str], lock: Mapping[str, LockedPackage]) -> list[str]:
    """Return the sorted names of the packages that `packages` need, directly or indirectly, without `packages`."""
    chosen = set(packages)
    reached = set(chosen)
    while True:
        more = {name for name, package in lock.items() if reached & set(package.needed_by)} - reached
        if not more:
            return sorted(reached - chosen)
        reached |= more


def read_groups(repository: Path) -> dict[str, list[str]]:
    """Return the sorted normalised names of the packages of each dependency group, by name of the group."""
    groups = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    return {group: sorted(map(canonical_name, names)) for group, names in groups.items()}


def conda_environments(repository: Path) -> dict[str, str]:
    """Return the texts of the conda environments by name."""
    lock = read_locks(repository)
    return {group: _environment(names, lock) for group, names in read_groups(repository).items()}


def _environment(names: list[str], lock: Mapping[str, LockedPackage]) -> str:
    """Return the text of one environment file.

    Snakemake hashes the file including comments, so a changed text rebuilds the environment and reruns its rules.
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
    """Yield the lines of the requirements; YAML folds the lines of a requirement into one line for pip."""
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
