"""The plan holds the lines that the Slurm plugin would send, and needs neither a cluster nor conda."""

from pathlib import Path

import pytest

from hatchery.errors import PlanError
from hatchery.workflow.cluster_check import sbatch_text
from hatchery.workflow.job_shapes import JobShape, job_shapes
from hatchery.workflow.planned_jobs import plan

PRETRAIN = (
    "sbatch --parsable --job-name test_RUN --output .snakemake/slurm_logs/rule_pretrain/x_a-s1/%j.log --export=ALL"
    " --comment rule_pretrain_wildcards_x_a-s1 -A lab -p gpu -t 90 --mem 1000 --nodes=4 --ntasks-per-node=8"
    " --cpus-per-task=3 --requeue --gres=gpu:a100:8"
)


def test_the_plan_holds_every_job_with_its_line(small_workflow: Path) -> None:
    found = plan("results/x/summary.csv")
    assert [job.name for job in found.jobs] == [
        "rule_prepare",
        "rule_pretrain_wildcards_x_a-s1",
        "rule_pretrain_wildcards_x_a_b-s1",
        "rule_summarise_wildcards_x",
    ]
    prepare, pretrain, _, summarise = found.jobs
    assert (prepare.local, prepare.sbatch) == (True, "")
    assert pretrain.sbatch == PRETRAIN
    assert "-t 5 --mem 500 --ntasks=1 --cpus-per-task=1" in summarise.sbatch
    assert (found.jobs_at_once, found.retries, found.executor["status_command"]) == (7, 2, "squeue")
    assert found.deployment == {"conda"}
    assert {path.name for path in found.environments} == {"environment.yaml"}
    assert not (small_workflow / "results").exists()


def test_finished_jobs_are_planned_too(small_workflow: Path) -> None:
    (small_workflow / "results").mkdir()
    (small_workflow / "results" / "settings.json").touch()
    assert len(plan("results/x/summary.csv").jobs) == 4


def test_jobs_that_differ_only_in_name_are_shown_once(small_workflow: Path) -> None:
    text = sbatch_text(plan("results/x/summary.csv").jobs)
    assert text.count("sbatch") == 2
    assert "pretrain: 2 jobs, the first: rule_pretrain_wildcards_x_a-s1\n" in text
    assert "prepare: 1 job, on this machine\n" in text


def test_shapes_are_what_one_node_must_have(small_workflow: Path) -> None:
    assert job_shapes(plan("results/x/summary.csv").jobs) == {
        JobShape("gpu", "lab", 4, 8, 24, 1000, 8, "a100", 90, extra="--requeue"): ["pretrain"],
        JobShape(None, None, 1, 1, 1, 500, 0, "", 5): ["summarise"],
    }


def test_resources_that_the_plugin_refuses_are_told_with_the_rule(small_workflow: Path) -> None:
    snakefile = small_workflow / "Snakefile"
    snakefile.write_text(snakefile.read_text().replace("tasks_per_node=8", "tasks_per_node=1"), encoding="utf-8")
    with pytest.raises(PlanError, match=r"rule pretrain: the Slurm plugin refuses .* must be greater than 1"):
        plan("results/x/summary.csv")


@pytest.mark.parametrize(
    ("target", "profile", "words"),
    [
        ("results/nothing.txt", "slurm", "MissingRule|No rule to produce"),
        ("results/x/summary.csv", "missing", "missing"),
        ("results/x/summary.csv", "local", "its executor is 'local', expected 'slurm'"),
    ],
)
def test_what_cannot_be_planned_is_told_in_a_line(small_workflow: Path, target: str, profile: str, words: str) -> None:
    (small_workflow / "local").mkdir()
    (small_workflow / "local" / "config.yaml").write_text("cores: 1\n", encoding="utf-8")
    with pytest.raises(PlanError, match=words) as raised:
        plan(target, profile)
    assert "\n" not in str(raised.value)
