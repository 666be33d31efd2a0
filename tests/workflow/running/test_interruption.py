"""SIGINT reaches every job once, whether it is sent to Snakemake alone or, as Ctrl-C is, to its whole group."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

Call = Callable[..., subprocess.Popen[str]]


@pytest.mark.parametrize("to", ["the process", "its group"])
def test_a_job_is_told_once_and_may_save_what_it_has(start: Call, folder: Path, to: str) -> None:
    process = start("results/trained.txt")
    try:
        log = folder / "logs/train.log"
        while not (log.exists() and "training" in log.read_text(encoding="utf-8")):
            assert process.poll() is None, process.communicate()[0]
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGINT) if to == "the process" else os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 1
    assert (folder / "checkpoint.txt").read_text(encoding="utf-8") == "1"
    assert not (folder / "results/trained.txt").exists()
    assert "Traceback" not in output


def test_sigint_counts_where_the_surroundings_ignore_it(start: Call, folder: Path) -> None:
    former = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = start("results/trained.txt")
    finally:
        signal.signal(signal.SIGINT, former)
    log = folder / "logs/train.log"
    while not (log.exists() and "training" in log.read_text(encoding="utf-8")):
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
    assert (folder / "checkpoint.txt").read_text(encoding="utf-8") == "1"
