"""From `requirements.in` to the lock files: uv resolves for all platforms at once, this module decides what to keep.

Kept are the wheels that CPython 3.11 can use on the supported platforms, and a source archive only where there is no
such wheel. PyTorch exists in two builds of one version, so what only one of them needs has a lock of its own.
"""

import re
import subprocess
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from packaging.markers import Marker
from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

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


@dataclass(frozen=True)
class Platform:
    """A kind of machine that the lock serves: its marker values (PEP 508) and the platform tags of its wheels."""

    name: str
    markers: dict[str, str]
    wheel_platform: re.Pattern[str]


def _platform(name: str, system: str, sys_platform: str, machine: str, wheel_platform: str) -> Platform:
    markers = {
        "implementation_name": "cpython",
        "os_name": "posix",
        "platform_machine": machine,
        "platform_python_implementation": "CPython",
        "platform_system": system,
        "python_full_version": f"{PYTHON}.0",
        "python_version": PYTHON,
        "sys_platform": sys_platform,
    }
    return Platform(name, markers, re.compile(wheel_platform))


PLATFORMS = (
    _platform("Linux x86-64", "Linux", "linux", "x86_64", r"(manylinux.*|linux)_x86_64"),
    _platform("Linux aarch64", "Linux", "linux", "aarch64", r"(manylinux.*|linux)_aarch64"),
    _platform("macOS arm64", "Darwin", "darwin", "arm64", r"macosx_.*_(arm64|universal2)"),
)


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
        _run_uv(uv, requirements, pins, "--no-header", "--annotation-style", "line")
        _run_uv(uv, pins, files, "--format", "pylock.toml")
        return split_packages(pins.read_text(encoding="utf-8"), tomllib.loads(files.read_text(encoding="utf-8")))


def _run_uv(uv: str, source: Path, output: Path, *options: str) -> None:
    command = [uv, "pip", "compile", "--quiet", "--universal", "--python-version", PYTHON]
    command += ["--output-file", str(output), *options, str(source)]
    try:
        outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise ConfigError(f"{uv}: not found; install uv (`python -m pip install uv`) or name it with --uv") from error
    if outcome.returncode != 0:
        raise ConfigError(f"{source.name}: uv finds no solution: {' '.join(outcome.stderr.split())}")


def split_packages(pins: str, files: dict[str, Any]) -> Locks:
    """Join uv's pins (versions, markers, reasons) with its list of files, and sort the packages into the locks.

    `pins` is a requirements file with one `# via` comment per line, `files` a parsed pylock.toml (PEP 751).
    """
    listed = {(canonical_name(package["name"]), package["version"]): package for package in files["packages"]}
    packages = []
    for line in pins.splitlines():
        requirement, _, reasons = line.partition("# via ")
        pin, _, marker = (part.strip() for part in requirement.partition(";"))
        name, _, version = pin.partition("==")
        platforms = [platform for platform in PLATFORMS if not marker or Marker(marker).evaluate(platform.markers)]
        if not name or not platforms:
            continue
        needed_by = tuple("requirements.in" if reason.startswith("-r ") else reason for reason in reasons.split(", "))
        hashes = tuple(_hashes(name, version, listed[name, version], platforms))
        packages.append(
            LockedPackage(name, version, marker if len(platforms) < len(PLATFORMS) else "", hashes, needed_by)
        )
    _check_cpu_build(packages)
    return Locks(
        build=[package for package in packages if package.name in BUILD_PACKAGES],
        cpu=[CPU_BUILD],
        main=[package for package in packages if not GPU_PACKAGE.fullmatch(package.name)],
        gpu=[package for package in packages if GPU_PACKAGE.fullmatch(package.name)],
    )


def _hashes(name: str, version: str, package: dict[str, Any], platforms: list[Platform]) -> list[str]:
    wheels = {_file_name(wheel): wheel["hashes"]["sha256"] for wheel in package.get("wheels", [])}
    kept = {file for file in wheels if any(wheel_fits(file, platform) for platform in platforms)}
    hashes = {wheels[file] for file in kept}
    if name == CPU_BUILD.name:
        hashes.update(CPU_BUILD.hashes)
    if not all(any(wheel_fits(file, platform) for file in kept) for platform in platforms):
        if "sdist" not in package:
            raise ConfigError(f"{name}=={version}: no file fits one of {', '.join(item.name for item in platforms)}")
        hashes.add(package["sdist"]["hashes"]["sha256"])
    return sorted(hashes)


def _file_name(wheel: dict[str, Any]) -> str:
    return str(wheel.get("name") or PurePosixPath(unquote(urlsplit(wheel["url"]).path)).name)


def wheel_fits(file: str, platform: Platform) -> bool:
    """Whether CPython 3.11 on `platform` can install the wheel of this file name."""
    try:
        tags = parse_wheel_filename(file)[3]
    except InvalidWheelFilename:
        return False
    return any(_python_fits(tag) and _platform_fits(tag, platform) for tag in tags)


def _python_fits(tag: Tag) -> bool:
    minor = int(PYTHON.split(".")[1])
    found = re.fullmatch(r"(cp|py)3(\d*)", tag.interpreter)
    if not found:
        return False
    if tag.abi == "abi3":
        return found[1] == "cp" and found[2] != "" and int(found[2]) <= minor
    if tag.abi == "none":
        return found[2] == "" or (int(found[2]) <= minor if found[1] == "py" else int(found[2]) == minor)
    return tag.interpreter == tag.abi == f"cp3{minor}"


def _platform_fits(tag: Tag, platform: Platform) -> bool:
    return tag.platform == "any" or bool(platform.wheel_platform.fullmatch(tag.platform))


def _check_cpu_build(packages: list[LockedPackage]) -> None:
    locked = {package.name: package.version for package in packages}.get(CPU_BUILD.name)
    if locked != CPU_BUILD.version.removesuffix("+cpu"):
        raise ConfigError(
            f"requirements.in: {CPU_BUILD.name} is locked at {locked}, but CPU_BUILD names {CPU_BUILD.version}: "
            "put the version and the SHA-256 of the new CPU wheel there"
        )
