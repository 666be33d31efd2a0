"""Every experiment can be planned from a fresh checkout, also with many models and with runs that start from others."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from projects import make_project, planned_rules, snakemake

from hatchery.experiment.project import Project
from hatchery.job_spec import read_call
from hatchery.views.stages.draw_figure import MOST_DRAWN, figures_of
from hatchery.workflow.jobs import Jobs

REPOSITORY = Path(__file__).resolve().parents[2]
EXPERIMENTS = sorted(path.stem for path in (REPOSITORY / "config/experiments").glob("*.yaml"))


CHAIN = """
corpus: tiny
tokenizer: tiny
pretraining: {steps: 12, batch_size: 8, sequence_length: 32, evaluation_interval_steps: 2, evaluation_sequences: 16}
runs:
  later: {model: ltg_tiny, pretraining: {steps: 30, initialise_from: {run: base, take: training}}}
  base: {model: ltg_tiny, pretraining: {keep_training_state: true}}
  swept: {model: ltg_tiny, pretraining: {optimizer: {learning_rate: {sweep: [0.005, 0.01]}}}}
minimal_pairs: [tiny_pairs]
"""
MODELS = 120


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """A project with two more experiments: runs that start from others, and more models than fit on a command line."""
    folder = make_project(tmp_path_factory.mktemp("dry") / "project", repository)
    (folder / "config/experiments/chain.yaml").write_text(CHAIN)
    block = yaml.safe_load((folder / "config/experiments/tiny.yaml").read_text(encoding="utf-8"))
    block["runs"] = {f"m{n}": {"model": "ltg_tiny", "pretraining": {"steps": 5 + n}} for n in range(MODELS)}
    (folder / "config/experiments/many.yaml").write_text(yaml.safe_dump(block, sort_keys=False), encoding="utf-8")
    return folder


@pytest.mark.slow
def test_the_summaries_of_all_experiments_can_be_planned_in_one_call(project: Path) -> None:
    planned = planned_rules(project, *(f"results/{experiment}/summary.csv" for experiment in EXPERIMENTS))
    assert planned["summarise"] == len(EXPERIMENTS)
    assert planned["pretrain"] > len(EXPERIMENTS)


def test_the_literal_cluster_command_is_found_in_a_fresh_clone(tmp_path: Path, repository: Path) -> None:
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(repository), str(clone)], check=True)
    result = snakemake(clone, "--profile", "slurm", "-n", "results/strict/summary.csv")
    output = result.stdout + result.stderr
    assert result.returncode == 0, output
    assert "pretrain" in output
    assert "never awaited" not in output
    # With conda, jobs use the rules' environments; without conda, a line names the environment of the jobs.
    assert output.count("conda is not on PATH") == (shutil.which("conda") is None)


def test_a_dry_run_makes_nothing(tmp_path: Path, repository: Path) -> None:
    project = make_project(tmp_path / "project", repository)
    config = project / "config/config.yaml"
    text = config.read_text(encoding="utf-8")
    before = {path.name for path in project.iterdir()}
    config.write_text(text.replace("storage_root: null", f"storage_root: {tmp_path / 'large'}"), encoding="utf-8")
    planned = snakemake(project, "-n", "results/tiny/summary.csv")
    assert planned.returncode == 0 and "missing: " not in planned.stderr, "generated text misses nothing"
    assert {path.name for path in project.iterdir()} == before | {".snakemake"}
    # Snakemake's own folder exists, but contains no files of ours.
    assert not (project / ".snakemake/configurations").exists()
    assert not (tmp_path / "large").exists()
    config.write_text(text.replace("storage_root: null", f"storage_root: {tmp_path}/lrage/x"), encoding="utf-8")
    result = snakemake(project, "-n", "results/tiny/summary.csv")
    assert result.returncode == 1
    assert f"error: storage_root: got {tmp_path}/lrage/x, but {tmp_path}/lrage does not exist" in result.stderr


def test_the_dag_has_no_rule_that_breaks_under_strict_evaluation(project: Path) -> None:
    result = snakemake(
        project,
        "-n",
        "results/demo/index.html",
        "--strict-dag-evaluation",
        "functions",
        "cyclic-graph",
        "periodic-wildcards",
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_run_of_a_sweep_is_planned_and_waits_for_the_model_that_it_starts_from(project: Path) -> None:
    planned = planned_rules(project, "results/chain/summary.csv")
    assert planned["pretrain"] == 4 and planned["score_minimal_pairs"] == 4
    for run, pretrainings in (("later", 2), ("base", 1)):
        assert planned_rules(project, f"results/chain/pretraining/{run}-s42/manifest.json")["pretrain"] == pretrainings


def test_the_cost_of_a_hundred_and_twenty_models_is_written(project: Path) -> None:
    result = snakemake(project, "--cores", "1", "results/many/cost.csv")
    assert result.returncode == 0, result.stdout + result.stderr
    assert len((project / "results/many/cost.csv").read_text(encoding="utf-8").splitlines()) == MODELS + 1


def test_what_a_page_and_a_summary_are_given_lies_in_files(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    jobs = Jobs(Project("config"))
    jobs.write_calls()
    for stage, key in (("write_page", "pretraining"), ("collect_measurements", "model")):
        job = jobs.call(stage, experiment="many")
        call = read_call(job.path)
        assert len(str(call.path)) < 40 and call.arguments == job.arguments
        assert call.arguments[key] == jobs.results.models("many")


def test_figures_show_the_models_that_fit_and_are_told_how_many_do_not(project: Path) -> None:
    jobs = Jobs(Project(project / "config"))
    for figure in figures_of(jobs.project, "many"):
        settings = json.loads(jobs.settings("draw_figure", experiment="many", figure=figure))
        assert [run["model"] for run in settings["runs"]] == [f"m{n}" for n in range(MOST_DRAWN)]
        assert settings["left_out"] == MODELS - MOST_DRAWN
        assert json.loads(jobs.settings("draw_figure", experiment="tiny", figure=figure))["left_out"] == 0
