"""`snakemake --profile slurm results/demo/summary.csv` on two nodes gives the bytes of the same on one machine.

It is the demo with all its stages, models and tasks, but with less data and fewer steps.
"""

from pathlib import Path

import pytest
from cluster_jobs import ask, log_of, make_cluster_project, queued, sent, shorten_demo, snakemake_on_slurm
from projects import snakemake

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

SUMMARY = "results/demo/summary.csv"


@pytest.fixture(scope="module")
def demo_project(slurm_cluster: None, tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """A project folder in which the demo ran on this machine alone."""
    folder = make_cluster_project(tmp_path_factory.mktemp("demo") / "project", repository)
    shorten_demo(folder)
    result = snakemake(folder, "--cores", "2", "--", SUMMARY)
    assert result.returncode == 0, (result.stdout + result.stderr)[-6000:]
    return folder


@pytest.fixture(scope="module")
def slurm_project(slurm_cluster: None, tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """A project folder in which the demo ran on the cluster from the first source to its table."""
    folder = make_cluster_project(tmp_path_factory.mktemp("slurm") / "project", repository)
    shorten_demo(folder)
    result = snakemake_on_slurm(folder, "--", SUMMARY, seconds=1800)
    assert result.returncode == 0, (result.stdout + result.stderr)[-6000:]
    return folder


def test_the_table_of_the_cluster_is_the_table_of_one_machine_byte_for_byte(
    slurm_project: Path, demo_project: Path
) -> None:
    assert (slurm_project / SUMMARY).read_bytes() == (demo_project / SUMMARY).read_bytes()


def test_every_result_is_the_same_byte_for_byte(slurm_project: Path, demo_project: Path) -> None:
    manifests = sorted((slurm_project / "results").rglob("manifest.json"))
    kinds = {path.parts[0] for path in (found.relative_to(slurm_project / "results") for found in manifests)}
    assert {"corpora", "tokenizers", "tokens", "models", "finetuning"} <= kinds and len(manifests) >= 15
    for path in manifests:
        relative = path.relative_to(slurm_project)
        assert (demo_project / relative).read_bytes() == path.read_bytes(), f"{relative} differs"


def test_pretraining_ran_in_one_process_on_each_of_two_nodes(slurm_project: Path) -> None:
    jobs = [job for job in sent(slurm_project) if "rule_pretrain" in job.comment]
    assert len(jobs) == 3
    for job in jobs:
        steps = ask("sacct", "-nP", f"--jobs={job.job_id}.0", "--format=NTasks,NNodes,State").split()
        assert steps == ["2|2|COMPLETED"], f"{job.comment}: {steps}"
    for run in ("ltg_bert-s42", "elc_bert-s42"):
        log = log_of(slurm_project, f"results/demo/pretraining/{run}/manifest.json")
        lines = log.read_text(encoding="utf-8").splitlines()
        # Two processes that did not find each other would both speak for the whole training.
        assert {line.split(":")[0].strip() for line in lines} == {"0"}, run


def test_no_job_is_left_and_nothing_runs_again(slurm_project: Path) -> None:
    assert queued(slurm_project) == []
    again = snakemake_on_slurm(slurm_project, "--", SUMMARY)
    assert again.returncode == 0, again.stderr
    assert "Nothing to be done" in again.stdout + again.stderr


def test_what_jobs_asked_for_and_used_is_kept(slurm_project: Path) -> None:
    reports = sorted((slurm_project / "logs/slurm_efficiency").glob("*.csv"))
    assert reports
    text = "".join(report.read_text(encoding="utf-8") for report in reports)
    for rule in ("rule_pretrain", "rule_finetune", "rule_convert_corpus"):
        assert rule in text, rule
