"""`make log` tells what failed in the last run, error first, whichever rule it was."""

from logging import makeLogRecord
from pathlib import Path

import pytest
from snakemake.logging import LogEvent

from hatchery.workflow.external import Answer
from hatchery.workflow.failed_jobs import FailedJob, FailedJobs, last_error
from hatchery.workflow.log_text import find_logs, last_run, what_failed

RUN_LOG = """\
[Sun Nov 22 15:38:41 2026]
Error in rule pretrain:
    jobid: 3
    input: results/settings.json
    output: results/x/pretraining/a-s1/manifest.json
    log: logs/pretrain/x/a-s1.log, {here}/.snakemake/slurm_logs/41.log (check log file(s) for error details)
    shell:
        python ... (command exited with non-zero exit code)
[Sun Nov 22 15:38:42 2026]
Error in rule prepare:
    jobid: 4
    log: logs/prepare.log (check log file(s) for error details)
Trying to restart job 4.
Finished jobid: 4 (Rule: prepare)
"""
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


@pytest.fixture
def failed_run(small_workflow: Path) -> Path:
    """The small workflow after a run in which a pretraining failed, and another job only at first."""
    for name in ("logs/pretrain/x", ".snakemake/log"):
        (small_workflow / name).mkdir(parents=True)
    (small_workflow / "logs/pretrain/x/a-s1.log").write_text("step 1\nerror: disk: full\nbye\n", encoding="utf-8")
    (small_workflow / ".snakemake/log/2026-11-20T150127.1.snakemake.log").write_text("old", encoding="utf-8")
    run = small_workflow / ".snakemake/log/2026-11-21T150127.1.snakemake.log"
    run.write_text(RUN_LOG.format(here=small_workflow), encoding="utf-8")
    return small_workflow


def test_the_last_run_has_the_jobs_that_failed_for_good(failed_run: Path) -> None:
    run = last_run()
    assert run is not None
    assert [job.name for job in run.failed] == ["pretrain/x/a-s1"]


def test_without_a_target_the_errors_of_the_last_run_are_told(failed_run: Path) -> None:
    text = what_failed(lines=2)
    assert text.startswith("1 job of the last run failed (.snakemake/log/2026-11-21T150127.1.snakemake.log)\n")
    assert "error: pretrain/x/a-s1: disk: full (log: logs/pretrain/x/a-s1.log)\n" in text
    assert text.endswith("| error: disk: full\n             | bye\n")


def test_a_result_that_was_not_reached_leads_to_what_failed_before_it(failed_run: Path) -> None:
    text = find_logs("results/x/summary.csv", lambda command: Answer("", "no Slurm"), lines=1)
    assert "logs/summarise/x.log  (not written yet)" in text
    assert "error: pretrain/x/a-s1: disk: full" in text


def test_the_error_of_a_job_stands_before_its_last_lines(failed_run: Path) -> None:
    text = find_logs("pretrain/x/a-s1", lambda command: Answer("", "no Slurm"), lines=1)
    assert "  log        logs/pretrain/x/a-s1.log\n  error      disk: full\n             | bye\n" in text


def test_a_folder_without_runs_says_so(small_workflow: Path) -> None:
    assert what_failed(lines=1) == "nothing has run in this folder yet\n"


def test_a_run_without_failures_shows_its_end(failed_run: Path) -> None:
    (failed_run / ".snakemake/log/2026-11-22T150127.1.snakemake.log").write_text("Nothing to be done\n", "utf-8")
    assert "| Nothing to be done\n" in what_failed(lines=1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 %\rerror: a: b\n", "a: b"),
        ("error: first\nerror: second\nrm: done\n", "second"),
        (TRACEBACK, "safetensors.SafetensorError: no space left"),
        ("Traceback (most recent call last):\n  File\nKeyboardInterrupt\n", "KeyboardInterrupt"),
        ("all is well\n", None),
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
        ("Command 'x' returned non-zero exit status 137.", "killed by SIGKILL, often for want of memory"),
        ("Command 'x' died with <Signals.SIGTERM: 15>.", "ended by SIGTERM"),
        ("Command 'x' returned non-zero exit status 255.", "ended with status 255"),
    ],
)
def test_how_a_command_ended_is_told(exception: str, ending: str) -> None:
    failed = FailedJobs()
    said = {"jobid": 1, "rule_name": "pretrain", "log": []}
    failed.handle(makeLogRecord({"event": LogEvent.ERROR, "msg": exception, "thread": 1}))
    failed.handle(makeLogRecord({"event": LogEvent.JOB_ERROR, "thread": 1, **said}))
    assert failed.lines() == [f"error: job 1: {ending}; its log is empty"]
