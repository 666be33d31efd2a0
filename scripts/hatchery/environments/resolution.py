"""From `requirements.in` to the lock files: uv resolves once for all platforms and lists the files of each.

A source archive is kept only where a platform has no wheel. PyTorch exists in two builds of one version, so what only
one of them needs has a lock of its own.
"""

import os
import re
import subprocess
import tempfile
import tomllib
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hatchery.environments.lock import LockedPackage, canonical_name
from hatchery.errors import ConfigError

PYTHON = "3.11"

# PyTorch publishes its CPU-only Linux build beside the package index, under the same version with `+cpu`. The index
# does not know its hash, so it stands here: `sha256sum` of the wheel, to be renewed with every version of PyTorch.
CPU_BUILD = LockedPackage(
    name="torch",
    version="2.13.0+cpu",
    marker="sys_platform == 'linux' and platform_machine == 'x86_64'",
    hashes=("6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b",),
    needed_by=("requirements.in",),
)

# What PyTorch's CUDA build needs and its CPU build does not.
GPU_PACKAGE = re.compile(r"(nvidia|cuda)-.+|triton")

# Needed to build the packages that come as source archives only; installed before all others.
BUILD_PACKAGES = ("setuptools",)


# The machines that the locks serve, by uv's names. The wheels of newer systems are installed by newer systems only.
PLATFORMS = {
    "x86_64-manylinux_2_28": "Linux x86-64",
    "aarch64-manylinux_2_28": "Linux aarch64",
    "aarch64-apple-darwin": "macOS arm64",
}
MACOS = "14.0"

# For each of PLATFORMS, the packages of its pylock.toml (PEP 751) by name and version.
Listed = dict[str, dict[tuple[str, str], dict[str, Any]]]

# Which packages need a package on one of PLATFORMS. What uv says of all platforms counts others in, as Windows.
Reasons = dict[str, set[str]]


@dataclass(frozen=True)
class Locks:
    """The packages of the four lock files."""

    build: list[LockedPackage]
    cpu: list[LockedPackage]
    main: list[LockedPackage]
    gpu: list[LockedPackage]


def resolve(requirements: Path, previous: list[Path], uv: str) -> Locks:
    """Resolve `requirements` with uv, keeping the versions pinned in the lock files `previous` where they still fit.

    Raises ConfigError when uv is missing or finds no solution, or when a package has no file for a platform.
    """
    with tempfile.TemporaryDirectory(prefix="hatchery-lock-") as folder:
        pins, files = Path(folder, "requirements.txt"), Path(folder, "pylock.toml")
        # uv takes the versions of an existing output file as preferences.
        pins.write_text(
            "".join(path.read_text(encoding="utf-8") for path in previous if path.exists()), encoding="utf-8"
        )
        as_text = ("--no-header", "--annotation-style", "line")
        _run_uv(uv, requirements, pins, "--universal", *as_text)
        resolved = pins.read_text(encoding="utf-8")
        listed: Listed = {}
        needed_by: Reasons = defaultdict(set)
        for platform in PLATFORMS:
            pins.write_text(resolved, encoding="utf-8")
            _run_uv(uv, requirements, pins, "--python-platform", platform, *as_text)
            add_reasons(needed_by, pins.read_text(encoding="utf-8"))
            files.unlink(missing_ok=True)
            _run_uv(uv, pins, files, "--python-platform", platform, "--format", "pylock.toml")
            packages = tomllib.loads(files.read_text(encoding="utf-8"))["packages"]
            listed[platform] = {(canonical_name(item["name"]), item["version"]): item for item in packages}
        return split_packages(resolved, listed, needed_by)


def _run_uv(uv: str, source: Path, output: Path, *options: str) -> None:
    command = [uv, "pip", "compile", "--quiet", "--python-version", PYTHON]
    command += ["--output-file", str(output), *options, str(source)]
    try:
        outcome = subprocess.run(
            command, capture_output=True, text=True, check=False, env={**os.environ, "MACOSX_DEPLOYMENT_TARGET": MACOS}
        )
    except FileNotFoundError as error:
        raise ConfigError(f"{uv}: not found; install uv (`python -m pip install uv`) or name it with --uv") from error
    if outcome.returncode != 0:
        raise ConfigError(f"{source.name}: uv finds no solution: {' '.join(outcome.stderr.split())}")


def add_reasons(needed_by: Reasons, pins: str) -> None:
    """Add to `needed_by` what a requirements file with one `# via` comment per line says."""
    for line in pins.splitlines():
        pin, _, reasons = line.partition("# via ")
        names = ("requirements.in" if reason.startswith("-r ") else reason for reason in reasons.split(", "))
        needed_by[pin.partition("==")[0]].update(names)


def split_packages(pins: str, listed: Listed, needed_by: Reasons) -> Locks:
    """Join uv's pins (versions, markers) with the files of every platform; sort the packages into the locks."""
    packages = []
    for line in pins.splitlines():
        pin, _, marker = (part.strip() for part in line.partition("#")[0].partition(";"))
        name, _, version = pin.partition("==")
        found = {platform: files[name, version] for platform, files in listed.items() if (name, version) in files}
        if not found:
            continue
        if len(found) == len(listed):
            marker = ""
        packages.append(
            LockedPackage(name, version, marker, _hashes(name, version, found), tuple(sorted(needed_by[name])))
        )
    _check_cpu_build(packages)
    return Locks(
        build=[package for package in packages if package.name in BUILD_PACKAGES],
        cpu=[CPU_BUILD],
        main=[package for package in packages if not GPU_PACKAGE.fullmatch(package.name)],
        gpu=[package for package in packages if GPU_PACKAGE.fullmatch(package.name)],
    )


def _hashes(name: str, version: str, found: dict[str, dict[str, Any]]) -> tuple[str, ...]:
    """The hashes of what may be installed: wheels, and a source archive only where a platform has no wheel."""
    hashes = set(CPU_BUILD.hashes if name == CPU_BUILD.name else ())
    for platform, package in found.items():
        files = package.get("wheels") or [package[key] for key in ("sdist",) if key in package]
        if not files:
            raise ConfigError(f"{name}=={version}: no file fits {PLATFORMS[platform]}")
        hashes.update(file["hashes"]["sha256"] for file in files)
    return tuple(sorted(hashes))


def _check_cpu_build(packages: list[LockedPackage]) -> None:
    locked = {package.name: package.version for package in packages}.get(CPU_BUILD.name)
    if locked != CPU_BUILD.version.removesuffix("+cpu"):
        raise ConfigError(
            f"requirements.in: {CPU_BUILD.name} is locked at {locked}, but CPU_BUILD names {CPU_BUILD.version}: "
            "put the version and the SHA-256 of the new CPU wheel there"
        )
