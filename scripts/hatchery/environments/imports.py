"""What a command imports, found by reading the sources: its own modules, and the packages of others.

The closure follows `import` statements through `scripts/hatchery` and `scripts/demo`, also those inside functions. It
may hold more than one run needs, never less: a module that loads its neighbours by name counts as importing them all.
"""

import ast
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

LIBRARY = "hatchery"
OWN = {LIBRARY, "demo"}
LOADS_NEIGHBOURS = {"import_module", "iter_modules", "walk_packages"}


def third_party_imports(command: Path) -> dict[str, str]:
    """The top-level names outside the standard library and Hatchery that `command`, a file, may import.

    Each name maps to one module that imports it, relative to the folder of the packages, for messages.
    """
    root = root_of(command)
    found: dict[str, str] = {}
    for path in import_closure(command):
        for module in sorted(imported_modules(path, root)):
            top = module.partition(".")[0]
            if top not in OWN and top not in sys.stdlib_module_names:
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


def package_graph(root: Path) -> dict[str, set[str]]:
    """What every package of the library (or module beside the packages) imports of the others; `root` is scripts/."""
    library = root / LIBRARY
    names = {path.relative_to(library).parts[0].removesuffix(".py") for path in library.rglob("*.py")} - {"__init__"}
    graph: dict[str, set[str]] = {name: set() for name in names}
    for path in library.rglob("*.py"):
        own = path.relative_to(library).parts[0].removesuffix(".py")
        for module in imported_modules(path, root):
            parts = module.split(".")
            if parts[0] == LIBRARY and len(parts) > 1 and parts[1] in names - {own}:
                graph.setdefault(own, set()).add(parts[1])
    return dict(sorted((name, needs) for name, needs in graph.items() if name != "__init__"))
