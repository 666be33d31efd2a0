"""Every experiment can be planned from a fresh checkout, locally and for the cluster; mistakes end in one line."""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from projects import make_project, planned_rules, snakemake

REPOSITORY = Path(__file__).resolve().parents[2]
EXPERIMENTS = sorted(path.stem for path in (REPOSITORY / "config/experiments").glob("*.yaml"))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    return make_project(tmp_path_factory.mktemp("dry") / "project", repository)


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_the_summary_of_every_experiment_can_be_planned(experiment: str, project: Path) -> None:
    planned = planned_rules(project, f"results/{experiment}/summary.csv")
    assert planned["summarise"] == 1
    assert planned["pretrain"] >= 1


def test_the_literal_cluster_command_is_found_in_a_fresh_clone(tmp_path: Path, repository: Path) -> None:
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(repository), str(clone)], check=True)
    result = snakemake(clone, "--profile", "slurm", "-n", "results/strict/summary.csv")
    output = result.stdout + result.stderr
    assert result.returncode == 0, output
    assert "pretrain" in output
    assert "never awaited" not in output
    # With conda the rules' environments are meant, without it the user is told what jobs run in.
    assert output.count("conda is not on PATH") == (shutil.which("conda") is None)


def test_a_dry_run_makes_nothing(tmp_path: Path, repository: Path) -> None:
    project = make_project(tmp_path / "project", repository)
    config = project / "config/config.yaml"
    text = config.read_text(encoding="utf-8")
    before = {path.name for path in project.iterdir()}
    config.write_text(text.replace("storage_root: null", f"storage_root: {tmp_path / 'large'}"), encoding="utf-8")
    assert snakemake(project, "-n", "results/tiny/summary.csv").returncode == 0
    assert {path.name for path in project.iterdir()} == before | {".snakemake"}
    # Snakemake's own folder is there, without anything of ours.
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


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("steps: 12", "stepz: 12", "pretraining.stepz: unknown key"),
        ("corpus: tiny", "corpus: tyni", "got 'tyni', no such corpus"),
    ],
)
def test_a_wrong_configuration_ends_in_one_line_without_traceback(
    old: str, new: str, message: str, project: Path
) -> None:
    path = project / "config/experiments/tiny.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    try:
        result = snakemake(project, "-n", "--quiet", "all", "--", "results/tiny/summary.csv")
    finally:
        path.write_text(text, encoding="utf-8")
    assert result.returncode != 0
    lines = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert message in lines[0]
    assert "config/experiments/tiny.yaml" in lines[0]
    assert "Traceback" not in result.stdout + result.stderr


def test_an_unknown_experiment_names_the_nearest(project: Path) -> None:
    result = snakemake(project, "-n", "results/strcit/summary.csv")
    assert "did you mean 'strict'?" in result.stderr


def test_the_default_profile_leaves_the_resources_of_the_cluster_alone(repository: Path) -> None:
    profile = yaml.safe_load((repository / "workflow/profiles/default/config.yaml").read_text(encoding="utf-8"))
    assert "default-resources" not in profile


def test_lint_is_clean(repository: Path) -> None:
    result = snakemake(repository, "--lint")
    assert result.returncode == 0, result.stdout + result.stderr
