"""The terminal has a line for each job and the errors of failed jobs at its end; all else stands in Snakemake's log."""

import io
import logging
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from logging import makeLogRecord
from pathlib import Path
from types import SimpleNamespace

import pytest
from snakemake.exceptions import LockException
from snakemake.logging import LogEvent

from hatchery.workflow.job_failures import FailedJob, last_error
from hatchery.workflow.job_lines import JobLines
from hatchery.workflow.other_workflow import other_workflow

Say = Callable[..., tuple[int, list[str]]]


@pytest.mark.slow
def test_each_job_has_one_line_and_the_details_are_in_the_log(say: Say, folder: Path) -> None:
    status, lines = say("join")
    assert status == 0
    jobs = [line for line in lines if re.match(r"[-\d]+ [:\d]+ \[\d/3\] (part/(one|two)|join)$", line)]
    assert len(jobs) == 3
    assert "3 jobs to run: 2 part, 1 join" in lines
    assert sum("progress of" in line for line in lines) == 2
    # The call's own lines: the options that Snakemake found, the plan, where the log is.
    assert len(lines) <= 3 + 2 + 3
    details = next((folder / ".snakemake/log").glob("*.log")).read_text(encoding="utf-8")
    assert "rule part:" in details and "Finished jobid" in details and "resources: tmpdir" in details


EXPLAINED = "error: explain: config.yaml: steps: got 0 (log: logs/explain.log)"


def test_all_errors_of_a_call_that_keeps_going_stand_at_its_end(say: Say, folder: Path) -> None:
    (folder / "one.wrong").touch()
    (folder / "two.wrong").touch()
    status, lines = say("--keep-going", "join", "results/explained.txt")
    assert status == 1
    assert not any("set -euo pipefail" in line or "At least one job" in line for line in lines)
    assert sorted(lines[-3:]) == [
        EXPLAINED,
        'error: part/one: ended with status 3; its log ends with "progress of one" (log: logs/part/one.log)',
        'error: part/two: ended with status 3; its log ends with "progress of two" (log: logs/part/two.log)',
    ]


def test_a_job_that_succeeds_at_a_later_attempt_is_no_error(say: Say, folder: Path) -> None:
    (folder / "two.wrong").touch()
    snakefile = folder / "Snakefile"
    once = "test ! -e {wildcards.part}.wrong || (rm {wildcards.part}.wrong; exit 3)"
    text = snakefile.read_text(encoding="utf-8")
    snakefile.write_text(text.replace("test ! -e {wildcards.part}.wrong || exit 3", once), encoding="utf-8")
    status, lines = say("--retries", "1", "--keep-going", "join", "results/explained.txt")
    assert status == 1
    assert any(line.endswith("part/two is tried again") for line in lines)
    assert [line for line in lines if line.startswith("error: ") and "got 0" not in line] == []


def test_a_job_of_slurm_has_one_line_with_its_number() -> None:
    lines = JobLines(sys.stderr, dict.values)
    started = {"event": LogEvent.JOB_INFO, "jobid": 7, "rule_name": "pretrain", "wildcards": {"run": "a-s1"}}
    records = [
        {"event": LogEvent.RUN_INFO, "msg": "Job stats: ...", "stats": {"pretrain": 1, "summarise": 1, "total": 2}},
        {"msg": "SLURM run ID: hatchery_1", "levelno": logging.INFO},
        {**started, "local": False},
        {"msg": "Job 7 has been submitted with SLURM jobid 28 (log: /x/28.log)."},
        {**started, "jobid": 8, "rule_name": "summarise", "wildcards": {}, "local": True},
        {**started, "local": False},
        {"msg": "Job 7 has been submitted with SLURM jobid 29 (log: /x/29.log)."},
    ]
    said = [lines.line_of(makeLogRecord(record)) for record in records]
    assert said[0] == "2 jobs to run: 1 pretrain, 1 summarise"
    assert said[1] == "SLURM run ID: hatchery_1"
    assert said[2] == ""
    assert said[3].endswith(" [1/2] pretrain/a-s1 (Slurm job 28)")
    assert said[4].endswith(" [2/2] summarise")
    assert said[5].endswith(" pretrain/a-s1 is tried again")
    assert said[6].endswith(" [1/2] pretrain/a-s1 (Slurm job 29)")


def failed(log: Path, ending: str) -> str:
    return FailedJob("pretrain/x", (log,), ending).line()


def test_a_full_disk_and_too_little_memory_are_told_as_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "x.log"
    log.touch()
    assert failed(log, "ended with status 1").startswith("pretrain/x: ended with status 1; its log is empty")
    full = SimpleNamespace(f_frsize=4096, f_bavail=0, f_files=0, f_favail=0)
    monkeypatch.setattr(os, "statvfs", lambda path: full)
    assert failed(log, "ended with status 1").startswith(
        f"pretrain/x: {tmp_path}: No space left on device; free disk space"
    )
    log.write_text("terminate called after throwing an instance of 'std::bad_alloc'\n", encoding="utf-8")
    assert failed(log, "ended by SIGABRT").startswith("pretrain/x: not enough memory; run again with")


