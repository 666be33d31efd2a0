"""Snakemake's log on the terminal: one line per job, and at the end the reasons why jobs failed.

Snakemake's original messages, about ten lines per job, are still written to `.snakemake/log/`. With the options
`--verbose`, `--printshellcmds`, `--debug-dag` or `--quiet`, the terminal shows these messages instead of the lines per
job; `--quiet` hides some or all of these messages. Without `--quiet`, warnings and errors are always shown.
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

GO_ON = "Stopped. The same command continues where this one ended."
# If a job took at least this number of seconds, a second line is shown when the job ends.
LONG_SECONDS = 30.0
# Part of the message that Snakemake logs last if jobs failed, after `onerror`. The reasons of the failures replace this
# message, so that they are at the end of the output.
_END = "At least one job did not complete successfully"
# Messages of the Slurm executor: `_SUBMITTED` is logged for each submitted job, `_SLURM_RUN` once at the beginning.
_SUBMITTED = re.compile(r"Job (\d+) has been submitted with SLURM jobid (\S+)")
_SLURM_RUN = "SLURM run ID:"
_PASSED_ON = (NOTHING_TO_BE_DONE_MSG, "Complete log(s):", _SLURM_RUN)
# Part of a hidden warning, which reports no problem: Snakemake warns if the rule `show_result` writes nothing because
# the link already exists.
_LINK_WARNING = "of rule show_result were not present"
TERMINAL = "DefaultStreamHandler"
"""Name of Snakemake's logging handler for the terminal."""

NamesOf = Callable[[Mapping[str, Any]], Iterable[str]]
"""Type of a function that maps the wildcards of a job to readable names, for example a model's address (the name of its
folder) to the model's name.
"""


class JobLines(logging.Handler):
    """Logging handler that writes one line per job to the terminal, and at the end the errors of failed jobs.

    `own` is Snakemake's own handler for the terminal, or None. With `own`, the terminal shows Snakemake's original
    messages instead of the line per job, followed by the errors of failed jobs.
    """

    def __init__(self, stream: TextIO, names_of: NamesOf, own: logging.Handler | None = None) -> None:
        super().__init__()
        self.name = TERMINAL
        self.failed: list[FailedJob] = []
        self._stream, self._names_of, self._own = stream, names_of, own
        # Names of started jobs by Snakemake's job number, in the order in which the jobs started.
        self._names: dict[int, str] = {}
        self._began: dict[int, float] = {}
        # Last exception of each thread. An executor logs a job's exception first and then, from the same thread, the
        # number of the failed job; so the thread shows which job raised the exception.
        self._exceptions: dict[int | None, str] = {}
        self._total = 0
        self._sends_to_slurm = False

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line of text for a log record, unless the record is not shown."""
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
        """Return one line for the last attempt of each failed job.

        After Ctrl-C, the lines name saved checkpoints, and the last line says that the same command continues the run.
        """
        lines = {
            job.name: job.line() if job.stopped else f"{ERROR}{job.line()}" for job in self.failed if job.is_reported
        }
        return [*lines.values(), *([GO_ON] if INTERRUPTED.is_set() else [])]

    def line_of(self, record: logging.LogRecord) -> str:
        """Return the line of text for a log record (empty if the record is not shown), and update the state of jobs."""
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
        """Return the text of a log record that has no job event; empty if the record is not shown.

        Shown are: warnings; errors; messages on conda; the path of the log; the run id that all Slurm jobs of this
        Snakemake call share; the message that no job needs to run. If the record reports a job's submission to Slurm,
        return the line of this job.
        """
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
        # The line of a Slurm job is shown later, when its Slurm job id is known.
        return "" if self._sends_to_slurm and not fields["local"] else _dated(self._numbered(jobid))

    def _numbered(self, jobid: int) -> str:
        """Return `[3/10] name`: a job's index in the order of starts, the number of all jobs, and the job's name."""
        number = list(self._names).index(jobid) + 1
        return f"[{number:{len(str(self._total))}}/{self._total}] {self._names[jobid]}"

    def _finished(self, jobid: int) -> str:
        name, seconds = self._name_of(jobid), time.monotonic() - self._began.get(jobid, time.monotonic())
        # Forget failed attempts of this job, because a later attempt has succeeded.
        self.failed = [job for job in self.failed if job.name != name]
        return _dated(f"{name}: done in {seconds:,.0f} s") if seconds >= LONG_SECONDS else ""

    def _fails(self, name: str) -> str:
        return _dated(f"{name}: {'stopped' if INTERRUPTED.is_set() else 'failed'}")

    def _error(self, text: str, exception: str) -> str:
        if exception == LockException.__name__:
            return locked_by_another() or text
        if _END in text:
            return "\n".join(self.errors()) or GO_ON
        # Hide the message with the long command of a failed job, because the reason of the failure is shown at the end.
        return "" if "CalledProcessError" in text and exception == "RuleException" else text

    def _failure(self, fields: Mapping[str, Any], exception: str) -> FailedJob:
        ending, message = how_it_ended(exception, str(fields.get("rule_msg")))
        # Remove flags from the paths of logs: Snakemake writes a file that has flags as "<path> (<flags>)".
        logs = tuple(Path(str(log).split(" (", 1)[0]) for log in fields.get("log") or ())
        return FailedJob(self._name_of(fields["jobid"]), logs, ending, message, INTERRUPTED.is_set())

    def _name_of(self, jobid: int) -> str:
        """Return the name of a started job, or `job <number>` if the job is unknown."""
        return self._names.get(jobid, f"job {jobid}")


def report_jobs(logger: logging.Logger, details: bool, names_of: NamesOf) -> None:
    """Make Snakemake's logger show one line per job on the terminal.

    If `details` is true, the logger shows Snakemake's original messages, and at the end the errors of failed jobs.
    """
    for position, handler in enumerate(logger.handlers):
        if handler.name == TERMINAL:
            stream = getattr(handler, "stream", sys.stderr)
            logger.handlers[position] = JobLines(stream, names_of, own=handler if details else None)


def _dated(text: str) -> str:
    return f"{datetime.now():%Y-%m-%d %H:%M:%S} {text}"
