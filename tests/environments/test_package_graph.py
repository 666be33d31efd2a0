"""The house has storeys: no package of the library needs one that needs it."""

from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from hatchery.environments.imports import package_graph

SCRIPTS = Path(__file__).parents[2] / "scripts"


def test_no_two_packages_need_each_other() -> None:
    graph = package_graph(SCRIPTS)
    assert {"analysis", "experiment", "provenance", "tokenization", "rendering"} <= graph.keys()
    try:
        order = tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"packages need each other: {' <- '.join(error.args[1])}")
    upwards = ["artifacts", "raw", "rendering", "training", "evaluation", "analysis", "views", "workflow"]
    assert sorted(upwards, key=order.index) == upwards


def test_an_import_inside_a_function_counts_and_one_for_type_checkers_does_not(tmp_path: Path) -> None:
    package = tmp_path / "hatchery"
    for name, text in {
        "a/one.py": "def f():\n    from hatchery.b import two\n    return two\n",
        "b/two.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from hatchery.a.one import f\n",
        "b/three.py": "import hatchery.b.two\nimport hatchery.errors\n",
        "errors.py": "",
    }.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert package_graph(tmp_path) == {"a": {"b"}, "b": {"errors"}, "errors": set()}
