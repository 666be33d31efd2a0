"""Runs that are called like the rows of a paper repeat these, where the experiment says so with a star."""

import os
import shutil
from pathlib import Path

import pytest

from hatchery.analysis.studies import check_published
from hatchery.errors import ConfigError
from hatchery.experiment.project import Project
from hatchery.workflow.invocation import VARIABLE, frozen_configuration

CONSTRAINED, UNCONSTRAINED = "reduced_vocabulary_constrained", "reduced_vocabulary_unconstrained"


@pytest.fixture
def folder(tmp_path: Path, repository: Path) -> Path:
    shutil.copytree(repository / "config", tmp_path / "config")
    return tmp_path / "config"


def rows(folder: Path, experiment: str) -> dict[str, str]:
    return dict(Project(folder).experiment(experiment).published.rows)


@pytest.mark.parametrize("experiment", [CONSTRAINED, f"{CONSTRAINED}_as_published"])
def test_every_printed_model_of_the_study_stands_beside_ours(repository: Path, experiment: str) -> None:
    found = rows(repository / "config", experiment)
    assert found["rv_256_256_1024_8_8"] == "rv_256_256_1024_8_8"
    assert all(run == row for run, row in found.items())
    trained = [run for run in found if not run.endswith("_untrained")]
    # Reduced vocabulary, Tables 3 and 7: the anchor stands in both.
    assert (len(trained), len(found) - len(trained)) == (26, 19)


@pytest.mark.parametrize("experiment", [UNCONSTRAINED, f"{UNCONSTRAINED}_as_published"])
def test_the_ten_models_of_table_4_have_the_rows_of_their_names(repository: Path, experiment: str) -> None:
    found = rows(repository / "config", experiment)
    assert len(found) == 10
    assert all(row == f"{run}_unconstrained" for run, row in found.items())


def test_a_run_that_is_named_itself_keeps_its_row(folder: Path) -> None:
    path = folder / f"experiments/{CONSTRAINED}.yaml"
    named = '{"*": "*", rv_32_32_64_1_1: rv_32_32_128_1_1}'
    path.write_text(path.read_text(encoding="utf-8").replace('{"*": "*"}', named), encoding="utf-8")
    found = rows(folder, CONSTRAINED)
    assert found["rv_32_32_64_1_1"] == found["rv_32_32_128_1_1"] == "rv_32_32_128_1_1"


@pytest.mark.parametrize("pattern", ["*_unconstraint", "rv_32_32_64_1_1"])
def test_a_pattern_that_makes_no_row_is_told(folder: Path, pattern: str) -> None:
    path = folder / f"experiments/{UNCONSTRAINED}.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("*_unconstrained", pattern), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        rows(folder, UNCONSTRAINED)
    assert str(caught.value).startswith(f"{path}: published.rows.*: got {pattern!r}, which makes a row of ")
    assert "\n" not in str(caught.value)


def test_an_unknown_paper_is_told_with_those_that_there_are(folder: Path) -> None:
    path = folder / f"experiments/{CONSTRAINED}.yaml"
    text = path.read_text(encoding="utf-8").replace("paper: reduced_vocabulary", "paper: reduced_vocabular")
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"got 'reduced_vocabular'; did you mean 'reduced_vocabulary'"):
        check_published(Project(folder), CONSTRAINED)


def test_jobs_of_a_cluster_find_the_same_rows(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    monkeypatch.setenv(VARIABLE, "")
    frozen_configuration("config", is_main_process=True)
    assert rows(Path(os.environ[VARIABLE]), UNCONSTRAINED) == rows(folder, UNCONSTRAINED)
