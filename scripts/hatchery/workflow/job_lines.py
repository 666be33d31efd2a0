"""What a call of Snakemake says on the terminal: a line for each job, and why jobs failed at the very end.

Snakemake's own words, about ten lines for each job, go to `.snakemake/log/` as before; the options `--verbose`,
`--printshellcmds` and `--quiet` bring them, or less, to the terminal. Warnings and errors always pass.
"""

import logging
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

import psutil
from snakemake.common import NOTHING_TO_BE_DONE_MSG
from snakemake.exceptions import LockException
from snakemake.logging import LogEvent
from snakemake.scheduling.job_scheduler import _ERROR_MSG_FINAL

from hatchery.workflow.interrupts import INTERRUPTED
from hatchery.workflow.job_failures import ERROR, FailedJob, how_it_ended

GO_ON = "Stopped. The same command goes on where this one ended."
# A job that took longer is told when it ends, too.
LONG_SECONDS = 30.0
_HIDDEN = (
    LogEvent.WORKFLOW_STARTED,
    LogEvent.SHELLCMD,
    LogEvent.JOB_STARTED,
    LogEvent.RESOURCES_INFO,
    LogEvent.PROGRESS,
    LogEvent.GROUP_INFO,
)
# What Snakemake ends with when jobs failed; written after `onerror`, so that only here something can stand below it.
_END = "At least one job did not complete successfully"
# `show_result` makes nothing where a link lies already, which Snakemake warns of.
_OF_LINKS = "of rule show_result were not present"
# What the executor for Slurm says has no event.
_SUBMITTED = re.compile(r"Job (\d+) has been submitted with SLURM jobid (\S+)")
_SLURM_RUN, _LOG = "SLURM run ID:", "Complete log(s):"


NamesOf = Callable[[Mapping[str, Any]], Iterable[str]]
"""What the wildcards of a job are called: an address says nothing to a reader."""


def as_they_are(wildcards: Mapping[str, Any]) -> list[str]:
    """The values of wildcards."""
    return [str(value) for value in wildcards.values()]


