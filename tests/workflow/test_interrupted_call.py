"""A call of Snakemake that is interrupted by its process id saves its pretraining; the next one goes on from there."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from projects import make_project, snakemake

from hatchery.workflow.failed_jobs import GO_ON

TARGET = "results/tiny/pretraining/ltg_bert-s42/manifest.json"


def _log(folder: Path) -> str:
    return "".join(path.read_text(encoding="utf-8") for path in (folder / "logs/pretrain").glob("*.log"))


@pytest.mark.slow
def test_sigint_to_snakemake_alone_saves_the_pretraining_and_the_next_call_goes_on(
    tmp_path: Path, repository: Path
) -> None:
    folder = make_project(tmp_path / "project", repository)
    experiment = folder / "config/experiments/tiny.yaml"
    text = experiment.read_text(encoding="utf-8")
    # Long enough to be met at work, short enough to be ended.
    experiment.write_text(text.replace("  steps: 12\n", "  steps: 600\n", 1), encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "snakemake", "--cores", "2", TARGET],
        cwd=folder,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        end = time.monotonic() + 300
        while "600 steps to do" not in _log(folder):
            assert process.poll() is None and time.monotonic() < end, process.communicate(timeout=60)[0]
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 1
    stopped = re.search(r"stopped by SIGINT after step (\d+) of 600; a checkpoint is saved", output.splitlines()[-2])
    assert stopped is not None, output
    # What the user has stopped did not fail.
    assert output.splitlines()[-1] == GO_ON
    assert "failed" not in output and "error" not in output
    assert not (folder / TARGET).exists()
    again = snakemake(folder, "--cores", "2", TARGET)
    assert again.returncode == 0, again.stdout + again.stderr
    provenance = json.loads((folder / TARGET).with_name("provenance.json").read_text(encoding="utf-8"))
    assert f'"resumed_from_step": {stopped[1]}' in json.dumps(provenance)
