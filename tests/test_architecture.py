"""The drawings of docs/architecture.md show the code's imports and Snakemake's plans."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from hatchery.workflow.registry import STAGES
from tests.library_imports import imported_modules

REPOSITORY = Path(__file__).parents[1]
SCRIPTS = REPOSITORY / "scripts"
ARCHITECTURE = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")
STAGES_DRAWN, PACKAGES_DRAWN = (
    set(re.findall(r"(\w+) --> (\w+)", drawing))
    for drawing in re.findall(r"```mermaid\n(.*?)```", ARCHITECTURE, re.DOTALL)
)


# These packages are below all others; arrows to them are left out.
GROUND = {"artifacts", "settings"}


# The plans of these targets together have all stages that are drawn.
TARGETS = ("demo/index.html", "demo_suites/export/README.md", "strict_small_mini/index.html")
Arrows = set[tuple[str, str]]


def followed(arrows: Iterable[tuple[str, str]]) -> Arrows:
    """Return the transitive closure of the arrows."""
    whole = set(arrows)
    while more := {(a, d) for a, b in whole for c, d in whole if b == c} - whole:
        whole |= more
    return whole


def package_graph(root: Path) -> dict[str, set[str]]:
    """Return the imports between packages and single modules of the library; `root` is scripts/."""
    library = root / "hatchery"
    names = {path.relative_to(library).parts[0].removesuffix(".py") for path in library.rglob("*.py")} - {"__init__"}
    graph: dict[str, set[str]] = {name: set() for name in names}
    for path in library.rglob("*.py"):
        own = path.relative_to(library).parts[0].removesuffix(".py")
        for module in imported_modules(path):
            parts = module.split(".")
            if parts[0] == "hatchery" and len(parts) > 1 and parts[1] in names - {own}:
                graph.setdefault(own, set()).add(parts[1])
    return dict(sorted((name, needs) for name, needs in graph.items() if name != "__init__"))


def imported() -> Arrows:
    graph = package_graph(SCRIPTS)
    packages = {name for name in graph if (SCRIPTS / "hatchery" / name).is_dir()} - GROUND
    return {(name, low) for name in packages for low in graph[name] & packages}


def test_the_drawing_of_the_packages_has_the_imports_and_no_others() -> None:
    arrows = imported()
    assert PACKAGES_DRAWN - arrows == set(), "drawn, and nobody imports it so"
    assert arrows - followed(PACKAGES_DRAWN) == set(), "imported, and not drawn"


def test_every_package_and_every_stage_is_named() -> None:
    rows = set(re.findall(r"^\| `(\w+)` \| [a-zA-Z]", ARCHITECTURE, re.MULTILINE))
    assert rows == {path.parent.name for path in SCRIPTS.glob("hatchery/*/__init__.py")}
    drawn = {name for arrow in STAGES_DRAWN for name in arrow}
    not_drawn = re.findall(
        r"`(\w+)`", ARCHITECTURE.partition("The diagram omits these stages:")[2].partition("Snakemake")[0]
    )
    # The rule that links to results belongs to no stage.
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


def module_graph(root: Path) -> dict[str, set[str]]:
    """Return all imports between modules of the library, including those in functions and for type checkers."""
    modules = {".".join(path.relative_to(root).with_suffix("").parts): path for path in root.glob("hatchery/**/*.py")}
    modules = {name.removesuffix(".__init__"): path for name, path in modules.items()}
    graph: dict[str, set[str]] = {name: set() for name in modules}
    for name, path in modules.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                graph[name] |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                graph[name] |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
    # Leave out the import of a package's own file that comes with the import of a module in the package.
    return {name: {low for low in lows if low in modules} - {name} for name, lows in graph.items()}


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Return the groups of modules in which each module leads to each other module."""
    below: dict[str, set[str]] = {}
    for name in graph:
        waiting, found = [name], set[str]()
        while waiting:
            new = graph[waiting.pop()] - found
            found |= new
            waiting += new
        below[name] = found
    groups = {frozenset(low for low in below[name] if name in below[low]) for name in graph if name in below[name]}
    return sorted(map(set, groups), key=lambda group: (len(group), min(group)))


def test_four_groups_of_modules_need_each_other() -> None:
    table, family, translation, experiment = circles(module_graph(SCRIPTS))
    assert table == {"hatchery.rendering.table", "hatchery.rendering.templates"}
    assert family == {f"hatchery.modeling.{name}" for name in ("families", "family", "language_model")}
    assert translation == {
        "hatchery.objectives.translation_pairs",
        "hatchery.training.development_translations",
        "hatchery.training.objectives.translation",
    }
    # These modules are parts of `Project` and name `Project` in annotations.
    assert {name.rpartition(".")[0] for name in experiment} == {"hatchery.experiment"} and len(experiment) <= 19


def test_a_circle_through_annotations_and_functions_is_found(tmp_path: Path) -> None:
    for name, text in {
        "a.py": "def f():\n    from hatchery import b\n",
        "b.py": "from hatchery.c import X\n",
        "c.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import hatchery.a\n",
        "d.py": "import hatchery.a\n",
    }.items():
        (tmp_path / "hatchery").mkdir(exist_ok=True)
        (tmp_path / "hatchery" / name).write_text(text, encoding="utf-8")
    assert circles(module_graph(tmp_path)) == [{"hatchery.a", "hatchery.b", "hatchery.c"}]
