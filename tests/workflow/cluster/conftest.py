"""A small workflow with a profile of the Slurm executor, in which plans and logs can be looked at quickly."""

from pathlib import Path

import pytest

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
    """The folder of the workflow, which is the current one."""
    (tmp_path / "slurm").mkdir()
    (tmp_path / "slurm" / "config.yaml").write_text(PROFILE, encoding="utf-8")
    (tmp_path / "Snakefile").write_text(SNAKEFILE, encoding="utf-8")
    (tmp_path / "environment.yaml").write_text("dependencies: [python]\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path
