"""The conda environments: the versions of the lock, and the packages that the library imports."""

import re
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
import yaml
from write_environments import (
    CPU_LOCK,
    MAIN_LOCK,
    LockedPackage,
    canonical_name,
    conda_environments,
    needed_packages,
    read_groups,
    read_lock,
    read_locks,
)

from hatchery.workflow.registry import STAGES
from tests.library_imports import imported_modules

# No script imports these direct requirements: they start as programs or by Snakemake, or tests compare with them.
PROGRAMS = {
    "axe-core-python",
    "hatchling",
    "hypothesis",
    "jsonschema",
    "markdown-it-py",
    "mypy",
    "pytest",
    "pytest-xdist",
    "ruff",
    "sacremoses",
    "scikit-learn",
    "snakefmt",
}
# Packages that only PyTorch's builds for GPUs install.
WITH_PYTORCH = {"triton"}

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
ENVIRONMENTS = sorted({stage.environment for stage in STAGES.values()})


@pytest.fixture(scope="module")
def lock(repository: Path) -> dict[str, LockedPackage]:
    return read_locks(repository)


def third_party(*files: Path) -> set[str]:
    """Return the top-level names that files import from outside the standard library and Hatchery."""
    tops = {module.partition(".")[0] for file in files for module in imported_modules(file)}
    return tops - {"hatchery", "demo", *WITH_PYTORCH, *sys.stdlib_module_names}


def pip_requirements(content: Mapping[str, Any]) -> list[str]:
    """Return the lines in the `pip:` section of an environment: pins with hashes."""
    return [line for item in content["dependencies"] if isinstance(item, dict) for line in item["pip"]]


def test_the_shipped_environments_are_what_the_groups_and_the_lock_give(repository: Path) -> None:
    made = conda_environments(repository)
    assert sorted(made) == ENVIRONMENTS
    assert {path.stem for path in (repository / "envs").glob("*.yaml")} == set(made)
    for environment, text in made.items():
        assert (repository / "envs" / f"{environment}.yaml").read_text() == text, f"{environment}: run `make envs`"


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_an_environment_has_python_from_conda_forge_and_pins_of_the_lock_without_an_address(
    repository: Path, lock: dict, environment: str
) -> None:
    text = (repository / "envs" / f"{environment}.yaml").read_text()
    assert re.findall(r"://|--(?:extra-)?index|--find-links|\bwww\.|@", text) == []
    content = yaml.safe_load(text)
    assert content.keys() == {"channels", "dependencies"}
    assert content["channels"] == ["conda-forge", "nodefaults"]
    conda_packages = [item for item in content["dependencies"] if isinstance(item, str)]
    assert [re.sub(r"=\d+\.\d+\.\d+$", "", item) for item in conda_packages] == ["python", "pip"]
    pins = pip_requirements(content)
    assert set(pins) <= {" ".join([package.pin, *package.hash_options]) for package in lock.values()}
    listed = {canonical_name(re.split(r"[=;\s]", line)[0]) for line in pins}
    assert set(read_groups(repository)[environment]) <= listed
    # No requirement of a listed package is missing, because pip resolves nothing.
    assert needed_packages(listed, lock) == []


def test_what_stands_before_the_commands_of_others_needs_no_package(repository: Path) -> None:
    command = [sys.executable, "-S", str(repository / "scripts/claim_gpus.py"), "--gpus", "1", "--", "true"]
    subprocess.run(command, env={}, timeout=60, check=True)


def test_every_import_of_the_scripts_is_a_direct_requirement_and_the_other_way_round(
    repository: Path, lock: dict
) -> None:
    direct = {name for name, package in lock.items() if "requirements.in" in package.needed_by}
    providers = packages_distributions()
    tops = third_party(*SCRIPTS.rglob("*.py"))
    imported = {canonical_name(name) for top in tops for name in providers.get(top, [])} & direct
    assert {top for top in tops if not direct & set(map(canonical_name, providers.get(top, [])))} == set()
    assert direct - imported == PROGRAMS
    # Snakemake and the program `hatchery` run outside the environments of the rules.
    grouped = {name for names in read_groups(repository).values() for name in names}
    assert imported - grouped == {"typer", *(name for name in direct if name.startswith("snakemake"))}
    assert grouped <= imported


def test_needs_are_followed_to_the_end() -> None:
    lock = {
        name: LockedPackage(name, "1", "", ("0" * 64,), needed_by)
        for name, needed_by in {"a": ("requirements.in",), "b": ("a",), "c": ("b",), "d": ("other",)}.items()
    }
    assert needed_packages(["a"], lock) == ["b", "c"]


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


def test_every_direct_requirement_is_locked_at_its_version(repository: Path, lock: dict[str, LockedPackage]) -> None:
    lines = (line.partition("#")[0].strip() for line in (repository / "requirements.in").read_text().splitlines())
    requested = {canonical_name(name): version for name, version in (line.split("==") for line in lines if line)}
    direct = {name: package.version for name, package in lock.items() if "requirements.in" in package.needed_by}
    assert direct == requested, "call `make lock`"


def test_every_file_is_known_by_its_hash_without_an_address_and_both_builds_of_pytorch_are_of_one_version(
    repository: Path, lock: dict[str, LockedPackage]
) -> None:
    assert all(package.hashes for package in lock.values())
    for name in (MAIN_LOCK, CPU_LOCK):
        assert not re.search(r"://|--(extra-)?index|--find-links|--trusted", (repository / name).read_text()), name
    main, (cpu,) = read_lock(repository / MAIN_LOCK), read_lock(repository / CPU_LOCK).values()
    assert cpu.version == main["torch"].version + "+cpu", f"write the hash of the new CPU wheel into {CPU_LOCK}"
    assert set(lock["torch"].hashes) == {*cpu.hashes, *main["torch"].hashes}
