"""Imports in files of the library, read from their text."""

import ast
from collections.abc import Iterator
from pathlib import Path


def imported_modules(path: Path) -> set[str]:
    """Return the dotted names that a module imports, also in functions; for `from a import b` both `a` and `a.b`.

    Imports for type checkers alone (`if TYPE_CHECKING:`) do not count.
    """
    modules: set[str] = set()
    for node in _running_nodes(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module and not node.level, f"{path}: imports are absolute"
            modules.update({node.module, *(f"{node.module}.{alias.name}" for alias in node.names)})
    return modules


def _running_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    is_for_types = isinstance(tree, ast.If) and isinstance(tree.test, ast.Name) and tree.test.id == "TYPE_CHECKING"
    for node in tree.orelse if is_for_types else ast.iter_child_nodes(tree):
        yield node
        yield from _running_nodes(node)
