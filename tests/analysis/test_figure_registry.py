"""A figure is one file, whose declaration is read without running it; an experiment has those it has data for."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from hatchery.analysis.analyses.analysis import analysis_names
from hatchery.errors import ConfigError
from hatchery.experiment.project import Project
from hatchery.rendering.figures import declaration_in
from hatchery.views.figures.drawable import drawable
from hatchery.views.figures.registry import (
    NEEDS,
    declared_figures,
    figures_drawn_from,
    require_figure,
)


@pytest.mark.parametrize("name", declared_figures())
def test_what_is_read_of_a_figure_is_what_its_file_says(name: str) -> None:
    module = import_module(f"hatchery.views.figures.{name}")
    declared = declared_figures()[name]
    assert declared == module.FIGURE
    assert set(declared.needs) <= {*NEEDS, *analysis_names()} and callable(module.draw)


def test_planning_does_not_load_what_draws(repository: Path) -> None:
    code = (
        "import sys; import hatchery.workflow.open_workflow; from hatchery.views.figures import registry; "
        "assert registry.declared_figures(); print({'matplotlib', 'numpy'} & set(sys.modules))"
    )
    said = subprocess.run([sys.executable, "-c", code], cwd=repository / "scripts", capture_output=True, text=True)
    assert (said.stdout, said.stderr) == ("set()\n", "")


def test_a_declaration_of_anything_but_literals_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text('TITLE = "A"\nFIGURE = Declaration(\n    title=TITLE,\n    caption="b",\n)\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"a\.py: FIGURE: title: expected a literal"):
        declaration_in(path)
    path.write_text("def draw():\n    pass\n", encoding="utf-8")
    assert declaration_in(path) is None


def test_figures_stand_in_the_order_of_what_they_need() -> None:
    assert list(figures_drawn_from(NEEDS))[:3] == ["swept_values", "learning_curves", "layer_weights"]
    assert list(figures_drawn_from({"tasks", "runs", "curves"})) == ["learning_curves", "task_scores"]


def test_a_figure_of_something_else_names_those_that_there_are() -> None:
    with pytest.raises(ConfigError, match="'phenomena' of 'demo': there are no suites of minimal pairs; it has: learn"):
        require_figure("phenomena", {"runs", "curves"}, "demo")
    assert require_figure("phenomena", {"minimal_pairs"}, "demo").title == "Minimal pairs"


@pytest.mark.parametrize(("experiment", "weighted"), [("bnc_mini", False), ("demo", True)])
def test_layer_weights_are_drawn_only_where_a_model_has_such(repository: Path, experiment: str, weighted: bool) -> None:
    assert ("layer_weights" in drawable(Project(repository / "config"), experiment)) == weighted
