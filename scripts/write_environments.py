"""Write the conda environments (envs/*.yaml) from the dependency groups of pyproject.toml and from the lock files.

`requirements.lock` is uv's (`make lock`), in the form that pip reads: exact versions with the hashes of the files that
may be installed, and no address to get them from; `requirements-cpu.lock` names PyTorch's CPU-only build.

A group lists what the stages of an environment import. Python comes from conda-forge and everything else from pip,
because the lock's versions are pip's. An environment pins its group and what those packages need, with the lock's
hashes, so that two installations a year apart are the same. What PyTorch's CUDA build needs is part of it: given
hashes, pip refuses a requirement that nobody pinned.
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
# The versions that the whole workflow is tested with; pip is the one that comes with this Python.
CONDA_PACKAGES = ("python=3.11.7", "pip=23.2.1")


@dataclass(frozen=True)
class LockedPackage:
    """One pinned package.

    `marker` says on which machines it is wanted (PEP 508, empty for all), `hashes` holds the SHA-256 of every file
    that may be installed, `needed_by` the packages that ask for it (`requirements.in` for a direct requirement).
    """

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]
    needed_by: tuple[str, ...]

    @property
    def pin(self) -> str:
        """The requirement as pip reads it, without hashes."""
        return f"{self.name}=={self.version}" + (f" ; {self.marker}" if self.marker else "")

    @property
    def hash_options(self) -> list[str]:
        """What follows the pin, so that pip installs only a file that the lock knows; sorted."""
        return [f"--hash=sha256:{digest}" for digest in sorted(self.hashes)]


def canonical_name(name: str) -> str:
    """The one spelling of a package's name (PEP 503): `PyYAML` and `pyyaml` are the same package."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_lock(path: Path) -> dict[str, LockedPackage]:
    """The packages of a lock file by name."""
    packages = {}
    for entry in re.split(r"^(?=[a-z0-9])", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        pin, _, marker = (part.strip(" \\") for part in entry.splitlines()[0].partition(";"))
        name, _, version = pin.partition("==")
        reasons = "".join(re.findall("# via (.*)", entry)).replace("-r requirements.in", "requirements.in").split(", ")
        hashes = re.findall(r"--hash=sha256:(\w+)", entry)
        packages[name] = LockedPackage(name, version, marker, tuple(hashes), tuple(reasons))
    return packages


def read_locks(repository: Path) -> dict[str, LockedPackage]:
    """Everything that Hatchery needs, by name. Both builds of PyTorch fit: one version with different hashes."""
    lock = read_lock(repository / MAIN_LOCK)
    (cpu,) = read_lock(repository / CPU_LOCK).values()
    return lock | {cpu.name: replace(lock[cpu.name], hashes=lock[cpu.name].hashes + cpu.hashes)}


def needed_packages(packages: Iterable[str], lock: Mapping[str, LockedPackage]) -> list[str]:
    """What `packages` need in turn, without `packages` themselves, sorted."""
    chosen = set(packages)
    reached = set(chosen)
    while True:
        more = {name for name, package in lock.items() if reached & set(package.needed_by)} - reached
        if not more:
            return sorted(reached - chosen)
        reached |= more


def read_groups(repository: Path) -> dict[str, list[str]]:
    """Return the canonical names of the packages of every dependency group, sorted, by the name of the group."""
    groups = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    return {group: sorted(map(canonical_name, names)) for group, names in groups.items()}


def conda_environments(repository: Path) -> dict[str, str]:
    """Return the text of every conda environment by name."""
    lock = read_locks(repository)
    return {group: _environment(names, lock) for group, names in read_groups(repository).items()}


def _environment(names: list[str], lock: Mapping[str, LockedPackage]) -> str:
    """Return the text of one file.

    Snakemake hashes these bytes, comments included: another text rebuilds the environment and reruns its rules.
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
    """The lines of one requirement each; YAML folds them into the single line that pip is given."""
    for name in names:
        yield "      - >-"
        yield from (f"        {part}" for part in (lock[name].pin, *lock[name].hash_options))


def main(arguments: argparse.Namespace) -> None:
    """Write `envs/<environment>.yaml` for every dependency group."""
    for environment, text in conda_environments(arguments.repository).items():
        write_text(arguments.repository / "envs" / f"{environment}.yaml", text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    repository = Path(__file__).resolve().parent.parent
    parser.add_argument("--repository", type=Path, default=repository, help="the checkout (default: this one)")
    run_command(main, parser)
