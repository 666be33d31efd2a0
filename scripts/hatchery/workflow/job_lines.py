"""What a call of Snakemake says on the terminal: a line for each job, and why jobs failed at the very end.

Snakemake's own words, about ten lines for each job, go to `.snakemake/log/` as before; the options `--verbose`,
`--printshellcmds` and `--quiet` bring them, or less, to the terminal. Warnings and errors always pass.

Why a job failed is the last error in its log: commands end a user's mistake with `error: ...` (`hatchery.command`),
everything else with Python's traceback, whose last line names the exception.
"""

import logging
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

import psutil
from snakemake.logging import LogEvent

from hatchery.errors import full_disk, memory_refused

ERROR = "error: "
GO_ON = "Stopped. The same command goes on where this one ended."
INTERRUPTED = threading.Event()
"""Whether the user has stopped this call: what ends then was stopped, and did not fail."""
# Only the end of a log is read: the error stands there, and logs of long runs are long.
READ_BYTES = 64 * 1024
_DATE = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ")
_EXCEPTION = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit|Warning)\b(?::.*)?$")
_STATUS = re.compile(r"returned non-zero exit status (-?\d+)|died with <Signals\.(\w+)")
# What the executor for Slurm says of a job, beside the text of `LogEvent.JOB_ERROR`.
_SLURM_STATE = re.compile(r"SLURM status is: '(\w+)'")
# A shell adds this to the number of the signal that ended a command.
_OF_A_SIGNAL = 128
# A command that leaves with EX_TEMPFAIL has said why, and the same command goes on with its work.
_TO_GO_ON = f"ended with status {os.EX_TEMPFAIL}"


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


def last_error(log: Path) -> str | None:
    """The error that a log ends with, without `error: `; None where there is none or no log."""
    lines = _end_of(log)
    for line in reversed(lines):
        if line.startswith(ERROR):
            return line.removeprefix(ERROR)
    starts = [number for number, line in enumerate(lines) if line.startswith("Traceback (most recent call last)")]
    for line in lines[starts[-1] :] if starts else []:
        if _EXCEPTION.match(line):
            return line
    return None


def last_line(log: Path) -> str | None:
    """What a log ends with, without the time of a dated line; None where it is empty or missing."""
    lines = _end_of(log)
    return _DATE.sub("", lines[-1]) if lines else None


