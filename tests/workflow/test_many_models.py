"""An experiment with more models than fit on a command line: its cost is written, and what its views are given fits."""

import json
from pathlib import Path

import pytest
import yaml
from projects import make_project, snakemake

from hatchery.experiment.project import Project
from hatchery.job_spec import read_call
from hatchery.views.stages.draw_figure import MOST_DRAWN
from hatchery.workflow.jobs import Jobs

MODELS = 120


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    folder = make_project(tmp_path_factory.mktemp("many") / "project", repository)
    block = yaml.safe_load((folder / "config/experiments/tiny.yaml").read_text(encoding="utf-8"))
    block["runs"] = {f"m{n}": {"model": "ltg_tiny", "pretraining": {"steps": 5 + n}} for n in range(MODELS)}
    (folder / "config/experiments/many.yaml").write_text(yaml.safe_dump(block, sort_keys=False), encoding="utf-8")
    return folder


def test_the_cost_of_a_hundred_and_twenty_models_is_written(folder: Path) -> None:
    result = snakemake(folder, "--cores", "1", "results/many/cost.csv")
    assert result.returncode == 0, result.stdout + result.stderr
    assert len((folder / "results/many/cost.csv").read_text(encoding="utf-8").splitlines()) == MODELS + 1


def test_what_a_page_and_a_summary_are_given_lies_in_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    jobs = Jobs(Project("config"))
    jobs.write_calls()
    for stage in ("write_page", "collect_measurements"):
        job = jobs.call(stage, experiment="many")
        call = read_call(job.path)
        assert len(str(call.path)) < 40 and call.arguments == job.arguments
        assert call.arguments["pretraining"] == jobs.results.pretrained("many")


def test_figures_show_the_models_that_fit_and_are_told_how_many_do_not(folder: Path) -> None:
    jobs = Jobs(Project(folder / "config"))
    for figure in jobs.results.figures("many"):
        settings = json.loads(jobs.settings("draw_figure", experiment="many", figure=figure))
        assert [run["model"] for run in settings["runs"]] == [f"m{n}" for n in range(MOST_DRAWN)]
        assert settings["left_out"] == MODELS - MOST_DRAWN
        assert "left_out" not in json.loads(jobs.settings("draw_figure", experiment="tiny", figure=figure))
