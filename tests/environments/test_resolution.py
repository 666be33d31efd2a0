"""Which of uv's answers end up in which lock, and with the hashes of which files."""

from typing import Any

import pytest

from hatchery.environments.resolution import CPU_BUILD, PLATFORMS, split_packages, wheel_fits
from hatchery.errors import ConfigError

LINUX, LINUX_ARM, MAC = PLATFORMS


@pytest.mark.parametrize(
    ("file", "fits"),
    [
        ("x-1-py3-none-any.whl", [LINUX, LINUX_ARM, MAC]),
        ("x-1-py2.py3-none-any.whl", [LINUX, LINUX_ARM, MAC]),
        ("x-1-py311-none-any.whl", [LINUX, LINUX_ARM, MAC]),
        ("x-1-py312-none-any.whl", []),
        ("x-1-py2-none-any.whl", []),
        ("x-1-cp311-cp311-manylinux_2_28_x86_64.whl", [LINUX]),
        ("x-1-cp311-cp311-manylinux_2_17_aarch64.manylinux2014_aarch64.whl", [LINUX_ARM]),
        ("x-1-cp311-cp311-macosx_11_0_arm64.whl", [MAC]),
        ("x-1-cp39-abi3-macosx_10_12_universal2.whl", [MAC]),
        ("x-1-cp312-abi3-manylinux_2_28_x86_64.whl", []),
        ("x-1-cp310-cp310-manylinux_2_28_x86_64.whl", []),
        ("x-1-cp311-cp311-musllinux_1_2_x86_64.whl", []),
        ("x-1-cp311-cp311-win_amd64.whl", []),
        ("x-1-pp311-pypy311_pp73-manylinux_2_28_x86_64.whl", []),
        ("x-1.tar.gz", []),
    ],
)
def test_a_wheel_is_kept_for_the_machines_that_can_install_it(file: str, fits: list) -> None:
    assert [platform for platform in PLATFORMS if wheel_fits(file, platform)] == fits


def listed(name: str, version: str, *wheels: str, sdist: bool = True) -> dict[str, Any]:
    """An entry of pylock.toml in which the hash of a file is its name."""
    package: dict[str, Any] = {"name": name, "version": version}
    package["wheels"] = [{"url": f"https://example.org/{file}", "hashes": {"sha256": file}} for file in wheels]
    if sdist:
        package["sdist"] = {"url": f"https://example.org/{name}.tar.gz", "hashes": {"sha256": "sdist"}}
    return package


TORCH_VERSION = CPU_BUILD.version.removesuffix("+cpu")
TORCH = listed("torch", TORCH_VERSION, f"torch-{TORCH_VERSION}-py3-none-any.whl")
TORCH_PIN = f"torch=={TORCH_VERSION}  # via -r requirements.in\n"


def test_packages_are_sorted_into_the_locks() -> None:
    pins = TORCH_PIN + (
        "nvidia-cublas==13.1 ; sys_platform == 'linux'  # via torch\n"
        "setuptools==84.2.1        # via torch\n"
        "colorama==0.4.6 ; sys_platform == 'win32'  # via tqdm\n"
    )
    linux_wheels = [f"nvidia_cublas-13.1-py3-none-manylinux_2_27_{machine}.whl" for machine in ("x86_64", "aarch64")]
    files = {
        "packages": [
            TORCH,
            listed("nvidia-cublas", "13.1", *linux_wheels),
            listed("setuptools", "84.2.1", "setuptools-84.2.1-py3-none-any.whl"),
            listed("colorama", "0.4.6", "colorama-0.4.6-py2.py3-none-any.whl"),
        ]
    }
    locks = split_packages(pins, files)
    assert [package.name for package in locks.main] == ["torch", "setuptools"]
    assert [package.name for package in locks.build] == ["setuptools"]
    assert [package.pin for package in locks.gpu] == ["nvidia-cublas==13.1 ; sys_platform == 'linux'"]
    assert locks.gpu[0].hashes == tuple(sorted(linux_wheels))
    assert locks.main[0].needed_by == ("requirements.in",)


def test_a_marker_that_holds_on_every_supported_platform_is_dropped() -> None:
    pins = TORCH_PIN + "anyio==4.16.0 ; sys_platform != 'emscripten'  # via httpx\n"
    files = {"packages": [TORCH, listed("anyio", "4.16.0", "anyio-4.16.0-py3-none-any.whl")]}
    assert split_packages(pins, files).main[1].pin == "anyio==4.16.0"


def test_a_source_archive_counts_only_where_a_wheel_is_missing() -> None:
    pins = TORCH_PIN + "a==1  # via b\nc==1  # via b\n"
    c_linux = "c-1-cp311-cp311-manylinux_2_28_x86_64.whl"
    files = {"packages": [TORCH, listed("a", "1", "a-1-py3-none-any.whl"), listed("c", "1", c_linux)]}
    hashes = {package.name: package.hashes for package in split_packages(pins, files).main}
    assert hashes["a"] == ("a-1-py3-none-any.whl",)
    assert hashes["c"] == (c_linux, "sdist")


def test_a_package_without_any_usable_file_is_told() -> None:
    files = {"packages": [TORCH, listed("a", "1", "a-1-cp312-cp312-win_amd64.whl", sdist=False)]}
    with pytest.raises(ConfigError, match=r"a==1: no file fits one of Linux x86-64"):
        split_packages(TORCH_PIN + "a==1  # via b\n", files)


def test_both_builds_of_pytorch_fit_the_main_lock() -> None:
    assert set(CPU_BUILD.hashes) < set(split_packages(TORCH_PIN, {"packages": [TORCH]}).main[0].hashes)


def test_another_version_of_pytorch_asks_for_the_hash_of_its_cpu_build() -> None:
    files = {"packages": [listed("torch", "9.9", "torch-9.9-py3-none-any.whl")]}
    with pytest.raises(ConfigError, match=r"torch is locked at 9\.9, but CPU_BUILD names"):
        split_packages("torch==9.9  # via -r requirements.in\n", files)