def test_who_calls_twice_is_told_of_the_first_call_and_not_to_unlock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    record = makeLogRecord({"event": LogEvent.ERROR, "msg": str(LockException()), "exception": "LockException"})
    assert "--unlock" in JobLines(sys.stderr, dict.values).line_of(record)
    with subprocess.Popen(["bash", "-c", "exec -a snakemake sleep 60"]) as first:
        deadline = time.monotonic() + 60
        while "--unlock" in (line := JobLines(sys.stderr, dict.values).line_of(record)) and time.monotonic() < deadline:
            time.sleep(0.05)
        first.kill()
    assert f"cannot be locked: another workflow runs in it (process {first.pid}); wait until it ends" in line
    assert "--unlock" not in line and "\n" not in line


def test_a_job_that_a_killed_workflow_left_behind_is_no_workflow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sleeper = f"exec -a snakemake {sys.executable} -c 'print(0, flush=True); import time; time.sleep(60)'"
    for options, found in (("--mode remote", False), ("--cores 1", True)):
        with subprocess.Popen(["bash", "-c", f"{sleeper} {options}"], stdout=subprocess.PIPE) as other:
            assert other.stdout is not None and other.stdout.readline() == b"0\n"
            assert other_workflow() == (other.pid if found else None)
            other.kill()


TRACEBACK = """\
Traceback (most recent call last):
  File "scripts/export_model.py", line 3, in <module>
    raise OSError("x")
During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "scripts/export_model.py", line 5, in <module>
safetensors.SafetensorError: no space left
srun: error: task 0 exited
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 %\rerror: a: b\n", "a: b"),
        ("error: first\nerror: second\nrm: done\n", "second"),
        (TRACEBACK, "safetensors.SafetensorError: no space left"),
        ("", None),
    ],
)
def test_the_last_error_of_a_log(tmp_path: Path, text: str, expected: str | None) -> None:
    (tmp_path / "a.log").write_text(text, encoding="utf-8", newline="")
    assert last_error(tmp_path / "a.log") == expected


def test_without_an_error_the_end_of_the_log_stands_for_it(tmp_path: Path) -> None:
    (tmp_path / "empty.log").touch()
    log = tmp_path / "a.log"
    log.write_text("2026-11-22 16:27:09 training: 71/476 steps\n\n", encoding="utf-8")
    job = FailedJob("pretrain/x", (tmp_path / "none.log", tmp_path / "empty.log", log), "ended by SIGTERM")
    assert job.line().startswith('pretrain/x: ended by SIGTERM; its log ends with "training: 71/476 steps" (log: ')
    stopped = FailedJob("pretrain/x", (log,), "ended with status 75")
    assert stopped.line().startswith("pretrain/x: training: 71/476 steps (log: ")
    silent = FailedJob("pretrain/x", (tmp_path / "none.log",), "ended with status 1")
    assert silent.line() == "pretrain/x: ended with status 1; its log is empty"
    assert FailedJob("pretrain/x", (), message="output is missing").line() == "pretrain/x: output is missing"


@pytest.mark.parametrize(
    ("exception", "ending"),
    [
        ("Command 'x' returned non-zero exit status 3.", "ended with status 3"),
        ("Command 'x' returned non-zero exit status 137.", "killed by SIGKILL, often for lack of memory"),
        ("Command 'x' died with <Signals.SIGTERM: 15>.", "ended by SIGTERM"),
    ],
)
def test_how_a_command_ended_is_told(exception: str, ending: str) -> None:
    lines = JobLines(io.StringIO(), dict.values)
    said = {"jobid": 1, "rule_name": "pretrain", "log": []}
    lines.handle(makeLogRecord({"event": LogEvent.ERROR, "msg": exception, "thread": 1}))
    lines.handle(makeLogRecord({"event": LogEvent.JOB_ERROR, "thread": 1, **said}))
    assert lines.errors() == [f"error: job 1: {ending}; its log is empty"]


def test_a_job_that_slurm_ended_is_told_with_its_state_and_the_log_that_says_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    own, slurms = Path("own.log"), tmp_path / ".snakemake/slurm_logs/rule_pretrain/41.log"
    slurms.parent.mkdir(parents=True)
    own.touch()
    slurms.write_text("srun: error: task 0\n", encoding="utf-8")
    # As the executor for Slurm has it logged.
    words = "SLURM-job '41' failed, SLURM status is: 'TIMEOUT'. Detailed failure reason unavailable"
    said = {"jobid": 1, "rule_name": "pretrain", "rule_msg": words, "log": [str(own), str(slurms)]}
    lines = JobLines(io.StringIO(), dict.values)
    lines.handle(makeLogRecord({"event": LogEvent.JOB_ERROR, **said}))
    ended = "error: job 1: TIMEOUT in Slurm; its log ends with"
    assert lines.errors() == [
        f'{ended} "srun: error: task 0" (log: .snakemake/slurm_logs/rule_pretrain/41.log)',
    ]
    own.write_text("step 7\n", encoding="utf-8")
    assert lines.errors() == [f'{ended} "step 7" (log: own.log)']
