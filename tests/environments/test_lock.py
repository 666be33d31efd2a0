"""The lock files: their form, and that the shipped ones hold what Hatchery asks for."""

import re
from pathlib import Path

import pytest

from hatchery.environments.installation import BUILD_LOCK, CPU_LOCK, GPU_LOCK, LOCKS, MAIN_LOCK
from hatchery.environments.lock import LockedPackage, canonical_name, format_lock, read_lock
from hatchery.errors import ConfigError

DIGEST = "0123456789abcdef" * 4


def locked(name: str, version: str = "1.0", marker: str = "", needed_by: tuple[str, ...] = ("x",)) -> LockedPackage:
    return LockedPackage(name, version, marker, (DIGEST,), needed_by)


def test_a_written_lock_is_read_back_unchanged(tmp_path: Path) -> None:
    packages = [
        locked("torch", "2.13.0+cpu", "sys_platform == 'linux'", ("deepspeed", "requirements.in")),
        LockedPackage("lxml", "6.1.3", "", ("a" * 64, "b" * 64), ("requirements.in",)),
    ]
    (tmp_path / "x.lock").write_text(format_lock(packages, "What it is for."))
    assert read_lock(tmp_path / "x.lock") == {package.name: package for package in packages}


def test_the_order_of_the_packages_does_not_change_the_text() -> None:
    packages = [locked("b"), locked("a"), locked("c")]
    assert format_lock(packages, "x") == format_lock(reversed(packages), "x")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("numpy>=2.0 \\\n    --hash=sha256:" + DIGEST, "line 1: expected `name==version`"),
        ("--index-url somewhere\n", "line 1: expected `name==version`"),
        (f"numpy==2.0 \\\n    --hash=sha256:{DIGEST[:-1]}", "line 2: expected"),
        ("numpy==2.0\n", "numpy has no hash"),
        (
            f"PyYAML==1 \\\n --hash=sha256:{DIGEST}\npyyaml==1 \\\n --hash=sha256:{DIGEST}",
            "line 3: pyyaml is locked twice",
        ),
    ],
)
def test_a_malformed_lock_is_told_with_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "x.lock").write_text(text)
    with pytest.raises(ConfigError, match=re.escape(f"{tmp_path / 'x.lock'}: {message}")):
        read_lock(tmp_path / "x.lock")


def test_a_missing_lock_is_told_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"x\.lock: the lock file cannot be read"):
        read_lock(tmp_path / "x.lock")


@pytest.fixture(scope="module")
def locks(repository: Path) -> dict[str, dict[str, LockedPackage]]:
    return {name: read_lock(repository / name) for name in LOCKS}


def test_every_direct_requirement_is_locked_at_its_version(repository: Path, locks: dict) -> None:
    lines = (line.partition("#")[0].strip() for line in (repository / "requirements.in").read_text().splitlines())
    requested = dict(line.split("==") for line in lines if line)
    pinned = {name: package.version for name, package in locks[MAIN_LOCK].items()}
    assert {canonical_name(name): version for name, version in requested.items()}.items() <= pinned.items()
    direct = {name for name, package in locks[MAIN_LOCK].items() if "requirements.in" in package.needed_by}
    assert direct == {canonical_name(name) for name in requested}


def test_no_lock_names_an_address(repository: Path) -> None:
    for name in LOCKS:
        assert not re.search(r"://|--(extra-)?index|--find-links|--trusted", (repository / name).read_text()), name


def test_every_package_is_needed_by_a_locked_package(locks: dict) -> None:
    known = {"requirements.in", *locks[MAIN_LOCK], *locks[GPU_LOCK]}
    for name, lock in locks.items():
        for package in lock.values():
            assert package.needed_by, f"{name}: nothing needs {package.name}"
            assert set(package.needed_by) <= known, f"{name}: {package.name}"


def test_the_locks_agree_on_versions(locks: dict) -> None:
    assert locks[BUILD_LOCK].items() <= locks[MAIN_LOCK].items()
    assert not locks[GPU_LOCK].keys() & locks[MAIN_LOCK].keys()
    assert locks[CPU_LOCK]["torch"].version == locks[MAIN_LOCK]["torch"].version + "+cpu"


def test_what_only_the_cuda_build_needs_is_not_in_the_main_lock(locks: dict) -> None:
    assert "triton" in locks[GPU_LOCK]
    assert not [name for name in locks[MAIN_LOCK] if name.startswith(("nvidia", "cuda", "triton"))]