class JobLines(logging.Handler):
    """Writes Snakemake's records as lines of the terminal, and below its last one the errors of the jobs that failed.

    With `own`, Snakemake's handler of the terminal, the records are written by that one. `names_of` says what the
    wildcards of a job are called.
    """

    def __init__(self, stream: TextIO, names_of: NamesOf = as_they_are, own: logging.Handler | None = None) -> None:
        super().__init__()
        self.name = TERMINAL
        self.failed: list[FailedJob] = []
        self._stream, self._names_of, self._own = stream, names_of, own
        self._names: dict[int, str] = {}
        # An executor logs the exception of a job and then, from the same thread, which job it was.
        self._exceptions: dict[int | None, str] = {}
        self._total = self._started = 0
        self._began: dict[int, float] = {}
        # Lines of jobs that wait for their number in Slurm.
        self._to_submit: dict[int, str] | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line of a record, if it has one."""
        try:
            text = self.line_of(record)
            if self._own is not None:
                is_shown = record.levelno >= self._own.level and self._own.handle(record)
                text = "\n".join(self.errors()) if is_shown and _END in str(record.msg) else ""
            if text:
                self._stream.write(f"{text}\n")
                self._stream.flush()
        except BrokenPipeError:
            raise
        except Exception:
            self.handleError(record)

    def errors(self) -> list[str]:
        """Each job that failed, by its last attempt; after Ctrl-C what a stopped one saved, and how to go on."""
        lines = {
            job.name: job.line() if job.stopped else f"{ERROR}{job.line()}" for job in self.failed if job.is_reported
        }
        return [*lines.values(), *([GO_ON] if INTERRUPTED.is_set() else [])]

    def line_of(self, record: logging.LogRecord) -> str:
        """A record as a line of the terminal, empty where none is shown; notes the jobs that start, end and fail."""
        event, said = getattr(record, "event", None), record.__dict__
        text = str(record.msg or "")
        match event:
            case LogEvent.RUN_INFO:
                return self._planned(said.get("stats") or {})
            case LogEvent.JOB_INFO:
                return self._starts(said)
            case LogEvent.JOB_FINISHED:
                return self._finished(said["job_id"])
            case LogEvent.JOB_ERROR:
                self.failed.append(self._failure(said, self._exceptions.pop(record.thread, "")))
                return self._fails(self._name_of(said["jobid"]))
            case LogEvent.GROUP_ERROR:
                return self._fails(str(said.get("groupid")))
            case LogEvent.ERROR:
                self._exceptions[record.thread] = record.getMessage()
                return self._error(text, str(said.get("exception")))
            case _ if text == _ERROR_MSG_FINAL:
                return ""
            case _ if event in _HIDDEN:
                return ""
        if text.startswith(_SLURM_RUN):
            self._to_submit = {}
            return text
        if (submitted := _SUBMITTED.match(text)) is not None:
            jobid = int(submitted[1])
            line = (self._to_submit or {}).pop(jobid, self._name_of(jobid))
            return _dated(f"{line} (Slurm job {submitted[2]})")
        if text.startswith(_LOG):
            return text.replace(_LOG, "All details:", 1)
        # Of what has no event, people are told what went wrong, what takes minutes, and that there is nothing to do.
        is_told = record.levelno > logging.INFO or record.module == "conda" or text == NOTHING_TO_BE_DONE_MSG
        return text if is_told and _OF_LINKS not in text else ""

    def _planned(self, stats: Any) -> str:
        counts = {str(rule): int(count) for rule, count in dict(stats).items() if rule != "total"}
        self._total = sum(counts.values())
        kinds = ", ".join(f"{count} {rule}" for rule, count in counts.items())
        return f"{self._total} job{'s' if self._total != 1 else ''} to run: {kinds}"

    def _starts(self, said: Mapping[str, Any]) -> str:
        jobid = said["jobid"]
        # Its rule and what its wildcards stand for.
        self._names[jobid] = name = "/".join([said["rule_name"], *self._names_of(said["wildcards"] or {})])
        is_new = jobid not in self._began
        self._started += is_new
        self._began[jobid] = time.monotonic()
        if not is_new:
            return _dated(f"{name} is tried again")
        line = f"[{self._started:{len(str(self._total))}}/{self._total}] {name}"
        if self._to_submit is not None and not said["local"]:
            self._to_submit[jobid] = line
            return ""
        return _dated(line)

    def _finished(self, jobid: int) -> str:
        name, seconds = self._name_of(jobid), time.monotonic() - self._began.get(jobid, time.monotonic())
        # An attempt before had failed.
        self.failed = [job for job in self.failed if job.name != name]
        return _dated(f"{name}: done in {seconds:,.0f} s") if seconds >= LONG_SECONDS else ""

    def _fails(self, name: str) -> str:
        return _dated(f"{name}: {'stopped' if INTERRUPTED.is_set() else 'failed'}")

    def _error(self, text: str, exception: str) -> str:
        if exception == LockException.__name__ and (process := other_workflow()) is not None:
            return (
                f"error: {Path.cwd()}: Directory cannot be locked: another workflow runs in it (process {process}); "
                "wait for its end, or stop it with Ctrl-C"
            )
        if _END in text:
            return "\n".join(self.errors()) or GO_ON
        # The command of a failed job with all its settings; what went wrong is told at the end.
        return "" if "CalledProcessError" in text and exception == "RuleException" else text

    def _failure(self, said: Mapping[str, Any], exception: str) -> FailedJob:
        ending, message = how_it_ended(exception, str(said.get("rule_msg")))
        # Of files with flags Snakemake writes "<path> (<flags>)".
        logs = tuple(Path(str(log).split(" (", 1)[0]) for log in said.get("log") or ())
        return FailedJob(self._name_of(said["jobid"]), logs, ending, message, INTERRUPTED.is_set())

    def _name_of(self, jobid: int) -> str:
        """Of a job that was started."""
        return self._names.get(jobid, f"job {jobid}")


TERMINAL = "DefaultStreamHandler"
"""What Snakemake calls its handler of the terminal."""


def report_jobs(logger: logging.Logger, details: bool, names_of: NamesOf = as_they_are) -> None:
    """Let `logger`, Snakemake's, say a line for each job on its terminal, or with `details` all that it says itself."""
    for position, handler in enumerate(logger.handlers):
        if handler.name == TERMINAL:
            stream = getattr(handler, "stream", sys.stderr)
            logger.handlers[position] = JobLines(stream, names_of, own=handler if details else None)


def other_workflow() -> int | None:
    """The number of another process of Snakemake in this folder, of this machine; None where there is none.

    The Snakemake inside a job, which is told its mode, is none: it goes on when the workflow that sent it was killed.
    """
    own = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    for process in psutil.process_iter(["cmdline", "cwd"]):
        arguments = process.info["cmdline"] or []
        is_workflow = "snakemake" in [Path(word).name for word in arguments[:3]] and "--mode" not in arguments
        if is_workflow and process.pid not in own and process.info["cwd"] == str(Path.cwd()):
            return int(process.pid)
    return None


def _dated(text: str) -> str:
    return f"{datetime.now():%Y-%m-%d %H:%M:%S} {text}"
