"""The drawings in docs/architecture.md are true, and no two packages of the library need each other."""

import re
import subprocess
import sys
from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from hatchery.environments.imports import package_graph
from hatchery.workflow.registry import STAGES

REPOSITORY = Path(__file__).parents[1]
SCRIPTS = REPOSITORY / "scripts"
PAGE = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")
STAGES_DRAWN, PACKAGES_DRAWN = (
    set(re.findall(r"(\w+) --> (\w+)", drawing)) for drawing in re.findall(r"```mermaid\n(.*?)```", PAGE, re.DOTALL)
)
# Below all others; arrows to them are left out.
GROUND = {"artifacts", "settings"}
# Together they have all stages that are drawn.
TARGETS = ("demo/index.html", "demo_suites/export/README.md", "strict_small_mini/index.html")

Arrows = set[tuple[str, str]]


def followed(arrows: Iterable[tuple[str, str]]) -> Arrows:
    """The arrows and all that follow from them."""
    whole = set(arrows)
    while more := {(a, d) for a, b in whole for c, d in whole if b == c} - whole:
        whole |= more
    return whole


def imported() -> Arrows:
    graph = package_graph(SCRIPTS)
    packages = {name for name in graph if (SCRIPTS / "hatchery" / name).is_dir()} - GROUND
    return {(name, low) for name in packages for low in graph[name] & packages}


def test_the_drawing_of_the_packages_has_the_imports_and_no_others() -> None:
    arrows = imported()
    assert PACKAGES_DRAWN - arrows == set(), "drawn, and nobody imports it so"
    assert arrows - followed(PACKAGES_DRAWN) == set(), "imported, and not drawn"


def test_every_package_and_every_stage_is_named() -> None:
    rows = set(re.findall(r"^\| `(\w+)` \| [a-zA-Z]", PAGE, re.MULTILINE))
    assert rows == {path.parent.name for path in SCRIPTS.glob("hatchery/*/__init__.py")}
    drawn = {name for arrow in STAGES_DRAWN for name in arrow}
    not_drawn = re.findall(r"`(\w+)`", PAGE.partition("Not drawn:")[2].partition("Snakemake")[0])
    # A link to a result is a rule, and no stage.
    assert drawn | set(not_drawn) == {*STAGES, "show_result"}


@pytest.mark.slow
def test_the_drawing_of_the_stages_is_what_snakemake_plans() -> None:
    command = [sys.executable, "-m", "snakemake", "--rulegraph", "mermaid-js", "--"]
    drawn = subprocess.run(
        [*command, *(f"results/{target}" for target in TARGETS)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    names = {key: name.removesuffix("_tasks") for key, name in re.findall(r"(id\d+)\[(\w+)\]", drawn)}
    planned = {(names[upper], names[lower]) for upper, lower in re.findall(r"(id\d+) --> (id\d+)", drawn)}
    assert followed(planned) == followed(STAGES_DRAWN)


def test_no_two_packages_need_each_other() -> None:
    try:
        TopologicalSorter(package_graph(SCRIPTS)).prepare()
    except CycleError as error:
        pytest.fail(f"packages need each other: {' <- '.join(error.args[1])}")


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
