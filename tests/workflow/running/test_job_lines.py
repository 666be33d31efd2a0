"""The terminal shows a line for each job, and failed jobs' errors at the end; Snakemake's log contains the rest."""

import io
import logging
import os
import re
import subprocess
import sys
from collections.abc import Callable
from logging import makeLogRecord
from pathlib import Path
from types import SimpleNamespace

import pytest
from snakemake.exceptions import LockException
from snakemake.logging import LogEvent

from hatchery.workflow import job_lines
from hatchery.workflow.job_failures import FailedJob
from hatchery.workflow.job_lines import JobLines

Say = Callable[..., tuple[int, list[str]]]


@pytest.mark.slow
def test_each_job_has_one_line_and_the_details_are_in_the_log(say: Say, folder: Path) -> None:
    status, lines = say("join")
    assert status == 0
    jobs = [line for line in lines if re.match(r"[-\d]+ [:\d]+ \[\d/3\] (part/(one|two)|join)$", line)]
    assert len(jobs) == 3
    assert "3 jobs to run: 2 part, 1 join" in lines
    assert sum("progress of" in line for line in lines) == 2
    # The call itself prints the options that Snakemake found, the plan, and the path of the log.
    assert len(lines) <= 3 + 2 + 3
    details = next((folder / ".snakemake/log").glob("*.log")).read_text(encoding="utf-8")
    assert "rule part:" in details and "Finished jobid" in details and "resources: tmpdir" in details


def test_the_errors_of_last_attempts_stand_at_the_end_and_a_later_success_is_no_error(say: Say, folder: Path) -> None:
    (folder / "one.wrong").touch()
    (folder / "two.once").touch()
    status, lines = say("--retries", "1", "--keep-going", "join", "results/explained.txt")
    assert status == 1
    assert not any("set -euo pipefail" in line or "At least one job" in line for line in lines)
    assert any(line.endswith("part/two is tried again") for line in lines)
    errors = [line for line in lines if line.startswith("error: ") and "(log: " in line]
    assert lines[-2:] == errors and sorted(errors) == [
        "error: explain: config.yaml: steps: got 0 (log: logs/explain.log)",
        'error: part/one: ended with status 3; its log ends with "progress of one" (log: logs/part/one.log)',
    ]


def test_a_job_of_slurm_has_one_line_with_its_number_and_a_long_job_another_at_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr(job_lines.time, "monotonic", lambda: now[0])
    lines = JobLines(sys.stderr, dict.values)
    started = {"event": LogEvent.JOB_INFO, "jobid": 7, "rule_name": "pretrain", "wildcards": {"run": "a-s1"}}
    stats = {"pretrain": 1, "summarise": 1, "total": 2}
    for record, line in (
        (
            {"event": LogEvent.RUN_INFO, "msg": "Job stats: ...", "stats": stats},
            "2 jobs to run: 1 pretrain, 1 summarise",
        ),
        ({"msg": "SLURM run ID: hatchery_1", "levelno": logging.INFO}, "SLURM run ID: hatchery_1"),
        ({**started, "local": False}, ""),
        ({"msg": "Job 7 has been submitted with SLURM jobid 28 (log: x)."}, "[1/2] pretrain/a-s1 (Slurm job 28)"),
        ({**started, "jobid": 8, "rule_name": "summarise", "wildcards": {}, "local": True}, "[2/2] summarise"),
        ({**started, "local": False}, "pretrain/a-s1 is tried again"),
        ({"msg": "Job 7 has been submitted with SLURM jobid 29 (log: x)."}, "[1/2] pretrain/a-s1 (Slurm job 29)"),
        # Records are 10 seconds apart. The second attempt took 20 seconds, and the job of Snakemake's machine 50.
        ({"event": LogEvent.JOB_FINISHED, "job_id": 7}, ""),
        ({"msg": "Nothing", "levelno": logging.INFO}, ""),
        ({"event": LogEvent.JOB_FINISHED, "job_id": 8}, "summarise: done in 50 s"),
    ):
        now[0] += 10
        assert re.sub(r"^[-\d]+ [:\d]+ ", "", lines.line_of(makeLogRecord(record))) == line


