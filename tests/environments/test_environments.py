"""The conda environments: the same versions as the lock, everything that the scripts import, and nothing else."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from hatchery.environments import (
    CPU_LOCK,
    MAIN_LOCK,
    LockedPackage,
    canonical_name,
    conda_environments,
    imported_packages,
    needed_packages,
    read_lock,
    read_locks,
    third_party_imports,
)
from hatchery.errors import ConfigError
from hatchery.workflow.registry import code_by_environment

# Direct requirements that no script imports: they are started as programs, or by Snakemake, or tests compare with them.
PROGRAMS = {
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

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
CODE = code_by_environment()
ENVIRONMENTS = sorted(CODE)


# What a rule may start: Python, and what every shell has.
STARTED_BY_RULES = {"printf", "python", "tee", "trap"}


@pytest.fixture(scope="module")
def lock(repository: Path) -> dict[str, LockedPackage]:
    return read_locks(repository)


def pip_requirements(content: Mapping[str, Any]) -> list[str]:
    """The lines in the `pip:` section of an environment: pins with hashes."""
    return [line for item in content["dependencies"] if isinstance(item, dict) for line in item["pip"]]


def test_the_shipped_environments_are_what_the_imports_and_the_lock_give(repository: Path) -> None:
    made = conda_environments(repository)
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
    locked = {" ".join([package.pin, *package.hash_options]) for package in lock.values()}
    assert set(pip_requirements(content)) <= locked


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_every_import_is_served_and_every_package_is_used(repository: Path, lock: dict, environment: str) -> None:
    content = yaml.safe_load((repository / "envs" / f"{environment}.yaml").read_text())
    listed = {canonical_name(re.split(r"[=;\s]", line)[0]) for line in pip_requirements(content)}
    imported = set(imported_packages(CODE[environment], lock))
    assert imported <= listed
    unused = {name for name in listed - imported if not reaches(name, imported, lock)}
    assert not unused


def reaches(name: str, imported: set[str], lock: dict[str, LockedPackage], seen: frozenset[str] = frozenset()) -> bool:
    """Whether an imported package needs `name`, directly or through others."""
    if name in seen or name not in lock:
        return False
    needed_by = set(lock[name].needed_by)
    return bool(needed_by & imported) or any(reaches(user, imported, lock, seen | {name}) for user in needed_by)


def test_what_stands_before_the_commands_of_others_needs_no_package(repository: Path) -> None:
    launchers = re.findall(r"scripts/(\w+)\.py", (repository / "scripts/hatchery/workflow/resources.py").read_text())
    assert set(launchers) == {"claim_gpus", "run"}
    assert third_party_imports(repository / "scripts/claim_gpus.py") == {}


def test_every_rule_starts_only_what_is_in_its_environment(repository: Path) -> None:
    text = (repository / "Snakefile").read_text(encoding="utf-8")
    commands = ["".join(re.findall(r'"(.*)"', part.partition("\n\n")[0])) for part in text.split("shell:\n")[1:]]
    # `params.run` begins with `python`, or with a launcher of ours; the test above looks at those.
    words = [re.sub(r"\{[^{}]*\}|'[^']*'|[()]|\bexec\b", "", command) for command in commands]
    started = {part.split()[0] for word in words for part in re.split(r"&&|\|\||[|;]", word) if part.split()}
    assert len(commands) == 2 and started - {"2>&1"} <= STARTED_BY_RULES


def test_every_import_of_the_scripts_is_a_direct_requirement_and_the_other_way_round(
    repository: Path, lock: dict
) -> None:
    direct = {name for name, package in lock.items() if "requirements.in" in package.needed_by}
    files = [*sorted(SCRIPTS.glob("*.py")), *(file for files in CODE.values() for file in files)]
    imported = set(imported_packages(files, lock))
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


PACKAGES = {"hatchery/__init__.py": "", "hatchery/unused.py": "import torch\n"}
READERS = {
    "run.py": "import hatchery.readers\n",
    "hatchery/readers/bnc.py": "import lxml\n",
}
IMPORTED: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "through the library": (
        {
            "run.py": "import json\nfrom hatchery.corpora import reader\n",
            "hatchery/corpora/__init__.py": "import yaml\n",
            "hatchery/corpora/reader.py": "from .text import clean\nimport lxml.etree\n",
            "hatchery/corpora/text.py": "from ..words import split\n",
            "hatchery/words.py": "def split():\n    import numpy as np\n",
        },
        {
            "lxml": "hatchery/corpora/reader.py",
            "numpy": "hatchery/words.py",
            "yaml": "hatchery/corpora/__init__.py",
        },
    ),
    **{
        f"all neighbours that {call} loads by name": (
            {**READERS, "hatchery/readers/__init__.py": f"import importlib, pkgutil\n{call}\n"},
            {"lxml": "hatchery/readers/bnc.py"},
        )
        for call in ("importlib.import_module(name)", "pkgutil.iter_modules(__path__)")
    },
}


@pytest.mark.parametrize("what", IMPORTED)
def test_imports_are_followed(what: str, tmp_path: Path) -> None:
    modules, found = IMPORTED[what]
    for name, text in (PACKAGES | modules).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert third_party_imports(tmp_path / "run.py") == found
