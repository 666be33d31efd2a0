"""Mistakes in a copy of the shipped configuration, and what is told of them."""

from pathlib import Path

import pytest

from hatchery.errors import ConfigError
from hatchery.experiment.project import Project
from hatchery.settings.problems import Problems
from hatchery.workflow.plan_checks import collect_problems

DEMO = "experiments/demo.yaml"
MINI = "experiments/natural_bias_mini.yaml"

Mistake = tuple[str, str, str, str]
"""The file, what stands there, what somebody writes instead, and what is told."""


def edit(folder: Path, name: str, old: str, new: str) -> None:
    path = folder / name
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{name} no longer holds {old!r}: mend this test"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def load_everything(folder: Path) -> None:
    project, problems = Project(folder), Problems()
    kinds = ("corpus", "tokenizer", "model", "suite", "task", "experiment", "study")
    collect_problems(project, [(kind, name) for kind in kinds for name in project.names(kind)], problems)
    problems.raise_any()


def assert_told(mistake: Mistake, configuration: Path) -> None:
    """One line names the file, the key and what is allowed; nothing is told twice, or in the words of a program."""
    name, old, new, expected = mistake
    edit(configuration, name, old, new)

    with pytest.raises(ConfigError) as caught:
        load_everything(configuration)

    lines = str(caught.value).splitlines()
    matching = [line for line in lines if expected.replace("{configuration}", str(configuration)) in line]
    assert matching, f"expected {expected!r} in {lines}"
    assert all(line.startswith(str(configuration)) for line in lines), lines
    assert len(set(lines)) == len(lines), f"told twice: {lines}"
    said = str(caught.value).lower()
    assert not any(word in said for word in ("[a-z", "regex", "does not match", "non-unique", ": :", "\\s")), lines
