"""What a call of Snakemake says on the terminal: a line for each job, and what failed at the very end.

Snakemake's own words, about ten lines for each job, go to `.snakemake/log/` as before; the options `--verbose`,
`--printshellcmds` and `--quiet` bring them, or less, to the terminal. Warnings and errors always pass.
"""

import logging
import os
import re
import sys
import threading
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

import psutil
from snakemake.logging import LogEvent

from hatchery.workflow.failed_jobs import GO_ON, INTERRUPTED, FailedJobs, Words, as_they_are

# A job that took longer is told when it ends, too.
LONG_SECONDS = 30.0
# Of what has no event of its own.
_NOISE = re.compile(
    r"Building DAG|Using shell|Select jobs|(Conda environments|Singularity containers): ignored|Shutting down|"
    r"Elapsed time|Group jobs: inactive|Activating conda environment|Removing output files of failed job|"
    r"Assuming unrestricted|Cleaning up SLURM log files|Storing output in storage|Exiting because a job|"
    r"Warning: the following output files of rule show_result were not present"
)
_HIDDEN = (
    LogEvent.WORKFLOW_STARTED,
    LogEvent.SHELLCMD,
    LogEvent.JOB_STARTED,
    LogEvent.RESOURCES_INFO,
    LogEvent.PROGRESS,
    LogEvent.GROUP_INFO,
)
_SUBMITTED = re.compile(r"Job (\d+) has been submitted with SLURM jobid (\S+)")
_AGAIN = re.compile(r"Trying to restart job (\d+)")
# What Snakemake ends with when jobs failed; written after `onerror`, so that only here something can stand below it.
_END = "At least one job did not complete successfully"


class JobLines(logging.Formatter):
    """Snakemake's records as lines of the terminal; an empty text is a record that is not shown."""

    def __init__(self, failed: FailedJobs) -> None:
        super().__init__()
        self._failed = failed
        self._total = self._started = 0
        self._began: dict[int, float] = {}
        # Lines of jobs that wait for their number in Slurm.
        self._to_submit: dict[int, str] | None = None

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        event, said = getattr(record, "event", None), record.__dict__
        text = str(record.msg or "")
        match event:
            case LogEvent.RUN_INFO:
                return self._planned(said.get("stats") or {})
            case LogEvent.JOB_INFO:
                return self._starts(said)
            case LogEvent.JOB_FINISHED:
                return self._finished(said["job_id"])
            case LogEvent.JOB_ERROR | LogEvent.GROUP_ERROR:
                return self._fails(said)
            case LogEvent.ERROR:
                return self._error(text, str(said.get("exception")))
            case _ if event in _HIDDEN:
                return ""
        if text.startswith("SLURM run ID:"):
            self._to_submit = {}
        if (submitted := _SUBMITTED.match(text)) is not None:
            jobid = int(submitted[1])
            line = (self._to_submit or {}).pop(jobid, self._failed.name_of(jobid))
            return _dated(f"{line} (Slurm job {submitted[2]})")
        if (again := _AGAIN.match(text)) is not None:
            return _dated(f"{self._failed.name_of(int(again[1]))} is tried again")
        if text.startswith("Complete log(s):"):
            return text.replace("Complete log(s):", "All details:", 1)
        return "" if _NOISE.match(text) else text

    def _planned(self, stats: Any) -> str:
        counts = {str(rule): int(count) for rule, count in dict(stats).items() if rule != "total"}
        self._total = sum(counts.values())
        kinds = ", ".join(f"{count} {rule}" for rule, count in counts.items())
        return f"{self._total} job{'s' if self._total != 1 else ''} to run: {kinds}"

    def _starts(self, said: Mapping[str, Any]) -> str:
        jobid = said["jobid"]
        again = jobid in self._began
        self._began[jobid] = time.monotonic()
        self._started += not again
        width = len(str(self._total))
        line = f"[{self._started:{width}}/{self._total}] {self._failed.job_name(said['rule_name'], said['wildcards'])}"
        if self._to_submit is not None and not said["local"]:
            self._to_submit[jobid] = line
            return ""
        return _dated(line)

    def _finished(self, jobid: int) -> str:
        seconds = time.monotonic() - self._began.get(jobid, time.monotonic())
        return _dated(f"{self._failed.name_of(jobid)}: done in {seconds:,.0f} s") if seconds >= LONG_SECONDS else ""

    def _fails(self, said: Mapping[str, Any]) -> str:
        name = self._failed.name_of(said["jobid"]) if "jobid" in said else str(said.get("groupid"))
        return _dated(f"{name}: {'stopped' if INTERRUPTED.is_set() else 'failed'}")

    def _error(self, text: str, exception: str) -> str:
        if "cannot be locked" in text and (process := other_workflow()) is not None:
            return (
                f"error: {Path.cwd()}: Directory cannot be locked: another workflow runs in it (process {process}); "
                "wait for its end, or stop it with Ctrl-C"
            )
        if _END in text:
            return "\n".join(self._failed.lines()) or GO_ON
        # The command of a failed job with all its settings; what went wrong is told at the end.
        return "" if "CalledProcessError" in text and exception == "RuleException" else text


class LastWords(logging.Formatter):
    """Snakemake's own formatter, with the errors of failed jobs below everything that it says."""

    def __init__(self, failed: FailedJobs, own: logging.Formatter) -> None:
        super().__init__()
        self._failed, self._own = failed, own

    def format(self, record: logging.LogRecord) -> str:
        """Snakemake's text, and the errors below its last one."""
        text = self._own.format(record)
        return "\n".join([text, *self._failed.lines()]) if text and _END in text else text


class TerminalHandler(logging.StreamHandler[TextIO]):
    """Writes what the formatter has something to say of."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self.name = "DefaultStreamHandler"
        self._one_at_a_time = threading.Lock()

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line of a record, if it has one."""
        with self._one_at_a_time:
            try:
                text = self.format(record)
                if text:
                    self.stream.write(text + self.terminator)
                    self.flush()
            except BrokenPipeError:
                raise
            except Exception:
                self.handleError(record)


def report_jobs(logger: logging.Logger, details: bool, words: Words = as_they_are) -> FailedJobs:
    """Let `logger`, Snakemake's, say a line for each job on its terminal, or with `details` all that it says itself."""
    failed = FailedJobs(words)
    # Before the others, which ask it.
    logger.handlers.insert(0, failed)
    for position, handler in enumerate(logger.handlers):
        if handler.name != "DefaultStreamHandler":
            continue
        if details:
            handler.setFormatter(LastWords(failed, handler.formatter or logging.Formatter()))
        else:
            stream = getattr(handler, "stream", sys.stderr)
            logger.handlers[position] = replacement = TerminalHandler(stream)
            replacement.setFormatter(JobLines(failed))
    return failed


def other_workflow() -> int | None:
    """The number of another process of Snakemake in this folder, of this machine; None where there is none.

    The Snakemake inside a job, which is told its mode, is none: it goes on when the workflow that sent it was killed.
    """
    own = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    for process in psutil.process_iter(["cmdline", "cwd"]):
        words = process.info["cmdline"] or []
        is_workflow = "snakemake" in [Path(word).name for word in words[:3]] and "--mode" not in words
        if is_workflow and process.pid not in own and process.info["cwd"] == str(Path.cwd()):
            return int(process.pid)
    return None


def _dated(text: str) -> str:
    return f"{datetime.now():%Y-%m-%d %H:%M:%S} {text}"
