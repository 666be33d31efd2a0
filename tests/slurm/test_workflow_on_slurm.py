"""The demo on two nodes gives the same bytes as on one machine; many jobs are sent a few at a time."""

import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from cluster_jobs import (
    Sent,
    ask,
    log_of,
    make_cluster_project,
    queued,
    sent,
    shorten_demo,
    slurm_command,
    snakemake_on_slurm,
    submit,
    wait_for_state,
)
from projects import snakemake

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

SUMMARY = "results/demo/summary.csv"
TOKENS = "results/tokens/tiny/tiny/manifest.json"


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
    assert {"corpora", "tokenizers", "tokens", "models", "finetuning"} <= kinds and len(manifests) >= 12
    for path in manifests:
        relative = path.relative_to(slurm_project)
        assert (demo_project / relative).read_bytes() == path.read_bytes(), f"{relative} differs"


def test_pretraining_ran_in_one_process_on_each_of_two_nodes(slurm_project: Path) -> None:
    jobs = [job for job in sent(slurm_project) if "rule_pretrain" in job.comment]
    assert len(jobs) == 2
    for job in jobs:
        steps = ask("sacct", "-nP", f"--jobs={job.job_id}.0", "--format=NTasks,NNodes,State").split()
        assert steps == ["2|2|COMPLETED"], f"{job.comment}: {steps}"
    for run in ("ltg_bert-s42", "elc_bert-s42"):
        log = log_of(slurm_project, f"results/demo/pretraining/{run}/manifest.json")
        lines = log.read_text(encoding="utf-8").splitlines()
        # Two processes without a common process group would both write the log of a whole training.
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


def test_inside_of_a_job_snakemake_sends_jobs_of_their_own_size(
    copy_of_project: Callable[[Path], Path], tmp_path: Path
) -> None:
    project = copy_of_project(tmp_path / "project")
    (project / TOKENS).unlink()
    words = shlex.join(slurm_command(("--", TOKENS)))
    # If jobs inherit memory per processor, it contradicts the memory that they ask for.
    inside = submit(project, f"{words} > inside.out 2>&1", "--cpus-per-task=1", "--mem-per-cpu=700")
    ending = wait_for_state(inside, "COMPLETED", "FAILED", "OUT_OF_MEMORY", "TIMEOUT", seconds=300)
    assert ending == "COMPLETED", (project / "inside.out").read_text(encoding="utf-8")[-6000:]
    (job,) = (job for job in sent(project) if "rule_encode_corpus" in job.comment)
    assert ask("sacct", "-nPX", f"--jobs={job.job_id}", "--format=AllocCPUS,State").split() == ["2|COMPLETED"]
    assert (project / TOKENS).is_file()


AT_ONCE = 3
TASKS = [f"task_{number}" for number in range(1, 6)]
# No other task reads this task's file.
ODD = "demo_babylm_mnli"
EXPERIMENT = """description: Six small fine-tunings of a model that was never trained.
corpus: tiny
tokenizer: tiny
pretraining: {steps: 0, batch_size: 8, sequence_length: 32}
runs: {random: {model: ltg_tiny}}
finetuning:
  protocol: {epochs: 1, batch_size: 16, learning_rates: [5.0e-4], max_length: 32}
  tasks:
"""


def add_experiment(folder: Path) -> list[str]:
    """Add the experiment `many` with six tasks, five of them equal except for their seed; return its results."""
    task = (folder / "config/tasks/demo_acceptability.yaml").read_text(encoding="utf-8")
    lines = [f"    {ODD}: {{seeds: [1]}}\n"]
    for seed, name in enumerate(TASKS, start=1):
        (folder / f"config/tasks/{name}.yaml").write_text(task, encoding="utf-8")
        lines.append(f"    {name}: {{seeds: [{seed}]}}\n")
    (folder / "config/experiments/many.yaml").write_text(EXPERIMENT + "".join(lines), encoding="utf-8")
    return [f"results/many/finetuning/random-s42/{name}/manifest.json" for name in (ODD, *TASKS)]


def finetunings(folder: Path) -> list[Sent]:
    return [job for job in sent(folder) if "rule_finetune" in job.comment]


def most_at_once(jobs: list[Sent]) -> int:
    """Return the maximum number of jobs that waited or ran at the same time; the accounting has whole seconds."""
    return max(sum(job.submitted <= moment < job.ended for job in jobs) for moment in (job.submitted for job in jobs))


def test_six_fine_tunings_go_out_a_few_at_once_and_a_failed_one_is_sent_again_alone(
    copy_of_project: Callable[[Path], Path], tmp_path: Path
) -> None:
    project = copy_of_project(tmp_path / "project")
    targets = add_experiment(project)
    files = sorted((project / "resources/embedded").rglob("*mnli*"))
    assert files, "the embedded data has no file for the odd task: mend this test"
    kept = {path: (path.read_bytes(), path.stat()) for path in files if path.is_file()}
    for path, (content, _) in kept.items():
        path.write_bytes(content[: len(content) // 2].ljust(len(content)))
    options = (f"--jobs={AT_ONCE}", "--retries=0", "--")

    first = snakemake_on_slurm(project, *options, *targets, seconds=1800)
    assert first.returncode != 0
    assert re.search(r"^error: finetune/.*\(log: logs/finetune/\S+\.log\)$", first.stdout, re.M), first.stdout[-6000:]
    missing = [target for target in targets if not (project / target).is_file()]
    assert missing == [target for target in targets if ODD in target], (first.stdout + first.stderr)[-6000:]
    jobs = finetunings(project)
    assert len(jobs) == 1 + len(TASKS)
    assert sorted(job.state for job in jobs) == ["COMPLETED"] * len(TASKS) + ["FAILED"]
    assert most_at_once(jobs) == AT_ONCE

    stamps = {target: (project / target).stat().st_mtime_ns for target in targets if ODD not in target}
    for path, (content, facts) in kept.items():
        path.write_bytes(content)
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    second = snakemake_on_slurm(project, *options, *targets)
    assert second.returncode == 0, (second.stdout + second.stderr)[-6000:]
    assert len(finetunings(project)) == 2 + len(TASKS)
    assert {target: (project / target).stat().st_mtime_ns for target in stamps} == stamps
