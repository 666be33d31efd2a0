"""The ledger of stage code: a reminder to raise a stage's version when its code changes what it makes.

For every stage and figure the ledger keeps its declared version and a digest of the code that it may run, without
comments and docstrings. A test compares it with the checkout. After an edit somebody decides: either the stage now
makes something else, then its version is raised (in `hatchery/stages/`, or in the figure's file); or it does
not. In both cases `make stage-ledger` records the new state.
"""

import ast
import json
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from hatchery.analysis.analyses.names import analysis_names
from hatchery.analysis.analyses.registry import analysis_called
from hatchery.analysis.figures.registry import declared_figures
from hatchery.environments.imports import import_closure
from hatchery.stages.registry import own_commands
from hatchery.storage.atomic import write_json
from hatchery.storage.checksums import digest

TEMPLATES = "templates"
_NAMED = re.compile(r'"([\w.]+\.(?:j2|css))"')
LEDGER = Path("scripts/hatchery/environments/stage_code.json")


def current_ledger(repository: Path) -> dict[str, dict[str, Any]]:
    """Version and code digest of every stage in the checkout, and of figures and analyses, which have their own."""
    scripts = repository / "scripts"
    figures = {name: figure.version for name, figure in declared_figures().items()}
    analyses = {name: analysis_called(name).version for name in analysis_names()}
    entries = {}
    for command, folder, versions in (("draw_figure", "figures", figures), ("analyse", "analyses", analyses)):
        for name, version in versions.items():
            files = import_closure(scripts / f"hatchery/analysis/{folder}/{name}.py", scripts)
            entries[command, name] = (version, files)
    for command, stage in own_commands().items():
        # What a figure or an analysis runs is told of that one.
        told = {path for (of, _), (_, files) in entries.items() if of == command for path in files}
        files = [path for path in import_closure(scripts / f"{command}.py") if path not in told]
        entries[command, ""] = (stage.version, files)
    ledger = {
        f"{command} {name}".strip(): {"version": version, "code": code_digest(files, scripts)}
        for (command, name), (version, files) in entries.items()
    }
    return dict(sorted(ledger.items()))


def read_ledger(repository: Path) -> dict[str, dict[str, Any]]:
    """The ledger as it was recorded."""
    return dict(json.loads((repository / LEDGER).read_text(encoding="utf-8")))


def record_ledger(repository: Path) -> None:
    """Record the checkout's state."""
    write_json(repository / LEDGER, current_ledger(repository))


def code_digest(files: Iterable[Path], root: Path) -> str:
    """Digest of the code in files below `root`, and of the templates that it names.

    Comments, docstrings and layout of code do not count.
    """
    modules = list(files)
    code = {str(path.relative_to(root)): _bare(path.read_text(encoding="utf-8")) for path in modules}
    texts = {path.name: path.read_text(encoding="utf-8") for path in templates_of(modules)}
    return digest({**code, **texts})[:16]


def templates_of(modules: Iterable[Path]) -> list[Path]:
    """The templates that the modules name, and those that these take in: files of `rendering/templates/`."""
    folders = {path.with_name(TEMPLATES) for path in modules if path.with_name(TEMPLATES).is_dir()}
    there = {path.name: path for folder in folders for path in folder.iterdir()}
    found: dict[str, Path] = {}
    waiting = list(modules)
    while waiting:
        text = waiting.pop().read_text(encoding="utf-8")
        for name in _NAMED.findall(text):
            if name in there and name not in found:
                found[name] = there[name]
                waiting.append(there[name])
    return [found[name] for name in sorted(found)]


@cache
def _bare(text: str) -> str:
    """Code without comments, docstrings and layout; kept, because many stages run the same modules."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                del node.body[0]
    return ast.dump(tree)
