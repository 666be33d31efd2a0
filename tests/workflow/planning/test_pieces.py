"""Trainings that need more pieces than there are attempts are reported before the first attempt."""

import runpy
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import yaml

from hatchery.experiment.project import Project
from hatchery.workflow.cluster_check import ClusterJob
from hatchery.workflow.jobs import Jobs
from hatchery.workflow.pieces import endless_trainings, retries_of
from hatchery.workflow.resources import Resources


def told(repository: Path, retries: int, **cluster: Any) -> list[str]:
    project = Project(repository / "config", {"cluster": {"gpus_per_node": 8, "nodes": 4, **cluster}})
    return list(endless_trainings(["strict"], Resources(Jobs(project)), retries))


def test_a_training_of_more_pieces_than_attempts_is_one_line_with_the_retries_that_it_needs(repository: Path) -> None:
    (line,) = told(repository, 2, gpu_max_minutes=10)
    pieces = int(line.partition(" attempts of at most 10 minutes, but retries: 2 allows 3")[0].rpartition(" ")[2])
    assert line.startswith("strict: the training ") and f"--retries {pieces - 1} " in line and pieces > 3
    assert told(repository, pieces - 1, gpu_max_minutes=10) == []
    assert told(repository, pieces - 2, gpu_max_minutes=10) != []


def test_attempts_that_grow_need_fewer_pieces(repository: Path) -> None:
    assert told(repository, 1, pretraining_minutes=10) and not told(repository, 5, pretraining_minutes=10)
    assert told(repository, 5, pretraining_minutes=10, max_minutes=10)
    assert told(repository, 0) == told(repository, 0, max_minutes=10_000) == []


@pytest.mark.parametrize("profile", ["slurm", "gpus"])
def test_retries_are_those_of_the_profile_and_of_the_command_line(
    profile: str, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository)
    written = yaml.safe_load((repository / profile / "config.yaml").read_text()).get("retries", 0)
    assert retries_of(["--profile", profile]) == written
    assert retries_of(["--profile", profile, "--retries", "9"]) == 9


def test_the_check_of_a_cluster_reports_such_a_training_and_a_missing_slurm(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    check = runpy.run_path(str(repository / "scripts/check_cluster.py"))
    project = Project(repository / "config", {"cluster": {"gpus_per_node": 8, "nodes": 4, "gpu_max_minutes": 10}})
    job = ClusterJob("summarise", {}, "sbatch --parsable")
    monkeypatch.setitem(check["main"].__globals__, "plan", lambda *_: [job])
    monkeypatch.setitem(check["main"].__globals__, "Project", lambda: project)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(repository)
    with pytest.raises(SystemExit):
        check["main"](Namespace(experiment="strict", profile="slurm", snakemake=[]))
    training, slurm = capsys.readouterr().err.splitlines()
    assert training.startswith("error: strict: the training ") and "--retries" in training
    assert slurm == (
        "error: this machine has no sbatch and no sinfo, so nothing was tested; run this command on a login node of "
        "the cluster"
    )
