"""Every conda environment, made afresh without conda: its packages suffice for the scripts of its rules.

An environment is assembled by linking the files of exactly the pinned packages out of the environment that runs the
tests, which takes seconds and no network. A small one is also really installed by pip, the way conda would do it.
"""

import csv
import json
import os
import re
import subprocess
import sys
import venv
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import distribution, distributions
from importlib.util import cache_from_source
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from hatchery.environments import canonical_name, import_closure, imported_modules
from hatchery.workflow.registry import STAGES, code_by_environment

pytestmark = pytest.mark.slow  # PyTorch is imported in a dozen processes, and pip fetches packages

CODE = code_by_environment()
ENVIRONMENTS = sorted(CODE)
SITE_PACKAGES = Path("lib", f"python{sys.version_info.major}.{sys.version_info.minor}", "site-packages")

# Run in the fresh environment with the names on standard input: each is a module, or something that a module holds.
IMPORT_ALL = """
import importlib, json, sys

def reach(name):
    parts = name.split(".")
    reached = importlib.import_module(parts[0])
    for depth, part in enumerate(parts[1:], start=2):
        if not hasattr(reached, part):
            importlib.import_module(".".join(parts[:depth]))
        reached = getattr(reached, part)

failures = {}
for name in json.load(sys.stdin):
    try:
        reach(name)
    except Exception as error:
        failures[name] = f"{type(error).__name__}: {error}"
print("failures:" + json.dumps(failures))
"""