def _end_of(log: Path) -> list[str]:
    """The last lines that say something; of a line that overwrites itself, its last state."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - READ_BYTES))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return []
    lines = (line.rstrip("\r").rsplit("\r", 1)[-1].rstrip() for line in text.split("\n"))
    return [line for line in lines if line]


@dataclass(frozen=True)
class FailedJob:
    """One attempt of a job that failed."""

    name: str
    logs: tuple[Path, ...]
    # How its command ended, such as "ended with status 3" or "TIMEOUT in Slurm"; "" where it failed otherwise.
    ending: str = ""
    # What Snakemake says, such as of missing output; "" where the job's own log must explain.
    message: str = ""
    # By the user, who stopped the whole call.
    stopped: bool = False

    @property
    def is_reported(self) -> bool:
        """Whether there is something to say at the end: of a job that the user stopped only what it saved."""
        return not self.stopped or self.ending == _TO_GO_ON

    def line(self) -> str:
        """What failed, why, and where to read more."""
        there = [log for log in self.logs if log.exists()]
        # Where the job's own log is silent, that of Slurm is the one to read.
        log = next((log for log in there if last_line(log) is not None), next(iter(there), None))
        reason = self.message
        if not reason and (failing := next((path for path in there if last_error(path) is not None), None)):
            log, reason = failing, last_error(failing) or ""
        if not reason:
            said = last_line(log) if log is not None else None
            words = f'its log ends with "{said}"' if said is not None else "its log is empty"
            reason = "; ".join(text for text in (self.ending, words) if text)
            if self.ending == _TO_GO_ON and said is not None:
                reason = said
            if said is None and (full := full_disk(*(path.parent for path in there))):
                reason = full
        reason = memory_refused(reason) or reason
        return f"{self.name}: {reason}" + (f" (log: {_short(log)})" if log is not None else "")


Words = Callable[[Mapping[str, Any]], Iterable[str]]
"""What the wildcards of a job are called: an address says nothing to a reader."""


def as_they_are(wildcards: Mapping[str, Any]) -> list[str]:
    """The values of wildcards."""
    return [str(value) for value in wildcards.values()]


class JobLines(logging.Handler):
    """Writes Snakemake's records as lines of the terminal, and below its last one the errors of the jobs that failed.

    With `own`, Snakemake's handler of the terminal, the records are written by that one. `words` name the wildcards of
    a job.
    """

    def __init__(self, stream: TextIO, words: Words = as_they_are, own: logging.Handler | None = None) -> None:
        super().__init__()
        self.name = TERMINAL
        self.failed: list[FailedJob] = []
        self._stream, self._words, self._own = stream, words, own
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
        told = {
            job.name: job.line() if job.stopped else f"{ERROR}{job.line()}" for job in self.failed if job.is_reported
        }
        return [*told.values(), *([GO_ON] if INTERRUPTED.is_set() else [])]

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
            case _ if event in _HIDDEN:
                return ""
        if text.startswith("SLURM run ID:"):
            self._to_submit = {}
        if (submitted := _SUBMITTED.match(text)) is not None:
            jobid = int(submitted[1])
            line = (self._to_submit or {}).pop(jobid, self._name_of(jobid))
            return _dated(f"{line} (Slurm job {submitted[2]})")
        if (again := _AGAIN.match(text)) is not None:
            return _dated(f"{self._name_of(int(again[1]))} is tried again")
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
        # Its rule and what its wildcards stand for.
        self._names[jobid] = name = "/".join([said["rule_name"], *self._words(said["wildcards"] or {})])
        self._started += jobid not in self._began
        self._began[jobid] = time.monotonic()
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
        if "cannot be locked" in text and (process := other_workflow()) is not None:
            return (
                f"error: {Path.cwd()}: Directory cannot be locked: another workflow runs in it (process {process}); "
                "wait for its end, or stop it with Ctrl-C"
            )
        if _END in text:
            return "\n".join(self.errors()) or GO_ON
        # The command of a failed job with all its settings; what went wrong is told at the end.
        return "" if "CalledProcessError" in text and exception == "RuleException" else text

    def _failure(self, said: Mapping[str, Any], exception: str) -> FailedJob:
        found = _STATUS.search(exception)
        message = "" if found else " ".join(exception.split())
        # Of files with flags Snakemake writes "<path> (<flags>)".
        logs = tuple(Path(str(log).split(" (", 1)[0]) for log in said.get("log") or ())
        state = _SLURM_STATE.search(str(said.get("rule_msg")))
        ending = f"{state[1]} in Slurm" if state else _ending(found)
        return FailedJob(self._name_of(said["jobid"]), logs, ending, message, INTERRUPTED.is_set())

    def _name_of(self, jobid: int) -> str:
        """Of a job that was started."""
        return self._names.get(jobid, f"job {jobid}")


TERMINAL = "DefaultStreamHandler"
"""What Snakemake calls its handler of the terminal."""


def report_jobs(logger: logging.Logger, details: bool, words: Words = as_they_are) -> None:
    """Let `logger`, Snakemake's, say a line for each job on its terminal, or with `details` all that it says itself."""
    for position, handler in enumerate(logger.handlers):
        if handler.name == TERMINAL:
            stream = getattr(handler, "stream", sys.stderr)
            logger.handlers[position] = JobLines(stream, words, own=handler if details else None)


def _short(path: Path) -> Path:
    """A path as it can be typed here; Slurm's logs are told with the whole path."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _ending(found: re.Match[str] | None) -> str:
    """How a command ended, by the words of its exception."""
    if found is None:
        return ""
    name, status = found[2], int(found[1] or 0)
    if name is None and status > _OF_A_SIGNAL:
        try:
            name = signal.Signals(status - _OF_A_SIGNAL).name
        except ValueError:
            name = None
    if name == "SIGKILL":
        return "killed by SIGKILL, often for want of memory"
    return f"ended by {name}" if name else f"ended with status {status}"


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
