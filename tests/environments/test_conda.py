"""The conda environments: the same versions as the lock, everything that the scripts import, and nothing else."""

import re
from pathlib import Path

import pytest
import yaml

from hatchery.environments.conda import imported_packages, needed_packages
from hatchery.environments.generation import conda_environments
from hatchery.environments.groups import COMMANDS_BY_ENVIRONMENT, DEVELOPMENT_COMMANDS
from hatchery.environments.imports import third_party_imports
from hatchery.environments.installation import MAIN_LOCK
from hatchery.environments.lock import LockedPackage, canonical_name, read_lock
from hatchery.errors import ConfigError

# Direct requirements that no script imports: they are started as programs, or by Snakemake.
PROGRAMS = {
    "hypothesis",
    "mypy",
    "pygments",
    "pytest",
    "ruff",
    "sacremoses",
    "snakefmt",
    "snakemake",
    "snakemake-executor-plugin-slurm",
}

ENVIRONMENTS = sorted(COMMANDS_BY_ENVIRONMENT)


@pytest.fixture(scope="module")
def lock(repository: Path) -> dict[str, LockedPackage]:
    return read_lock(repository / MAIN_LOCK)


def pip_pins(repository: Path, environment: str) -> list[str]:
    """The requirements in the `pip:` section of an environment."""
    content = yaml.safe_load((repository / "envs" / f"{environment}.yaml").read_text())
    return [pin for item in content["dependencies"] if isinstance(item, dict) for pin in item["pip"]]


def test_the_shipped_environments_are_what_the_imports_and_the_lock_give(repository: Path) -> None:
    made = conda_environments(repository)
    assert {path.stem for path in (repository / "envs").glob("*.yaml")} == set(made)
    for environment, text in made.items():
        assert (repository / "envs" / f"{environment}.yaml").read_text() == text, f"{environment}: run `make envs`"


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_the_pins_equal_those_of_the_lock(repository: Path, lock: dict, environment: str) -> None:
    locked = {package.pin for package in lock.values()}
    assert set(pip_pins(repository, environment)) <= locked


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_every_import_is_served_and_every_package_is_used(repository: Path, lock: dict, environment: str) -> None:
    listed = {canonical_name(re.split(r"[=;\s]", pin)[0]) for pin in pip_pins(repository, environment)}
    scripts = [repository / "scripts" / f"{command}.py" for command in COMMANDS_BY_ENVIRONMENT[environment]]
    imported = set(imported_packages(scripts, lock))
    assert imported <= listed
    unused = {name for name in listed - imported if not reaches(name, imported, lock)}
    assert not unused


def reaches(name: str, imported: set[str], lock: dict[str, LockedPackage], seen: frozenset[str] = frozenset()) -> bool:
    """Whether an imported package needs `name`, directly or through others."""
    if name in seen or name not in lock:
        return False
    needed_by = set(lock[name].needed_by)
    return bool(needed_by & imported) or any(reaches(user, imported, lock, seen | {name}) for user in needed_by)


def test_every_command_has_one_place(repository: Path) -> None:
    entered = [command for commands in COMMANDS_BY_ENVIRONMENT.values() for command in commands]
    entered += DEVELOPMENT_COMMANDS
    assert len(entered) == len(set(entered))
    assert set(entered) == {path.stem for path in (repository / "scripts").glob("*.py")}


def test_every_rule_names_the_environment_of_its_command(repository: Path) -> None:
    environment_of = {name: env for env, commands in COMMANDS_BY_ENVIRONMENT.items() for name in commands}
    checked = 0
    for path in sorted((repository / "workflow" / "rules").glob("*.smk")):
        for rule in re.split(r"^(?:rule|checkpoint) ", path.read_text(), flags=re.MULTILINE)[1:]:
            for command in re.findall(r"scripts/(\w+)\.py", rule):
                where = f"{path.name}: {rule.partition(':')[0]}"
                assert command in environment_of, f"{where}: enter {command} in COMMANDS_BY_ENVIRONMENT"
                assert re.findall(r"envs/(\w+)\.yaml", rule) == [environment_of[command]], where
                checked += 1
    assert checked, "no rule calls a command"


def test_the_installer_needs_nothing_but_python(repository: Path) -> None:
    assert third_party_imports(repository / "scripts" / "install_environment.py") == {}


def test_every_import_of_the_scripts_is_a_direct_requirement_and_the_other_way_round(
    repository: Path, lock: dict
) -> None:
    direct = {name for name, package in lock.items() if "requirements.in" in package.needed_by}
    imported = set(imported_packages(sorted((repository / "scripts").glob("*.py")), lock))
    assert imported <= direct, "name it in requirements.in and run `make lock`"
    assert direct - imported == PROGRAMS


def test_an_import_that_no_locked_package_provides_is_told(tmp_path: Path, lock: dict) -> None:
    (tmp_path / "run.py").write_text("import a_package_that_nobody_wrote\n")
    with pytest.raises(ConfigError, match=r"run\.py: imports a_package_that_nobody_wrote, which no package in"):
        imported_packages([tmp_path / "run.py"], lock)


def test_needs_are_followed_to_the_end() -> None:
    lock = {
        name: LockedPackage(name, "1", "", ("0" * 64,), needed_by)
        for name, needed_by in {"a": ("requirements.in",), "b": ("a",), "c": ("b",), "d": ("other",)}.items()
    }
    assert needed_packages(["a"], lock) == ["b", "c"]
