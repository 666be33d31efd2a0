"""Reasons why a job failed: the last error in its log, the exit status of its command, and Slurm's report.

Commands report a user's mistake as `error: ...` (`hatchery.command`). All other errors end with Python's traceback,
whose last line names the exception.
"""

import os
import re
import signal
from dataclasses import dataclass
from pathlib import Path

from hatchery.errors import full_disk, memory_refused

ERROR = "error: "
# Only the end of a log is read: the error is there, and logs of long runs are large.
READ_BYTES = 64 * 1024
_DATE = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ")
_EXCEPTION = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit|Warning)\b(?::.*)?$")
_STATUS = re.compile(r"returned non-zero exit status (-?\d+)|died with <Signals\.(\w+)")
# The report on a job that the Slurm executor adds to the text of `LogEvent.JOB_ERROR`.
_SLURM_STATE = re.compile(r"SLURM status is: '(\w+)'")
# A shell adds 128 to the number of the signal that ended a command.
_OF_A_SIGNAL = 128
# A command with the status EX_TEMPFAIL has logged the reason, and continues its work when it is run again.
_TO_CONTINUE = f"ended with status {os.EX_TEMPFAIL}"


def last_error(log: Path) -> str | None:
    """Return the error at the end of a log, without `error: `; None if there is no error or no log."""
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
    """Return the last non-empty lines; of a line that overwrites itself, the last state."""
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
    # The end of its command, such as "ended with status 3" or "TIMEOUT in Slurm"; "" if the job failed otherwise.
    ending: str = ""
    # Snakemake's own reason, such as missing output; "" if the job's own log has the reason.
    message: str = ""
    # True if the user stopped the whole call.
    stopped: bool = False

    @property
    def is_reported(self) -> bool:
        """True if the job appears in the final report.

        Of a job that the user stopped, only a saved checkpoint is reported.
        """
        return not self.stopped or self.ending == _TO_CONTINUE

    def line(self) -> str:
        """Return one line: the job, the reason of the failure, and the log with details."""
        there = [log for log in self.logs if log.exists()]
        # If the job's own log is empty, the log of Slurm is named.
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
    """Shorten a path relative to the current folder; paths of Slurm's logs stay absolute."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def how_it_ended(exception: str, report: str) -> tuple[str, str]:
    """Return the end of a command, and Snakemake's own error; each "" if unknown.

    `exception` is the message of Snakemake's exception, `report` the executor's report on the job.
    """
    found, state = _STATUS.search(exception), _SLURM_STATE.search(report)
    message = "" if found else " ".join(exception.split())
    return (f"{state[1]} in Slurm" if state else _ending(found)), message


def _ending(found: re.Match[str] | None) -> str:
    """Describe the end of a command from the text of its exception."""
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
