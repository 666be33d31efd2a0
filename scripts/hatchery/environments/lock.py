"""Lock files: exact versions with the hashes of the files that may be installed, and no address to get them from.

The form is pip's requirements file, so `pip install --require-hashes` reads it without Hatchery. Only the standard
library is used here, because the lock is read before anything is installed.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from hatchery.errors import ConfigError

PACKAGE_LINE = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;]+)(?:\s*;\s*(?P<marker>.+))?")
HASH_LINE = re.compile(r"--hash=sha256:(?P<digest>[0-9a-f]{64})")
REASON = "# via "


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


def format_lock(packages: Iterable[LockedPackage], purpose: str) -> str:
    """The text of a lock file, sorted by name; `purpose` is the sentence at its head."""
    lines = [f"# {purpose}", "# Made by `make lock` from requirements.in; do not edit."]
    for package in sorted(packages, key=lambda package: package.name):
        lines.append("")
        lines.append(" \\\n".join([package.pin, *(f"    {option}" for option in package.hash_options)]))
        lines.append(f"    {REASON}{', '.join(sorted(package.needed_by))}")
    return "\n".join(lines) + "\n"


def read_lock(path: str | Path) -> dict[str, LockedPackage]:
    """The packages of a lock file by canonical name.

    Raises ConfigError, naming the line, for anything that `format_lock` does not write: a version that is not exact,
    a missing hash, or an option such as an index address.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ConfigError(f"{path}: the lock file cannot be read: {error.strerror}") from error
    packages: dict[str, LockedPackage] = {}
    entry: LockedPackage | None = None
    for number, raw in enumerate(lines, start=1):
        line = raw.strip().removesuffix("\\").rstrip()
        if line.startswith(REASON) and entry is not None:
            entry = replace(entry, needed_by=tuple(line.removeprefix(REASON).split(", ")))
        elif not line or line.startswith("#"):
            continue
        elif (found := HASH_LINE.fullmatch(line)) and entry is not None:
            entry = replace(entry, hashes=(*entry.hashes, found["digest"]))
        elif found := PACKAGE_LINE.fullmatch(line):
            name = canonical_name(found["name"])
            if name in packages:
                raise ConfigError(f"{path}: line {number}: {name} is locked twice")
            entry = LockedPackage(name, found["version"], found["marker"] or "", (), ())
        else:
            raise ConfigError(f"{path}: line {number}: expected `name==version` with hashes, got {raw.strip()!r}")
        if entry is not None:
            packages[entry.name] = entry
    for package in packages.values():
        if not package.hashes:
            raise ConfigError(f"{path}: {package.name} has no hash")
    return packages
