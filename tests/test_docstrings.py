"""The first words of docstrings: the returned value or the action, and no indirect question."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
LIBRARY = REPOSITORY / "scripts" / "hatchery"

# Packages whose docstrings follow the guide; add a package here after its docstrings are rewritten.
FINISHED = (
    "analysis",
    "artifacts",
    "commands",
    "corpora",
    "evaluation",
    "experiment",
    "export",
    "modeling",
    "objectives",
    "provenance",
    "raw",
    "rendering",
    "settings",
    "tokenization",
    "training",
    "translation",
    "views",
    "vocabulary",
    "workflow",
)
# Modules outside of packages that do not follow the guide yet.
UNFINISHED = ()

INDIRECT = re.compile(r"(?:What|Whose|Of|The same|Whether|How|Which|Where)\b")


def _files(package: str) -> list[Path]:
    if package:
        return sorted((LIBRARY / package).rglob("*.py"))
    return [path for path in sorted(LIBRARY.glob("*.py")) if path.name not in UNFINISHED]


def _docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and text of all docstrings, including those of constants and fields."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, " ".join(node.value.value.split())


@pytest.fixture(scope="module")
def settings_page() -> str:
    """Return docs/settings.md, whose sentences are docstrings of settings classes and not part of this test."""
    return " ".join((REPOSITORY / "docs/settings.md").read_text(encoding="utf-8").replace("\\", "").split())


@pytest.mark.parametrize("package", ["", *FINISHED])
def test_no_docstring_begins_with_an_indirect_question(package: str, settings_page: str) -> None:
    riddles = [
        f"{path.relative_to(LIBRARY)}:{line}: {text[:60]}"
        for path in _files(package)
        for line, text in _docstrings(ast.parse(path.read_text(encoding="utf-8")))
        if INDIRECT.match(text) and text not in settings_page
    ]
    assert not riddles, "begin with the returned value or a verb:\n" + "\n".join(riddles)


def test_the_check_finds_an_indirect_question_in_every_kind_of_docstring() -> None:
    source = (
        '"""What it is."""\nX = 1\n"""Of nothing."""\nclass A:\n    """Whose."""\n    def f():\n        """Where."""\n'
    )
    found = [line for line, text in _docstrings(ast.parse(source)) if INDIRECT.match(text)]
    assert sorted(found) == [1, 3, 5, 7]
    assert not INDIRECT.match("Official rows.") and not INDIRECT.match("Return what is there.")
