"""Merge a module and the parts of this library that it needs into one self-contained Python file.

The exported code is the training code: definitions are copied verbatim from their modules, in the order of the imports,
so exported models run the same code as training. Definitions that the root module does not use, directly or indirectly,
are omitted. The merged file depends only on the source files, and does not import Hatchery.
"""

import ast
import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hatchery.errors import ModelError

LIBRARY = "hatchery"
SOURCES = Path(__file__).resolve().parents[2]
LINE_LENGTH = 120
IMPORTS = ast.Import | ast.ImportFrom

Definition = tuple[str, str]
"""Name of a module, and a name that the module defines."""


@dataclass
class Statement:
    """A top-level statement of a module: its lines, the comments above it, and the names that the statement defines and
    reads.
    """

    lines: list[str]
    defines: frozenset[str]
    reads: frozenset[str]
    is_block: bool
    """True for a class or a function, which two empty lines precede and follow."""
    follows_closely: bool
    """True if no empty line separates the statement and its comment from the previous statement."""
    imports_at: int | None
    """Line of an import inside the statement; None if there is no import."""


@dataclass
class Module:
    """A module of this library, divided into statements. `external` maps names imported from other packages to their
    origins, and `internal` maps names imported from this library.
    """

    name: str
    docstring: str
    statements: list[Statement] = field(default_factory=list)
    external: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    """Origin by imported name: the module, and the name in this module. The name in the module is None for `import
    module`.
    """
    internal: dict[str, Definition] = field(default_factory=dict)


def bundle(root: str, sources: Path = SOURCES, text: str | None = None) -> str:
    """Return the text of one file that contains the module `root` (such as `hatchery.export.modeling_ltg_bert`) and all
    code of the library that it needs.

    `sources` is the folder of the library. `text` is the source code of the root module if the module has no file.
    Raises ModelError for imports that cannot be merged, for modules that import each other, for statements outside
    functions that are neither definitions nor assignments, and for different objects with the same name.
    """
    modules = _modules(root, sources, text)
    kept = _reachable(root, modules)
    included = [name for name in modules if name == root or any(statement for statement in kept[name])]
    _check_names(included, modules, kept)
    head = _docstring(modules[root].docstring, included[:-1])
    imports = _imports((modules[name], kept[name]) for name in included)
    sections = [f"{_banner(modules[name], is_root=name == root)}\n\n\n{_text(kept[name])}" for name in included]
    return "\n\n".join(part for part in (head, imports, "\n\n\n".join(sections)) if part) + "\n"


def _modules(root: str, sources: Path, text: str | None) -> dict[str, Module]:
    """Return `root` and all modules that `root` imports, directly or indirectly. Each module follows the modules that
    it imports, so `root` is last.
    """
    ordered: dict[str, Module] = {}
    visiting: list[str] = []

    def visit(name: str) -> None:
        if name in ordered:
            return
        if name in visiting:
            raise ModelError(f"{name}: imports itself through {', '.join(visiting[visiting.index(name) + 1 :])}")
        visiting.append(name)
        module = _parse(name, sources, text if name == root else None)
        for needed, _ in module.internal.values():
            visit(needed)
        visiting.pop()
        ordered[name] = module

    visit(root)
    return ordered


def _parse(name: str, sources: Path, text: str | None = None) -> Module:
    path = sources.joinpath(*name.split(".")).with_suffix(".py")
    text = path.read_text(encoding="utf-8") if text is None else text
    lines, tree = text.splitlines(), ast.parse(text, filename=str(path))
    module = Module(name, ast.get_docstring(tree) or "")
    end_before = 0
    for index, node in enumerate(tree.body):
        start = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))]) - 1
        end = node.end_lineno or node.lineno
        if isinstance(node, IMPORTS):
            _bind(module, node)
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            pass  # Omit imports that only type checkers need: annotations quote the imported names.
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            # A string after an assignment documents the assigned name. The first string is the module's docstring,
            # which is stored separately.
            if index > 0:
                module.statements[-1].lines.extend(lines[end_before:end])
        else:
            while start > end_before and lines[start - 1].startswith("#"):
                start -= 1
            module.statements.append(
                Statement(
                    lines=lines[start:end],
                    defines=frozenset(_defined(node)),
                    reads=frozenset(n.id for n in ast.walk(node) if isinstance(n, ast.Name)),
                    is_block=isinstance(node, ast.ClassDef | ast.FunctionDef),
                    follows_closely=start == end_before,
                    imports_at=next((n.lineno for n in ast.walk(node) if isinstance(n, IMPORTS)), None),
                )
            )
        end_before = end
    return module


