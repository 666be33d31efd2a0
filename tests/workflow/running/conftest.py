"""A workflow of a few commands that end in a second, with the real Snakefile's code around its jobs."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from forked import Forked

SNAKEFILE = """
import sys
sys.path.insert(0, {scripts!r})
from hatchery.workflow.snakemake_call import begin_jobs, prepare_call
prepare_call(workflow, dict.values)

rule join:
    input: "results/one.txt", "results/two.txt"
    output: "results/joined.txt"
    log: "logs/join.log"
    conda: "environment.yaml"
    shell: "cat {{input}} > {{output}} 2> {{log}}"

rule part:
    output: "results/{{part}}.txt"
    log: "logs/part/{{part}}.log"
    wildcard_constraints: part="one|two"
    conda: "environment.yaml"
    shell:
        "(echo progress of {{wildcards.part}}; test ! -e {{wildcards.part}}.wrong || exit 3; "
        "! rm {{wildcards.part}}.once 2> /dev/null || exit 3; touch {{output}}) 2>&1 | tee {{log}}"

rule explain:
    output: "results/explained.txt"
    log: "logs/explain.log"
    shell: "(echo 'step 1'; echo 'error: config.yaml: steps: got 0'; echo 'cleaned up'; exit 1) 2>&1 | tee {{log}}"

rule train:
    output: "results/trained.txt"
    log: "logs/train.log"
    shell: "python train.py {{output}} 2>&1 | (trap '' TERM USR1 INT; exec tee {{log}})"

onstart:
    begin_jobs(workflow.dag)
"""
# The training saves a checkpoint on SIGINT, with the number of signals; without a signal, it runs for minutes.
TRAIN = """
import signal, sys, time
told = []
signal.signal(signal.SIGINT, lambda number, frame: told.append(number))
print("training", flush=True)
end = time.monotonic() + 120
while not told and time.monotonic() < end:
    time.sleep(0.02)
time.sleep(1.5)
open("checkpoint.txt", "w").write(str(len(told)))
print("stopped; a checkpoint is saved")
sys.exit(75 if told else 0)
"""

Call = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def folder(tmp_path: Path, repository: Path) -> Path:
    """The folder of the workflow."""
    (tmp_path / "Snakefile").write_text(SNAKEFILE.format(scripts=str(repository / "scripts")), encoding="utf-8")
    (tmp_path / "environment.yaml").write_text("dependencies: [python]\n", encoding="utf-8")
    (tmp_path / "train.py").write_text(TRAIN, encoding="utf-8")
    return tmp_path


@pytest.fixture
def start() -> Call:
    """Start Snakemake in a folder, in its own process group; stdout and stderr are one stream."""

    def call(folder: Path, *arguments: str, **surroundings: str) -> subprocess.Popen[str]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return Forked(
            [sys.executable, "-m", "snakemake", "--cores", "2", *arguments],
            cwd=folder,
            env={**os.environ, "PATH": path, **surroundings},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    return call


@pytest.fixture
def say(start: Call, folder: Path) -> Callable[..., tuple[int, list[str]]]:
    """Run Snakemake in the folder; return its exit status and the lines of its output."""

    def call(*arguments: str, **surroundings: str) -> tuple[int, list[str]]:
        process = start(folder, *arguments, **surroundings)
        output, _ = process.communicate(timeout=120)
        return process.returncode, output.splitlines()

    return call