@dataclass(frozen=True)
class FreshEnvironment:
    """A virtual environment that holds only what it was given."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def run(self, *arguments: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run its Python as Snakemake does with an activated environment: first on PATH, nothing else handed on."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
        surroundings = {**kept, "PATH": f"{self.folder / 'bin'}:{os.defpath}", "PYTHONNOUSERSITE": "1"}
        return subprocess.run(
            [self.python, *arguments], env=surroundings, input=stdin, capture_output=True, text=True, check=False
        )

    def packages(self) -> dict[str, str]:
        """The version of every package that this Python sees, by canonical name."""
        code = "import json, importlib.metadata as m; print(json.dumps({d.name: d.version for d in m.distributions()}))"
        return {canonical_name(name): version for name, version in json.loads(self.run("-c", code).stdout).items()}

    def import_failures(self, scripts: Path, names: Iterable[str]) -> dict[str, str]:
        """What went wrong with each dotted name that cannot be imported, with `scripts` on the path."""
        code = f"import sys; sys.path.insert(0, {str(scripts)!r}){IMPORT_ALL}"
        outcome = self.run("-c", code, stdin=json.dumps(sorted(names)))
        assert "failures:" in outcome.stdout, outcome.stderr
        return json.loads(outcome.stdout.rpartition("failures:")[2])


def pip_requirements(repository: Path, environment: str) -> list[str]:
    """The lines that conda hands to pip for an environment."""
    content = yaml.safe_load((repository / "envs" / f"{environment}.yaml").read_text())
    return [line for item in content["dependencies"] if isinstance(item, dict) for line in item["pip"]]


def wanted_here(repository: Path, environment: str) -> list[Requirement]:
    """The pinned packages for this machine, without those of a CUDA build where the CPU build is installed."""
    requirements = [Requirement(line.partition(" --hash=")[0]) for line in pip_requirements(repository, environment)]
    wanted = [requirement for requirement in requirements if not requirement.marker or requirement.marker.evaluate()]
    if distribution("torch").version.endswith("+cpu"):
        wanted = [requirement for requirement in wanted if not re.match("(nvidia|cuda)-|triton$", requirement.name)]
    return wanted


@cache
def recorded_files(package: str) -> tuple[str, ...]:
    """The files of an installed package, relative to site-packages, as its installer recorded them."""
    record = distribution(package).read_text("RECORD")
    assert record, f"{package}: its installer kept no record of its files"
    return tuple(row[0] for row in csv.reader(record.splitlines()) if row)


def assemble(folder: Path, packages: Iterable[str]) -> FreshEnvironment:
    """Make a virtual environment that holds exactly `packages`, by links to their installed files.

    Each file is linked, not its folder: a library looks for others beside itself, and there they must be missing when
    they are not among the packages.
    """
    venv.EnvBuilder(symlinks=True, with_pip=False).create(folder)
    for package in packages:
        installed = Path(str(distribution(package).locate_file("")))
        for file in recorded_files(package):
            source, target = installed / file, folder / SITE_PACKAGES / file
            # Its programs lie outside, and rules start none of them.
            if file.startswith(".."):
                continue
            link(source, target)
            if file.endswith(".py") and (compiled := Path(cache_from_source(source))).exists():
                link(compiled, Path(cache_from_source(target)))
    return FreshEnvironment(folder)


def link(source: Path, target: Path) -> None:
    # Bytecode may be recorded as well, and then comes twice.
    with suppress(FileExistsError):
        try:
            target.symlink_to(source)
        except FileNotFoundError:
            target.parent.mkdir(parents=True)
            target.symlink_to(source)


@cache
def imports_of(repository: Path, environment: str) -> frozenset[str]:
    """Everything that the commands can import: the modules of their closure and each dotted name in those."""
    scripts = repository / "scripts"
    closure = {path for file in CODE[environment] for path in import_closure(file)}
    names = {".".join(path.relative_to(scripts).with_suffix("").parts).removesuffix(".__init__") for path in closure}
    names = names.union(*(imported_modules(path, scripts) for path in closure))
    return frozenset(name for name in names if name.partition(".")[0] not in sys.stdlib_module_names)


@pytest.fixture(scope="module")
def fresh(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], FreshEnvironment]:
    """A function that assembles an environment on first use."""
    made: dict[str, FreshEnvironment] = {}

    def make(environment: str) -> FreshEnvironment:
        if environment not in made:
            packages = [requirement.name for requirement in wanted_here(repository, environment)]
            made[environment] = assemble(tmp_path_factory.mktemp("fresh") / environment, packages)
        return made[environment]

    return make


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_the_fresh_environment_holds_exactly_the_pinned_versions(repository: Path, fresh, environment: str) -> None:
    found = fresh(environment).packages()
    wanted = {canonical_name(requirement.name): requirement for requirement in wanted_here(repository, environment)}
    assert found.keys() == wanted.keys()
    assert {name: version for name, version in found.items() if not wanted[name].specifier.contains(version)} == {}


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_whatever_the_scripts_may_import_is_there(repository: Path, fresh, environment: str) -> None:
    names = imports_of(repository, environment)
    assert fresh(environment).import_failures(repository / "scripts", names) == {}


@pytest.mark.parametrize(("environment", "function"), [(stage.environment, name) for name, stage in STAGES.items()])
def test_the_command_answers_in_the_environment_of_its_rules(
    repository: Path, fresh, environment: str, function: str
) -> None:
    outcome = fresh(environment).run(repository / "scripts" / "run.py", function)
    assert outcome.returncode == 0, outcome.stderr
    assert f"usage: run.py {function}" in outcome.stdout


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_no_package_is_missing_or_surplus_by_what_the_packages_themselves_declare(
    repository: Path, environment: str
) -> None:
    tops = {name.partition(".")[0] for name in imports_of(repository, environment)}
    imported = {canonical_name(package.name) for package in distributions() if tops & top_level_names(package.name)}
    wanted = {canonical_name(requirement.name) for requirement in wanted_here(repository, environment)}
    needed = with_dependencies(imported)
    assert needed - wanted == set(), "missing: run `make envs`"
    assert wanted - needed == set(), "surplus: run `make envs`"


def top_level_names(package: str) -> set[str]:
    """The names that a package can be imported by."""
    files = [file for file in recorded_files(package) if file.endswith((".py", ".so"))]
    return {file.partition("/")[0].partition(".")[0] for file in files}


def with_dependencies(names: Iterable[str]) -> set[str]:
    """The packages and all that they need on this machine, by canonical name, with the extras that are asked for."""
    waiting = [(name, "") for name in names]
    reached: set[tuple[str, str]] = set()
    while waiting:
        name, extra = entry = waiting.pop()
        if entry in reached:
            continue
        reached.add(entry)
        for line in distribution(name).requires or []:
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                waiting += [(canonical_name(requirement.name), item) for item in ("", *requirement.extras)]
    return {name for name, _ in reached}


def test_a_package_left_out_is_noticed_and_nothing_comes_from_elsewhere(repository: Path, tmp_path: Path) -> None:
    wanted = [requirement.name for requirement in wanted_here(repository, "analysis")]
    made = assemble(tmp_path / "analysis", [name for name in wanted if name != "kiwisolver"])
    failures = made.import_failures(repository / "scripts", ["matplotlib.pyplot", "numpy.linalg", "pytest"])
    assert failures.keys() == {"matplotlib.pyplot", "pytest"}
    assert failures["matplotlib.pyplot"] == "ModuleNotFoundError: No module named 'kiwisolver'"
    assert made.run("scripts/run.py", "draw_figure").returncode != 0


def pip(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the pip of this environment, which can install into another one."""
    return subprocess.run([sys.executable, "-m", "pip", *arguments], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def indexed_pin(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A pin without hash that pip can fetch; the test is skipped where it can fetch none."""
    pin = pip_requirements(repository, "corpora")[-1].partition(" --hash=")[0]
    outcome = pip("download", "--no-deps", "--retries", "0", "--dest", tmp_path_factory.mktemp("downloads"), pin)
    if outcome.returncode != 0:
        pytest.skip(f"needs a package index: {outcome.stderr.strip().splitlines()[-1]}")
    return pin


@pytest.mark.usefixtures("indexed_pin")
def test_pip_installs_an_environment_from_its_pins_and_hashes_alone(repository: Path, tmp_path: Path) -> None:
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("\n".join(pip_requirements(repository, "corpora")) + "\n")
    made = assemble(tmp_path / "corpora", packages=[])
    # As conda does for a `pip:` section. Hashes in it make pip ask for a hash of whatever it would install.
    into = ("--python", made.python)
    installation = pip(*into, "install", "--no-compile", "-U", "-r", requirements, "--exists-action=b")
    assert installation.returncode == 0, installation.stderr
    assert pip(*into, "check").returncode == 0
    wanted = {canonical_name(requirement.name) for requirement in wanted_here(repository, "corpora")}
    assert made.packages().keys() == wanted
    assert made.import_failures(repository / "scripts", imports_of(repository, "corpora")) == {}


def test_pip_refuses_a_file_whose_hash_is_another(indexed_pin: str, tmp_path: Path) -> None:
    requirements = tmp_path / "requirements.txt"
    requirements.write_text(f"{indexed_pin} --hash=sha256:{'0' * 64}\n")
    outcome = pip("download", "--no-deps", "--dest", tmp_path, "-r", requirements)
    assert outcome.returncode != 0
    assert "DO NOT MATCH THE HASHES" in outcome.stderr
