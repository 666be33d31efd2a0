"""The plan holds the lines that the Slurm plugin would send, and needs neither a cluster nor conda."""

import os
from pathlib import Path

import pytest

from hatchery.errors import PlanError
from hatchery.workflow.cluster_check import ClusterJob, plan, problems, sbatch_text

SNAKEFILE = r"""
wildcard_constraints:
    experiment=r"\w+", run=r"\w+-s[0-9]+"

rule prepare:
    output: "results/settings.json"
    log: "logs/prepare.log"
    localrule: True
    shell: "touch {output} 2> {log}"

rule pretrain:
    input: "results/settings.json"
    output: "results/{experiment}/pretraining/{run}/manifest.json"
    log: "logs/pretrain/{experiment}/{run}.log"
    conda: "environment.yaml"
    threads: 3
    resources: nodes=4, tasks_per_node=8, gres="gpu:a100:8", mpi="srun", runtime=90, mem_mb=1000,
        slurm_account="lab", slurm_partition="gpu", slurm_extra="--requeue"
    shell: "touch {output} 2> {log}"

rule summarise:
    input: expand("results/x/pretraining/{run}/manifest.json", run=["a-s1", "a_b-s1"])
    output: "results/{experiment}/summary.csv"
    log: "logs/summarise/{experiment}.log"
    resources: mem_mb=lambda wildcards, attempt: 500 * attempt
    shell: "touch {output} 2> {log}"
"""
PROFILE = """
executor: slurm
jobs: 7
retries: 2
software-deployment-method: [conda]
slurm-status-command: squeue
slurm-jobname-prefix: test
default-resources: {runtime: 5, mem_mb: 100}
"""


@pytest.fixture
def small_workflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the workflow, which is the current folder."""
    (tmp_path / "slurm").mkdir()
    (tmp_path / "slurm" / "config.yaml").write_text(PROFILE, encoding="utf-8")
    (tmp_path / "Snakefile").write_text(SNAKEFILE, encoding="utf-8")
    (tmp_path / "environment.yaml").write_text("dependencies: [python]\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


PRETRAIN = (
    "sbatch --parsable --job-name test_RUN --output .snakemake/slurm_logs/rule_pretrain/x_a-s1/%j.log --export=ALL"
    " --comment rule_pretrain_wildcards_x_a-s1 -A lab -p gpu -t 90 --mem 1000 --nodes=4 --ntasks-per-node=8"
    " --cpus-per-task=3 --requeue --gres=gpu:a100:8"
)


def test_the_plan_holds_every_job_with_its_line(small_workflow: Path) -> None:
    found = plan("results/x/summary.csv")
    assert [job.name for job in found] == [
        "rule_prepare",
        "rule_pretrain_wildcards_x_a-s1",
        "rule_pretrain_wildcards_x_a_b-s1",
        "rule_summarise_wildcards_x",
    ]
    prepare, pretrain, _, summarise = found
    assert prepare.sbatch == ""
    assert pretrain.sbatch == PRETRAIN
    assert "-t 5 --mem 500 --ntasks=1 --cpus-per-task=1" in summarise.sbatch
    assert not (small_workflow / "results").exists()


def test_finished_jobs_are_planned_too(small_workflow: Path) -> None:
    (small_workflow / "results").mkdir()
    (small_workflow / "results" / "settings.json").touch()
    assert len(plan("results/x/summary.csv")) == 4


def test_jobs_that_differ_only_in_name_are_shown_once(small_workflow: Path) -> None:
    text = sbatch_text(plan("results/x/summary.csv"))
    assert text.count("sbatch") == 2
    assert "pretrain: 2 jobs, the first: rule_pretrain_wildcards_x_a-s1\n" in text
    assert "prepare: 1 job, on this machine\n" in text


def test_resources_that_the_plugin_refuses_are_told_with_the_rule(small_workflow: Path) -> None:
    snakefile = small_workflow / "Snakefile"
    snakefile.write_text(snakefile.read_text().replace("tasks_per_node=8", "tasks_per_node=1"), encoding="utf-8")
    with pytest.raises(PlanError, match=r"rule pretrain: the Slurm plugin refuses .* must be greater than 1"):
        plan("results/x/summary.csv")


def command(folder: Path, name: str, script: str) -> None:
    """Write a command of Slurm that records its arguments."""
    path = folder / name
    path.write_text(f'#!/bin/sh\necho "$@" >> {folder}/asked\n{script}\n', encoding="utf-8")
    path.chmod(0o755)


def test_slurm_is_asked_once_for_each_shape_and_what_it_refuses_is_a_line(
    small_workflow: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(small_workflow), prepend=os.pathsep)
    command(small_workflow, "sinfo", "echo 'cpu*|up|infinite'")
    command(
        small_workflow, "sbatch", 'case "$*" in *lab*) echo "allocation failure: Invalid account" >&2; exit 1; esac'
    )
    (problem,) = problems(plan("results/x/summary.csv"))
    assert problem.startswith("pretrain: Slurm refuses the job: Invalid account; change the block `cluster` of config/")
    asked = (small_workflow / "asked").read_text(encoding="utf-8").splitlines()
    assert sum("--test-only" in line for line in asked) == 2


def test_a_partition_that_is_down_or_has_a_shorter_limit_is_a_line_for_all_its_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    command(tmp_path, "sbatch", "exit 0")
    command(tmp_path, "sinfo", "echo 'gpu|drain|infinite'; echo 'cpu*|up|1:00:00'; echo 'long|up|infinite'")
    asked = {
        "summarise": "-t 60",
        "train": "-t 61",
        "probe": "-t 61",
        "tune": "-p cpu -t 90",
        "pretrain": "-p gpu -t 5",
        "wait": "-p long -t 9999",
        "elsewhere": "-p unknown -t 9999",
    }
    jobs = [ClusterJob(rule, {}, f"sbatch {options}") for rule, options in asked.items()]
    # Without the option `-p`, a job is in the default partition, which `sinfo` marks with an asterisk.
    longer = (
        "jobs would wait forever, because they request more than the 60 minutes of partition cpu; lower max_minutes"
    )
    down = "jobs in partition gpu would wait, because the partition is drain; name another partition in the block"
    first, second = problems([*jobs, ClusterJob("prepare", {}, "")])
    assert first.startswith(f"probe, train, tune: {longer}") and second.startswith(f"pretrain: {down}")
    command(tmp_path, "sinfo", "echo 'slurm_load_partitions: Unable to contact slurm controller' >&2; exit 1")
    asked_before = (tmp_path / "asked").read_text(encoding="utf-8").count("--test-only")
    (problem,) = problems(jobs)
    assert problem.startswith(
        "sinfo: slurm_load_partitions: Unable to contact slurm controller; ask the administrators"
    )
    assert (tmp_path / "asked").read_text(encoding="utf-8").count("--test-only") == asked_before == 6
    assert problems([ClusterJob("prepare", {}, "")]) == []


@pytest.mark.parametrize(
    ("target", "profile", "words"),
    [
        ("results/nothing.txt", "slurm", "MissingRule|No rule to produce"),
        ("results/x/summary.csv", "local", "its executor is 'local', expected 'slurm'"),
    ],
)
def test_what_cannot_be_planned_is_told_in_a_line(small_workflow: Path, target: str, profile: str, words: str) -> None:
    (small_workflow / "local").mkdir()
    (small_workflow / "local" / "config.yaml").write_text("cores: 1\n", encoding="utf-8")
    with pytest.raises(PlanError, match=words) as raised:
        plan(target, profile)
    assert "\n" not in str(raised.value)
