"""Snakemake's log on the terminal: one line for each job, and the reasons of failed jobs at the very end.

Snakemake's own records, about ten lines for each job, still go to `.snakemake/log/`. The options `--verbose` and
`--printshellcmds` show them on the terminal; `--quiet` shows less. Warnings and errors are always shown.
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
# The end of a job is shown, too, if the job took at least this time.
LONG_SECONDS = 30.0
# Beginnings of records without an event. Snakemake logs the first one last if jobs failed, after `onerror`; only then
# can the reasons be the last lines of the terminal.
_END = "At least one job did not complete successfully"
# Records of the Slurm executor: for each job, and one at the beginning.
_SUBMITTED = re.compile(r"Job (\d+) has been submitted with SLURM jobid (\S+)")
_SLURM_RUN = "SLURM run ID:"
_PASSED_ON = (NOTHING_TO_BE_DONE_MSG, "Complete log(s):", _SLURM_RUN)
# `show_result` makes nothing if the link exists already, and Snakemake warns about that.
_LINK_WARNING = "of rule show_result were not present"
TERMINAL = "DefaultStreamHandler"
"""Name of Snakemake's handler for the terminal."""

NamesOf = Callable[[Mapping[str, Any]], Iterable[str]]
"""Type of a function that returns readable names for the wildcards of a job, such as a model for its address."""


class JobLines(logging.Handler):
    """Writes Snakemake's records as lines of the terminal, followed by the errors of failed jobs.

    With `own`, Snakemake's handler of the terminal, the records are written by that handler.
    """

    def __init__(self, stream: TextIO, names_of: NamesOf, own: logging.Handler | None = None) -> None:
        super().__init__()
        self.name = TERMINAL
        self.failed: list[FailedJob] = []
        self._stream, self._names_of, self._own = stream, names_of, own
        # Started jobs, in the order of their start.
        self._names: dict[int, str] = {}
        self._began: dict[int, float] = {}
        # An executor logs the exception of a job first, and then, from the same thread, the job's number.
        self._exceptions: dict[int | None, str] = {}
        self._total = 0
        self._sends_to_slurm = False

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line of a record, if there is one."""
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
        """Return a line for each failed job's last attempt; after Ctrl-C, for saved checkpoints and how to continue."""
        lines = {
            job.name: job.line() if job.stopped else f"{ERROR}{job.line()}" for job in self.failed if job.is_reported
        }
        return [*lines.values(), *([GO_ON] if INTERRUPTED.is_set() else [])]

    def line_of(self, record: logging.LogRecord) -> str:
        """Return the terminal's line for a record, empty if it is not shown, and update the state of jobs."""
        fields, text = record.__dict__, str(record.msg or "")
        match fields.get("event"):
            case LogEvent.RUN_INFO:
                return self._planned(fields.get("stats") or {})
            case LogEvent.JOB_INFO:
                return self._starts(fields)
            case LogEvent.JOB_FINISHED:
                return self._finished(fields["job_id"])
            case LogEvent.JOB_ERROR:
                self.failed.append(self._failure(fields, self._exceptions.pop(record.thread, "")))
                return self._fails(self._name_of(fields["jobid"]))
            case LogEvent.GROUP_ERROR:
                return self._fails(str(fields.get("groupid")))
            case LogEvent.ERROR:
                self._exceptions[record.thread] = record.getMessage()
                return self._error(text, str(fields.get("exception")))
            case None:
                return self._without_event(record, text)
        return ""

    def _without_event(self, record: logging.LogRecord, text: str) -> str:
        """Return the text of a record without an event if it reports an error, slow work or an empty plan."""
        self._sends_to_slurm |= text.startswith(_SLURM_RUN)
        if (submitted := _SUBMITTED.match(text)) is not None:
            return _dated(f"{self._numbered(int(submitted[1]))} (Slurm job {submitted[2]})")
        is_shown = record.levelno > logging.INFO or record.module == "conda" or text.startswith(_PASSED_ON)
        return text if is_shown and text != _ERROR_MSG_FINAL and _LINK_WARNING not in text else ""

    def _planned(self, stats: Mapping[str, int]) -> str:
        counts = {rule: count for rule, count in stats.items() if rule != "total"}
        self._total = sum(counts.values())
        kinds = ", ".join(f"{count} {rule}" for rule, count in counts.items())
        return f"{self._total} job{'s' if self._total != 1 else ''} to run: {kinds}"

    def _starts(self, fields: Mapping[str, Any]) -> str:
        jobid = fields["jobid"]
        is_new = jobid not in self._names
        self._names[jobid] = "/".join([fields["rule_name"], *self._names_of(fields["wildcards"] or {})])
        self._began[jobid] = time.monotonic()
        if not is_new:
            return _dated(f"{self._names[jobid]} is tried again")
        # The line of a job in Slurm is shown later, when its number in Slurm is known.
        return "" if self._sends_to_slurm and not fields["local"] else _dated(self._numbered(jobid))

    def _numbered(self, jobid: int) -> str:
        """Return the position of a job among all jobs, and its name."""
        number = list(self._names).index(jobid) + 1
        return f"[{number:{len(str(self._total))}}/{self._total}] {self._names[jobid]}"

    def _finished(self, jobid: int) -> str:
        name, seconds = self._name_of(jobid), time.monotonic() - self._began.get(jobid, time.monotonic())
        # An earlier attempt had failed.
        self.failed = [job for job in self.failed if job.name != name]
        return _dated(f"{name}: done in {seconds:,.0f} s") if seconds >= LONG_SECONDS else ""

    def _fails(self, name: str) -> str:
        return _dated(f"{name}: {'stopped' if INTERRUPTED.is_set() else 'failed'}")

    def _error(self, text: str, exception: str) -> str:
        if exception == LockException.__name__:
            return locked_by_another() or text
        if _END in text:
            return "\n".join(self.errors()) or GO_ON
        # The command of a failed job with all its settings is hidden; the reason of the failure is shown at the end.
        return "" if "CalledProcessError" in text and exception == "RuleException" else text

    def _failure(self, fields: Mapping[str, Any], exception: str) -> FailedJob:
        ending, message = how_it_ended(exception, str(fields.get("rule_msg")))
        # For files with flags, Snakemake writes "<path> (<flags>)".
        logs = tuple(Path(str(log).split(" (", 1)[0]) for log in fields.get("log") or ())
        return FailedJob(self._name_of(fields["jobid"]), logs, ending, message, INTERRUPTED.is_set())

    def _name_of(self, jobid: int) -> str:
        """Return the name of a started job."""
        return self._names.get(jobid, f"job {jobid}")


def report_jobs(logger: logging.Logger, details: bool, names_of: NamesOf) -> None:
    """Make `logger`, Snakemake's, show one line for each job on its terminal, or with `details` all of its records."""
    for position, handler in enumerate(logger.handlers):
        if handler.name == TERMINAL:
            stream = getattr(handler, "stream", sys.stderr)
            logger.handlers[position] = JobLines(stream, names_of, own=handler if details else None)


def _dated(text: str) -> str:
    return f"{datetime.now():%Y-%m-%d %H:%M:%S} {text}"
