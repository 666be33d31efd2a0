"""A failed job is told in a line: what it is, why it failed, and where its log is."""

from logging import makeLogRecord
from pathlib import Path

import pytest
from snakemake.logging import LogEvent

from hatchery.workflow.failed_jobs import FailedJob, FailedJobs, last_error

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
    failed = FailedJobs()
    failed.handle(makeLogRecord({"event": LogEvent.JOB_ERROR, **said}))
    ended = "error: job 1: TIMEOUT in Slurm; its log ends with"
    assert failed.lines() == [
        f'{ended} "srun: error: task 0" (log: .snakemake/slurm_logs/rule_pretrain/41.log)',
    ]
    own.write_text("step 7\n", encoding="utf-8")
    assert failed.lines() == [f'{ended} "step 7" (log: own.log)']
