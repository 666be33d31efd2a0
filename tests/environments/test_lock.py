"""The lock files hold what Hatchery asks for, and no address."""

import re
from pathlib import Path

import pytest

from hatchery.environments.conda import CPU_LOCK, MAIN_LOCK, LockedPackage, canonical_name, read_lock, read_locks

Lock = dict[str, LockedPackage]


@pytest.fixture(scope="module")
def lock(repository: Path) -> Lock:
    return read_lock(repository / MAIN_LOCK)


def test_an_entry_is_read_with_its_marker_hashes_and_reasons(tmp_path: Path) -> None:
    (tmp_path / "x.lock").write_text(
        "# made by uv\n#    make lock\n"
        "a==1.0+cpu ; sys_platform == 'linux' \\\n    --hash=sha256:0a \\\n    --hash=sha256:0b\n"
        "    # via b, -r requirements.in\n"
        "b-c==2 \\\n    --hash=sha256:0c\n    # via a\n"
    )
    read = read_lock(tmp_path / "x.lock")
    first = LockedPackage("a", "1.0+cpu", "sys_platform == 'linux'", ("0a", "0b"), ("b", "requirements.in"))
    assert read == {"a": first, "b-c": LockedPackage("b-c", "2", "", ("0c",), ("a",))}


def test_every_direct_requirement_is_locked_at_its_version(repository: Path, lock: Lock) -> None:
    lines = (line.partition("#")[0].strip() for line in (repository / "requirements.in").read_text().splitlines())
    requested = {canonical_name(name): version for name, version in (line.split("==") for line in lines if line)}
    direct = {name: package.version for name, package in lock.items() if "requirements.in" in package.needed_by}
    assert direct == requested, "call `make lock`"


def test_every_file_is_known_by_its_hash_and_no_address_is_named(repository: Path, lock: Lock) -> None:
    assert all(package.hashes for package in lock.values())
    for name in (MAIN_LOCK, CPU_LOCK):
        assert not re.search(r"://|--(extra-)?index|--find-links|--trusted", (repository / name).read_text()), name


def test_both_builds_of_pytorch_are_of_one_version(repository: Path, lock: Lock) -> None:
    (cpu,) = read_lock(repository / CPU_LOCK).values()
    assert cpu.version == lock["torch"].version + "+cpu", f"write the hash of the new CPU wheel into {CPU_LOCK}"
    assert set(read_locks(repository)["torch"].hashes) == {*cpu.hashes, *lock["torch"].hashes}