def _defined(node: ast.stmt) -> Iterable[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [n.id for target in node.targets for n in ast.walk(target) if isinstance(n, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    raise ModelError(f"line {node.lineno}: a {type(node).__name__} outside functions cannot be exported")


def _bind(module: Module, node: ast.Import | ast.ImportFrom) -> None:
    """Store the names that an import defines, with their origins, in `module.external` or `module.internal`."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name.partition(".")[0] == LIBRARY or (alias.asname is None and "." in alias.name):
                raise ModelError(
                    f"{module.name}: `import {alias.name}` cannot be merged into the exported file; expected "
                    f"`from {alias.name} import NAME`"
                )
            module.external[alias.asname or alias.name] = (alias.name, None)
        return
    source = node.module or ""
    if node.level or source == "__future__":
        raise ModelError(
            f"{module.name}: `from {'.' * node.level}{source} import` cannot be merged into the exported file; "
            "omit relative imports and imports from __future__"
        )
    for alias in node.names:
        if source.partition(".")[0] != LIBRARY:
            module.external[alias.asname or alias.name] = (source, alias.name)
        elif alias.asname is not None or alias.name == "*":
            raise ModelError(
                f"{module.name}: the import of `{alias.name}` from {source} cannot be merged into the exported file; "
                "omit `as` and `*`"
            )
        else:
            module.internal[alias.name] = (source, alias.name)


def _reachable(root: str, modules: dict[str, Module]) -> dict[str, list[Statement]]:
    """Return, by module, the statements that the root module needs, directly or indirectly. All statements of the root
    module are included.
    """
    providers = {
        (name, defined): statement
        for name, module in modules.items()
        for statement in module.statements
        for defined in statement.defines
    }
    needed: set[int] = set()
    waiting = [(root, statement) for statement in modules[root].statements]
    while waiting:
        name, statement = waiting.pop()
        if id(statement) in needed:
            continue
        needed.add(id(statement))
        if statement.imports_at is not None:
            raise ModelError(
                f"{name}, line {statement.imports_at}: an import inside a block cannot be merged into the exported file"
            )
        for read in statement.reads:
            where = modules[name].internal.get(read, (name, read))
            if where in providers:
                waiting.append((where[0], providers[where]))
            elif read in modules[name].internal:
                raise ModelError(f"{name}: imports the name {read} from {where[0]}, which does not define this name")
    return {name: [s for s in module.statements if id(s) in needed] for name, module in modules.items()}


def _check_names(included: Sequence[str], modules: dict[str, Module], kept: dict[str, list[Statement]]) -> None:
    """Raise ModelError if a name would refer to two different objects in the merged file."""
    owners: dict[str, str] = {}
    for name in included:
        reads = frozenset().union(*(statement.reads for statement in kept[name]))
        external = modules[name].external
        meanings = {read: ".".join(filter(None, external[read])) for read in sorted(reads & external.keys())}
        meanings |= {defined: f"{name}.{defined}" for statement in kept[name] for defined in statement.defines}
        for meant, meaning in meanings.items():
            if owners.setdefault(meant, meaning) != meaning:
                raise ModelError(
                    f"{meant}: the name means both {owners[meant]} and {meaning}; rename one of the two objects"
                )


def _docstring(root: str, included: Sequence[str]) -> str:
    modules = "\n".join(f"    {name}" for name in included)
    return f'"""{root}\n\nMade by Hatchery from the modules that trained the model:\n\n{modules}\n"""'


def _banner(module: Module, is_root: bool) -> str:
    """Return a comment that contains the name and the docstring of a module.

    The docstring of the root module is omitted, because the merged file begins with this docstring.
    """
    head = f"# {'-' * 4} {module.name} ".ljust(LINE_LENGTH, "-")
    if is_root:
        return head
    paragraphs = [textwrap.wrap(part, LINE_LENGTH - 2) for part in module.docstring.split("\n\n")]
    lines = [line for paragraph in paragraphs for line in ["", *paragraph]]
    return "\n".join([head, *(f"# {line}".rstrip() for line in lines[1:])])


def _text(statements: Sequence[Statement]) -> str:
    pieces: list[str] = []
    for index, statement in enumerate(statements):
        if index:
            apart = statement.is_block or statements[index - 1].is_block
            pieces.append("\n\n\n" if apart else "\n" if statement.follows_closely else "\n\n")
        pieces.append("\n".join(statement.lines))
    return "".join(pieces)


def _imports(parts: Iterable[tuple[Module, Sequence[Statement]]]) -> str:
    """Return the imports from other packages that the copied statements need, without duplicates; imports from the
    standard library come first.
    """
    plain: set[tuple[str, str]] = set()
    named: dict[str, set[str]] = {}
    for module, statements in parts:
        reads = frozenset().union(*(statement.reads for statement in statements))
        for bound in sorted(reads & module.external.keys()):
            source, name = module.external[bound]
            if name is None:
                plain.add((source, bound))
            else:
                named.setdefault(source, set()).add(name if name == bound else f"{name} as {bound}")
    groups: list[list[str]] = [[], []]
    for source, bound in sorted(plain):
        line = f"import {source}" if source == bound else f"import {source} as {bound}"
        groups[source.partition(".")[0] not in sys.stdlib_module_names].append(line)
    for source, names in sorted(named.items()):
        groups[source.partition(".")[0] not in sys.stdlib_module_names].append(_from_import(source, names))
    return "\n\n".join("\n".join(lines) for lines in groups if lines)


def _from_import(source: str, names: Iterable[str]) -> str:
    # Sort names as the code formatter does: constants, then classes, then functions.
    ordered = sorted(names, key=lambda name: (0 if name.isupper() else 1 if name[:1].isupper() else 2, name.lower()))
    line = f"from {source} import {', '.join(ordered)}"
    if len(line) <= LINE_LENGTH:
        return line
    return "\n".join([f"from {source} import (", *(f"    {name}," for name in ordered), ")"])
