"""What a call of Snakemake says on the terminal: a line for each job, and why jobs failed at the very end.

Snakemake's own words, about ten lines for each job, go to `.snakemake/log/` as before; the options `--verbose`,
`--printshellcmds` and `--quiet` bring them, or less, to the terminal. Warnings and errors always pass.
"""

import logging
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

from snakemake.common import NOTHING_TO_BE_DONE_MSG
from snakemake.exceptions import LockException
from snakemake.logging import LogEvent
from snakemake.scheduling.job_scheduler import _ERROR_MSG_FINAL

from hatchery.workflow.interrupts import INTERRUPTED
from hatchery.workflow.job_failures import ERROR, FailedJob, how_it_ended
from hatchery.workflow.other_workflow import locked_by_another

GO_ON = "Stopped. The same command goes on where this one ended."
# A job that took longer is told when it ends, too.
LONG_SECONDS = 30.0
# What follows has no event, so that the words themselves are looked at. Snakemake ends with this where jobs failed,
# after `onerror`, so that only here something can stand below it.
_END = "At least one job did not complete successfully"
# What the executor for Slurm says of each job, and once, first of all.
_SUBMITTED = re.compile(r"Job (\d+) has been submitted with SLURM jobid (\S+)")
_SLURM_RUN = "SLURM run ID:"
_TOLD = (NOTHING_TO_BE_DONE_MSG, "Complete log(s):", _SLURM_RUN)
# `show_result` makes nothing where a link lies already, which Snakemake warns of.
_OF_LINKS = "of rule show_result were not present"
TERMINAL = "DefaultStreamHandler"
"""What Snakemake calls its handler of the terminal."""

NamesOf = Callable[[Mapping[str, Any]], Iterable[str]]
"""What the wildcards of a job are called: an address says nothing to a reader."""


class JobLines(logging.Handler):
    """Writes Snakemake's records as lines of the terminal, and below its last one the errors of the jobs that failed.

    With `own`, Snakemake's handler of the terminal, the records are written by that one.
    """

    def __init__(self, stream: TextIO, names_of: NamesOf, own: logging.Handler | None = None) -> None:
        super().__init__()
        self.name = TERMINAL
        self.failed: list[FailedJob] = []
        self._stream, self._names_of, self._own = stream, names_of, own
        # Of the jobs that were started, in this order.
        self._names: dict[int, str] = {}
        self._began: dict[int, float] = {}
        # An executor logs the exception of a job and then, from the same thread, which job it was.
        self._exceptions: dict[int | None, str] = {}
        self._total = 0
        self._sends_to_slurm = False

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
        said, text = record.__dict__, str(record.msg or "")
        match said.get("event"):
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
            case None:
                return self._without_event(record, text)
        return ""

    def _without_event(self, record: logging.LogRecord, text: str) -> str:
        """People are told what went wrong, what takes minutes, and that there is nothing to do."""
        self._sends_to_slurm |= text.startswith(_SLURM_RUN)
        if (submitted := _SUBMITTED.match(text)) is not None:
            return _dated(f"{self._numbered(int(submitted[1]))} (Slurm job {submitted[2]})")
        is_told = record.levelno > logging.INFO or record.module == "conda" or text.startswith(_TOLD)
        return text if is_told and text != _ERROR_MSG_FINAL and _OF_LINKS not in text else ""

    def _planned(self, stats: Mapping[str, int]) -> str:
        counts = {rule: count for rule, count in stats.items() if rule != "total"}
        self._total = sum(counts.values())
        kinds = ", ".join(f"{count} {rule}" for rule, count in counts.items())
        return f"{self._total} job{'s' if self._total != 1 else ''} to run: {kinds}"

    def _starts(self, said: Mapping[str, Any]) -> str:
        jobid = said["jobid"]
        is_new = jobid not in self._names
        self._names[jobid] = "/".join([said["rule_name"], *self._names_of(said["wildcards"] or {})])
        self._began[jobid] = time.monotonic()
        if not is_new:
            return _dated(f"{self._names[jobid]} is tried again")
        # The line of a job in Slurm waits for its number there.
        return "" if self._sends_to_slurm and not said["local"] else _dated(self._numbered(jobid))

    def _numbered(self, jobid: int) -> str:
        """The how manieth job of how many this is, and its name."""
        number = list(self._names).index(jobid) + 1
        return f"[{number:{len(str(self._total))}}/{self._total}] {self._names[jobid]}"

    def _finished(self, jobid: int) -> str:
        name, seconds = self._name_of(jobid), time.monotonic() - self._began.get(jobid, time.monotonic())
        # An attempt before had failed.
        self.failed = [job for job in self.failed if job.name != name]
        return _dated(f"{name}: done in {seconds:,.0f} s") if seconds >= LONG_SECONDS else ""

    def _fails(self, name: str) -> str:
        return _dated(f"{name}: {'stopped' if INTERRUPTED.is_set() else 'failed'}")

    def _error(self, text: str, exception: str) -> str:
        if exception == LockException.__name__:
            return locked_by_another() or text
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


def report_jobs(logger: logging.Logger, details: bool, names_of: NamesOf) -> None:
    """Let `logger`, Snakemake's, say a line for each job on its terminal, or with `details` all that it says itself."""
    for position, handler in enumerate(logger.handlers):
        if handler.name == TERMINAL:
            stream = getattr(handler, "stream", sys.stderr)
            logger.handlers[position] = JobLines(stream, names_of, own=handler if details else None)


def _dated(text: str) -> str:
    return f"{datetime.now():%Y-%m-%d %H:%M:%S} {text}"
