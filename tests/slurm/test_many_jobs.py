"""Ten fine-tunings on the cluster: never more at once than allowed, and a failed one is alone in failing."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from cluster_jobs import Sent, sent, snakemake_on_slurm

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

AT_ONCE = 4
TASKS = [f"task_{number}" for number in range(1, 10)]
# The only one that reads this file.
ODD = "demo_babylm_mnli"
EXPERIMENT = """description: Ten small fine-tunings of a model that was never trained.
corpus: tiny
tokenizer: tiny
pretraining: {steps: 0, batch_size: 8, sequence_length: 32}
runs: {random: {model: ltg_tiny}}
finetuning:
  protocol: {epochs: 1, batch_size: 16, learning_rates: [5.0e-4], max_length: 32}
  tasks:
"""


def add_experiment(folder: Path) -> list[str]:
    """Add the experiment `many` with ten tasks, nine of them equal but for their seed; the results to ask for."""
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
    """Most jobs that waited or ran at the same time; the accounting knows whole seconds."""
    return max(sum(job.submitted <= moment < job.ended for job in jobs) for moment in (job.submitted for job in jobs))


def test_ten_fine_tunings_go_out_a_few_at_once_and_a_failed_one_is_sent_again_alone(
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
