"""The first words of docstrings: the returned value or the action, and no indirect question."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

REPOSITORY = Path(__file__).parents[1]
LIBRARY = REPOSITORY / "scripts" / "hatchery"

# Packages whose docstrings follow the guide; those that are rewritten next are added here.
FINISHED = ("analysis", "artifacts", "experiment", "export", "provenance", "rendering", "views", "workflow")
# Modules outside of packages that do not follow the guide yet.
UNFINISHED = ("direct_evaluation.py", "direct_job.py", "direct_training.py", "public.py")

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


def _descriptions(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (text for key, text in value.items() if key == "description" and isinstance(text, str))
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _descriptions(item)


@pytest.fixture(scope="module")
def sentences_of_settings() -> frozenset[str]:
    """Return the sentences in docs/settings.md and the schemas, which are not part of this test."""
    schemas = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in (REPOSITORY / "workflow/schemas").iterdir()]
    return frozenset(" ".join(text.split()) for schema in schemas for text in _descriptions(schema))


@pytest.mark.parametrize("package", ["", *FINISHED])
def test_no_docstring_begins_with_an_indirect_question(package: str, sentences_of_settings: frozenset[str]) -> None:
    riddles = [
        f"{path.relative_to(LIBRARY)}:{line}: {text[:60]}"
        for path in _files(package)
        for line, text in _docstrings(ast.parse(path.read_text(encoding="utf-8")))
        if INDIRECT.match(text) and text not in sentences_of_settings
    ]
    assert not riddles, "begin with the returned value or a verb:\n" + "\n".join(riddles)


def test_the_check_finds_an_indirect_question_in_every_kind_of_docstring() -> None:
    source = '"""What it is."""\nX = 1\n"""Of nothing."""\nclass A:\n    """Whose."""\n    def f():\n        """Where it is."""\n'
    found = [line for line, text in _docstrings(ast.parse(source)) if INDIRECT.match(text)]
    assert sorted(found) == [1, 3, 5, 7]
    assert not INDIRECT.match("Official rows.") and not INDIRECT.match("Return what is there.")
