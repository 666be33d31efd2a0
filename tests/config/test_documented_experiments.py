"""The experiments that stand in the documentation can be planned as they stand there."""

import re
import shutil
from pathlib import Path

import pytest

from hatchery.config.project import Project
from hatchery.planning.layout import Layout
from hatchery.stages.registry import stage_settings

DOCS = Path(__file__).resolve().parents[2] / "docs"
# A block of YAML whose first line is the name of its file.
EXAMPLE = re.compile(r"^```yaml\n# (\w+)\.yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXAMPLES = {name: text for page in sorted(DOCS.glob("*.md")) for name, text in EXAMPLE.findall(page.read_text())}


@pytest.fixture
def project(tmp_path: Path, repository: Path) -> Project:
    shutil.copytree(repository / "config", tmp_path / "config")
    for name, text in EXAMPLES.items():
        (tmp_path / "config/experiments" / f"{name}.yaml").write_text(text, encoding="utf-8")
    return Project(tmp_path / "config")


def test_sweeps_and_continued_runs_have_examples() -> None:
    assert {"rates", "longer"} <= EXAMPLES.keys()


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_can_be_planned(project: Project, name: str) -> None:
    for run in project.seeded_runs(name):
        stage_settings(project, "pretrain", experiment=name, run=run.name)
    stage_settings(project, "write_cost", experiment=name)


def test_the_example_of_a_sweep_has_the_runs_that_its_text_says(project: Project) -> None:
    runs = [run.name for run in project.seeded_runs("rates")]
    assert len(runs) == 8
    assert runs[0] == "ltg_bert_hidden_dropout_prob_0p0_learning_rate_0p005-s1"
    label = "ltg_bert, hidden_dropout_prob 0.0, learning_rate 0.005"
    assert project.labels("rates")["ltg_bert_hidden_dropout_prob_0p0_learning_rate_0p005"] == label


def test_the_example_of_a_longer_run_depends_on_the_shorter_one(project: Project) -> None:
    layout = Layout(project)
    assert layout.initial_model("longer", "longer-s42") == [layout.pretrained("longer")["short-s42"]]


def test_the_example_of_a_grid_has_the_runs_that_its_text_says(project: Project) -> None:
    names = [cell.model for cell in project.seeded_runs("sizes")]
    assert len(names) == 10
    assert {"ltg_16_64_1_2", "ltg_16_64_1_2_untrained"} <= set(names)
