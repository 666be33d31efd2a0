"""The lock: exact versions with the hashes of the files that may be installed, and no address to get them from.

`requirements.lock` is uv's (`make lock`), in the form that pip reads; `requirements-cpu.lock` names PyTorch's CPU-only
build.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path

MAIN_LOCK, CPU_LOCK = "requirements.lock", "requirements-cpu.lock"


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