@pytest.mark.parametrize(("options", "is_workflow"), [("--cores 1", True), ("--mode remote", False)])
def test_who_calls_twice_hears_of_the_first_call_but_a_job_of_a_killed_workflow_keeps_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str, is_workflow: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    record = makeLogRecord({"event": LogEvent.ERROR, "msg": str(LockException()), "exception": "LockException"})
    sleeper = f"exec -a snakemake {sys.executable} -c 'print(0, flush=True); import time; time.sleep(60)' {options}"
    with subprocess.Popen(["bash", "-c", sleeper], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdout.readline() == b"0\n"
        line = JobLines(sys.stderr, dict.values).line_of(record)
        other.kill()
    told = (
        f"cannot be locked: another workflow runs in this folder (process {other.pid}); wait until that workflow ends"
    )
    assert ("--unlock" in line, told in line, "\n" in line) == (not is_workflow, is_workflow, not is_workflow)


STEPS = "2026-11-22 16:27:09 training: 71/476 steps\n\n"
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
    ("text", "ending", "line"),
    [
        ("1 %\rerror: a: b\n", "ended with status 1", "a: b (log: {})"),
        ("error: first\nerror: second\nrm: done\n", "ended with status 1", "second (log: {})"),
        (TRACEBACK, "ended with status 1", "safetensors.SafetensorError: no space left (log: {})"),
        ("terminate called after 'std::bad_alloc'\n", "ended by SIGABRT", "not enough memory; run again with"),
        (STEPS, "ended by SIGTERM", 'ended by SIGTERM; its log ends with "training: 71/476 steps" (log: {})'),
        # The job was stopped, reports it, and continues in the next call.
        (STEPS, "ended with status 75", "training: 71/476 steps (log: {})"),
        ("", "ended with status 1", "ended with status 1; its log is empty (log: {})"),
        (None, "ended with status 1", "ended with status 1; its log is empty"),
    ],
)
def test_the_last_error_of_a_log_or_else_its_end_is_the_reason(
    tmp_path: Path, text: str | None, ending: str, line: str
) -> None:
    log = tmp_path / "x.log"
    if text is not None:
        log.write_text(text, encoding="utf-8", newline="")
    found = FailedJob("pretrain/x", (tmp_path / "none.log", log), ending).line()
    assert found.startswith(f"pretrain/x: {line.format(log)}")


def test_an_empty_log_on_a_full_disk_is_reported_as_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.log").touch()
    full = SimpleNamespace(f_frsize=4096, f_bavail=0, f_files=0, f_favail=0)
    monkeypatch.setattr(os, "statvfs", lambda path: full)
    line = FailedJob("pretrain/x", (tmp_path / "x.log",), "ended with status 1").line()
    assert line.startswith(f"pretrain/x: {tmp_path}: No space left on device; free disk space")


@pytest.mark.parametrize(
    ("exception", "reason"),
    [
        (
            "Command 'x' returned non-zero exit status 137.",
            "killed by SIGKILL, often for lack of memory; its log is empty",
        ),
        ("Command 'x' died with <Signals.SIGTERM: 15>.", "ended by SIGTERM; its log is empty"),
        ("Missing output files:\nresults/x", "Missing output files: results/x"),
    ],
)
def test_how_a_command_ended_is_told(exception: str, reason: str) -> None:
    lines = JobLines(io.StringIO(), dict.values)
    lines.handle(makeLogRecord({"event": LogEvent.ERROR, "msg": exception}))
    lines.handle(makeLogRecord({"event": LogEvent.JOB_ERROR, "jobid": 1}))
    assert lines.errors() == [f"error: job 1: {reason}"]


def test_a_job_that_slurm_ended_is_told_with_its_state_and_the_log_that_says_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (("own.log", ""), ("slurm.log", "srun: error: task 0\n")):
        Path(name).write_text(text, encoding="utf-8")
    # The executor for Slurm logs these words.
    words = "SLURM-job '41' failed, SLURM status is: 'TIMEOUT'. Detailed failure reason unavailable"
    logs = ["own.log", str(tmp_path / "slurm.log")]
    lines = JobLines(io.StringIO(), dict.values)
    lines.handle(makeLogRecord({"event": LogEvent.JOB_ERROR, "jobid": 1, "rule_msg": words, "log": logs}))
    ended = "error: job 1: TIMEOUT in Slurm; its log ends with"
    assert lines.errors() == [f'{ended} "srun: error: task 0" (log: slurm.log)']
    Path("own.log").write_text("step 7\n", encoding="utf-8")
    assert lines.errors() == [f'{ended} "step 7" (log: own.log)']
