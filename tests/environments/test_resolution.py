"""Which of uv's answers end up in which lock, and with the hashes of which files."""

from collections import defaultdict
from typing import Any

import pytest

from hatchery.environments.resolution import CPU_BUILD, PLATFORMS, Listed, Locks, Reasons, add_reasons, split_packages
from hatchery.errors import ConfigError

LINUX, LINUX_ARM, _ = PLATFORMS


def listed(name: str, version: str, *wheels: str, sdist: bool = True) -> dict[str, Any]:
    """An entry of pylock.toml in which the hash of a file is its name."""
    package: dict[str, Any] = {"name": name, "version": version}
    package["wheels"] = [{"url": f"https://example.org/{file}", "hashes": {"sha256": file}} for file in wheels]
    if sdist:
        package["sdist"] = {"url": f"https://example.org/{name}.tar.gz", "hashes": {"sha256": "sdist"}}
    return package


def on(*packages: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """The packages of a platform."""
    return {(package["name"], package["version"]): package for package in (TORCH, *packages)}


TORCH_VERSION = CPU_BUILD.version.removesuffix("+cpu")
TORCH = listed("torch", TORCH_VERSION, f"torch-{TORCH_VERSION}-py3-none-any.whl")
TORCH_PIN = f"torch=={TORCH_VERSION}  # via -r requirements.in\n"


def everywhere(*packages: dict[str, Any]) -> Listed:
    return {platform: on(*packages) for platform in PLATFORMS}


def split(pins: str, files: Listed) -> Locks:
    """The locks, when every platform gives the same reasons."""
    needed_by: Reasons = defaultdict(set)
    add_reasons(needed_by, pins)
    return split_packages(pins, files, needed_by)


def test_packages_are_sorted_into_the_locks() -> None:
    pins = TORCH_PIN + (
        "nvidia-cublas==13.1 ; sys_platform == 'linux'  # via torch\n"
        "setuptools==84.2.1        # via torch\n"
        "colorama==0.4.6 ; sys_platform == 'win32'  # via tqdm\n"
    )
    setuptools = listed("setuptools", "84.2.1", "setuptools-84.2.1-py3-none-any.whl")
    files = everywhere(setuptools)
    linux_wheels = ["nvidia_cublas-aarch64.whl", "nvidia_cublas-x86_64.whl"]
    for platform, wheel in ((LINUX_ARM, linux_wheels[0]), (LINUX, linux_wheels[1])):
        files[platform] = on(setuptools, listed("nvidia-cublas", "13.1", wheel))
    locks = split(pins, files)
    assert [package.name for package in locks.main] == ["torch", "setuptools"]
    assert [package.name for package in locks.build] == ["setuptools"]
    assert [package.pin for package in locks.gpu] == ["nvidia-cublas==13.1 ; sys_platform == 'linux'"]
    assert locks.gpu[0].hashes == tuple(linux_wheels)
    assert locks.main[0].needed_by == ("requirements.in",)


def test_a_marker_that_holds_on_every_supported_platform_is_dropped() -> None:
    pins = TORCH_PIN + "anyio==4.16.0 ; sys_platform != 'emscripten'  # via httpx\n"
    files = everywhere(listed("anyio", "4.16.0", "anyio-4.16.0-py3-none-any.whl"))
    assert split(pins, files).main[1].pin == "anyio==4.16.0"


def test_a_source_archive_counts_only_where_a_wheel_is_missing() -> None:
    pins = TORCH_PIN + "a==1  # via b\nc==1  # via b\n"
    c_linux = "c-1-cp311-cp311-manylinux_2_28_x86_64.whl"
    a = listed("a", "1", "a-1-py3-none-any.whl")
    files = everywhere(a, listed("c", "1")) | {LINUX: on(a, listed("c", "1", c_linux))}
    hashes = {package.name: package.hashes for package in split(pins, files).main}
    assert hashes["a"] == ("a-1-py3-none-any.whl",)
    assert hashes["c"] == (c_linux, "sdist")


def test_a_package_without_any_usable_file_is_told() -> None:
    with pytest.raises(ConfigError, match=r"a==1: no file fits Linux x86-64"):
        split(TORCH_PIN + "a==1  # via b\n", everywhere(listed("a", "1", sdist=False)))


def test_both_builds_of_pytorch_fit_the_main_lock() -> None:
    assert set(CPU_BUILD.hashes) < set(split(TORCH_PIN, everywhere()).main[0].hashes)


def test_another_version_of_pytorch_asks_for_the_hash_of_its_cpu_build() -> None:
    files = everywhere(listed("torch", "9.9", "torch-9.9-py3-none-any.whl"))
    with pytest.raises(ConfigError, match=r"torch is locked at 9\.9, but CPU_BUILD names"):
        split("torch==9.9  # via -r requirements.in\n", files)


def test_a_package_is_needed_by_what_needs_it_on_a_supported_platform() -> None:
    colorama = listed("colorama", "0.4.6", "colorama-0.4.6-py2.py3-none-any.whl")
    needed_by: Reasons = defaultdict(set)
    for of_platform in ("colorama==0.4.6  # via sacrebleu\n", "colorama==0.4.6  # via -r requirements.in\n"):
        add_reasons(needed_by, TORCH_PIN + of_platform)
    pins = TORCH_PIN + "colorama==0.4.6  # via sacrebleu, tqdm\n"
    assert split_packages(pins, everywhere(colorama), needed_by).main[1].needed_by == ("requirements.in", "sacrebleu")
