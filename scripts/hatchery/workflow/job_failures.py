"""Finds the reason why a job failed: the last error in its log, the exit status of its command, or Slurm's report.

Commands of Hatchery report a mistake of the user as `error: ...` (`hatchery.command`). Other errors end with Python's
traceback, whose last line names the exception.
"""

import os
import re
import signal
from dataclasses import dataclass
from pathlib import Path

from hatchery.errors import full_disk, memory_refused

ERROR = "error: "
# Number of bytes to read at the end of a log. The error is at the end, and logs of long runs are large.
READ_BYTES = 64 * 1024
_DATE = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ")
_EXCEPTION = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit|Warning)\b(?::.*)?$")
_STATUS = re.compile(r"returned non-zero exit status (-?\d+)|died with <Signals\.(\w+)")
# This pattern matches the state of a Slurm job, in the text that the Slurm executor adds to `LogEvent.JOB_ERROR`.
_SLURM_STATE = re.compile(r"SLURM status is: '(\w+)'")
# If a signal ends a command, the shell's exit status is 128 plus the number of the signal.
_OF_A_SIGNAL = 128
# Description of the end of a command that was stopped and has saved a checkpoint (exit status EX_TEMPFAIL). The command
# has logged why it was stopped, and the next call continues it.
_TO_CONTINUE = f"ended with status {os.EX_TEMPFAIL}"


def last_error(log: Path) -> str | None:
    """Return the last error in a log, without the prefix `error: `; None if there is no error or no log."""
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
    """Return the last line of a log, without the time stamp; None if the log is empty or missing."""
    lines = _end_of(log)
    return _DATE.sub("", lines[-1]) if lines else None


def _end_of(log: Path) -> list[str]:
    """Return the last non-empty lines of a log. If a line was overwritten (progress bar), only its final text is
    returned.
    """
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
    """One failed attempt of a job."""

    name: str
    logs: tuple[Path, ...]
    # How the command ended, such as "ended with status 3" or "TIMEOUT in Slurm"; "" if this is unknown.
    ending: str = ""
    # Reason of the failure in Snakemake's own message, such as a missing output; "" if only the job's log has the
    # reason.
    message: str = ""
    # True if the user stopped Snakemake.
    stopped: bool = False

    @property
    def is_reported(self) -> bool:
        """True if the report at the end of the Snakemake call mentions the job. A job that the user stopped is only
        mentioned if it saved a checkpoint.
        """
        return not self.stopped or self.ending == _TO_CONTINUE

    def line(self) -> str:
        """Return one line: the job, the reason of the failure, and the log with details."""
        there = [log for log in self.logs if log.exists()]
        # The line names the first log that is not empty: the job's own log or, if this log is empty, Slurm's log.
        log = next((log for log in there if last_line(log) is not None), next(iter(there), None))
        reason = self.message
        if not reason and (failing := next((path for path in there if last_error(path) is not None), None)):
            log, reason = failing, last_error(failing) or ""
        if not reason:
            last = last_line(log) if log is not None else None
            end_of_log = f'its log ends with "{last}"' if last is not None else "its log is empty"
            reason = "; ".join(text for text in (self.ending, end_of_log) if text)
            if self.ending == _TO_CONTINUE and last is not None:
                reason = last
            if last is None and (full := full_disk(*(path.parent for path in there))):
                reason = full
        reason = memory_refused(reason) or reason
        return f"{self.name}: {reason}" + (f" (log: {_short(log)})" if log is not None else "")


def _short(path: Path) -> Path:
    """Return a path relative to the current folder. Paths outside of this folder, such as Slurm's logs, stay
    absolute.
    """
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def how_it_ended(exception: str, report: str) -> tuple[str, str]:
    """Return (how the job's command ended, Snakemake's error message); each text is "" if unknown.

    `exception` is the message of Snakemake's exception, and `report` is the executor's report on the job.
    """
    found, state = _STATUS.search(exception), _SLURM_STATE.search(report)
    message = "" if found else " ".join(exception.split())
    return (f"{state[1]} in Slurm" if state else _ending(found)), message


def _ending(found: re.Match[str] | None) -> str:
    """Return a description of how a command ended. `found` is the match of `_STATUS` in an error message; for None,
    return "".
    """
    if found is None:
        return ""
    name, status = found[2], int(found[1] or 0)
    if name is None and status > _OF_A_SIGNAL:
        try:
            name = signal.Signals(status - _OF_A_SIGNAL).name
        except ValueError:
            name = None
    if name == "SIGKILL":
        return "killed by SIGKILL, often for lack of memory"
    return f"ended by {name}" if name else f"ended with status {status}"
