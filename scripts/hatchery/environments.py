"""The software environments: one hash-locked `.venv` that serves every rule, and one conda environment per rule group.

`requirements.lock` is uv's (`make lock`), in the form that pip reads: exact versions with the hashes of the files that
may be installed, and no address to get them from; `requirements-cpu.lock` names PyTorch's CPU-only build. From the lock
and from what the scripts import follows `envs/<environment>.yaml`, so the two ways to install Hatchery cannot drift
apart. `make env` is `scripts/install_environment.sh`.

Python comes from conda-forge and everything else from pip, because the lock's versions are pip's. An environment
pins what its commands import and what those packages need, with the lock's hashes, so that two installations a year
apart are the same. What a command imports is found by following `import` statements through `scripts/hatchery` and
`scripts/demo`, also those inside functions. That may be more than one run needs, never less: a module that loads its
neighbours by name counts as importing them all.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

from hatchery.artifacts.atomic import write_text
from hatchery.errors import ConfigError
from hatchery.workflow.registry import code_by_environment


def conda_environments(repository: Path) -> dict[str, str]:
    """The text of every conda environment by name, from the locks and the scripts as they are now.

    What PyTorch's CUDA build needs is part of it: given hashes, pip refuses a requirement that nobody pinned.
    """
    lock = read_locks(repository)
    texts = {}
    for environment, files in code_by_environment().items():
        texts[environment] = format_environment(files, lock)
    return texts


def write_conda_environments(repository: Path) -> None:
    """Write `envs/<environment>.yaml` for every environment."""
    for environment, text in conda_environments(repository).items():
        write_text(repository / "envs" / f"{environment}.yaml", text)


MAIN_LOCK, CPU_LOCK = "requirements.lock", "requirements-cpu.lock"


@dataclass(frozen=True)
class LockedPackage:
    """One pinned package.

    `marker` says on which machines it is wanted (PEP 508, empty for all), `hashes` holds the SHA-256 of every file
    that may be installed, `needed_by` the packages that ask for it (`requirements.in` for a direct requirement).
    """

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]
    needed_by: tuple[str, ...]

    @property
    def pin(self) -> str:
        """The requirement as pip reads it, without hashes."""
        return f"{self.name}=={self.version}" + (f" ; {self.marker}" if self.marker else "")

    @property
    def hash_options(self) -> list[str]:
        """What follows the pin, so that pip installs only a file that the lock knows; sorted."""
        return [f"--hash=sha256:{digest}" for digest in sorted(self.hashes)]


def canonical_name(name: str) -> str:
    """The one spelling of a package's name (PEP 503): `PyYAML` and `pyyaml` are the same package."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_lock(path: Path) -> dict[str, LockedPackage]:
    """The packages of a lock file by name."""
    packages = {}
    for entry in re.split(r"^(?=[a-z0-9])", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        pin, _, marker = (part.strip(" \\") for part in entry.splitlines()[0].partition(";"))
        name, _, version = pin.partition("==")
        reasons = "".join(re.findall("# via (.*)", entry)).replace("-r requirements.in", "requirements.in").split(", ")
        hashes = re.findall(r"--hash=sha256:(\w+)", entry)
        packages[name] = LockedPackage(name, version, marker, tuple(hashes), tuple(reasons))
    return packages


def read_locks(repository: Path) -> dict[str, LockedPackage]:
    """Everything that Hatchery needs, by name. Both builds of PyTorch fit: one version with different hashes."""
    lock = read_lock(repository / MAIN_LOCK)
    (cpu,) = read_lock(repository / CPU_LOCK).values()
    return lock | {cpu.name: replace(lock[cpu.name], hashes=lock[cpu.name].hashes + cpu.hashes)}


# The versions that the whole workflow is tested with; pip is the one that comes with this Python.
CONDA_PACKAGES = ("python=3.11.7", "pip=23.2.1")


def imported_packages(commands: Iterable[Path], lock: Mapping[str, LockedPackage]) -> list[str]:
    """The locked packages (canonical names, sorted) that the commands import.

    Raises ConfigError for an import that no locked package provides, naming the module that holds it. Must run where
    the locked packages are installed, since only their metadata says which package provides which import.
    """
    providers = packages_distributions()
    packages: set[str] = set()
    for command in commands:
        for top, importer in third_party_imports(command).items():
            locked = {canonical_name(name) for name in providers.get(top, [])} & lock.keys()
            if not locked:
                raise ConfigError(f"{importer}: imports {top}, which no package in requirements.lock provides")
            packages |= locked
    return sorted(packages)


def needed_packages(packages: Iterable[str], lock: Mapping[str, LockedPackage]) -> list[str]:
    """What `packages` need in turn, without `packages` themselves, sorted."""
    chosen = set(packages)
    reached = set(chosen)
    while True:
        more = {name for name, package in lock.items() if reached & set(package.needed_by)} - reached
        if not more:
            return sorted(reached - chosen)
        reached |= more


def format_environment(commands: Iterable[Path], lock: Mapping[str, LockedPackage]) -> str:
    """The text of `envs/<environment>.yaml` for the environment that serves `commands`.

    Snakemake hashes these bytes, comments included: another text rebuilds the environment and reruns its rules.
    """
    imported = imported_packages(commands, lock)
    needed = needed_packages(imported, lock)
    lines = [
        "# Made by `make envs` from requirements.lock; do not edit.",
        "channels:",
        "  - conda-forge",
        "  - nodefaults",
    ]
    lines += ["dependencies:", *(f"  - {package}" for package in CONDA_PACKAGES)]
    if imported:
        lines += ["  - pip:", *_requirements(imported, lock)]
    if needed:
        lines += ["      # needed by the packages above", *_requirements(needed, lock)]
    return "\n".join(lines) + "\n"


def _requirements(names: Iterable[str], lock: Mapping[str, LockedPackage]) -> Iterator[str]:
    """The lines of one requirement each; YAML folds them into the single line that pip is given."""
    for name in names:
        yield "      - >-"
        yield from (f"        {part}" for part in (lock[name].pin, *lock[name].hash_options))


LIBRARY = "hatchery"
OWN = {LIBRARY, "demo"}
LOADS_NEIGHBOURS = {"import_module", "iter_modules", "walk_packages"}
# What PyTorch's builds for GPUs bring with them, and no other build.
WITH_PYTORCH = {"triton"}


def third_party_imports(command: Path) -> dict[str, str]:
    """The top-level names outside the standard library and Hatchery that `command`, a file, may import.

    Each name maps to one module that imports it, relative to the folder of the packages, for messages.
    """
    root = root_of(command)
    found: dict[str, str] = {}
    for path in import_closure(command):
        for module in sorted(imported_modules(path, root)):
            top = module.partition(".")[0]
            if top not in {*OWN, *WITH_PYTORCH, *sys.stdlib_module_names}:
                found.setdefault(top, str(path.relative_to(root)))
    return dict(sorted(found.items()))


def root_of(file: Path) -> Path:
    """The folder from which a module is imported: the first above it that is no package."""
    return next(folder for folder in file.parents if not (folder / "__init__.py").is_file())


def import_closure(command: Path, root: Path | None = None) -> list[Path]:
    """The files of Hatchery that `command` may run, itself first; `root` is the folder of the packages."""
    root = root or root_of(command)
    seen: dict[Path, None] = {}
    waiting = [command]
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen[path] = None
        for module in sorted(imported_modules(path, root)):
            if module.partition(".")[0] in OWN:
                waiting.extend(_module_files(module, root))
    return list(seen)


def imported_modules(path: Path, root: Path) -> set[str]:
    """The dotted names that the module at `path` imports; for `from a import b` both `a` and `a.b`.

    Imports for type checkers alone (`if TYPE_CHECKING:`) do not count.
    """
    modules, loads_neighbours = _imports(path.read_text(encoding="utf-8"), path.parent.relative_to(root).parts)
    if not loads_neighbours:
        return set(modules)
    return {*modules, *(".".join(item.relative_to(root).with_suffix("").parts) for item in path.parent.rglob("*.py"))}


@cache
def _imports(text: str, package: tuple[str, ...]) -> tuple[frozenset[str], bool]:
    """What the code of a module in `package` imports by name, and whether it loads its neighbours, too.

    Kept, because the closures of many commands hold the same modules.
    """
    modules: set[str] = set()
    loads_neighbours = False
    for node in _running_nodes(ast.parse(text)):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = [*package[: len(package) + 1 - node.level]] if node.level else []
            name = ".".join([*base, *([node.module] if node.module else [])])
            modules.update({name, *(f"{name}.{alias.name}" for alias in node.names)})
        elif isinstance(node, ast.Name | ast.Attribute) and _last_name(node) in LOADS_NEIGHBOURS:
            loads_neighbours = True
    return frozenset(modules), loads_neighbours


def _running_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    children: Iterable[ast.AST] = ast.iter_child_nodes(tree)
    if isinstance(tree, ast.If) and _last_name(tree.test) == "TYPE_CHECKING":
        children = tree.orelse
    for node in children:
        yield node
        yield from _running_nodes(node)


def _last_name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _module_files(module: str, root: Path) -> list[Path]:
    """The files that importing `module` runs: the module itself and the `__init__.py` of every package above it."""
    files = []
    parts = module.split(".")
    for depth in range(1, len(parts) + 1):
        base = root.joinpath(*parts[:depth])
        files += [path for path in (base / "__init__.py", base.with_suffix(".py")) if path.is_file()]
    return files
