"""Why a job failed: the last error in its log, how its command ended, and what Slurm says.

Commands end a user's mistake with `error: ...` (`hatchery.command`), everything else with Python's traceback, whose
last line names the exception.
"""

import os
import re
import signal
from dataclasses import dataclass
from pathlib import Path

from hatchery.errors import full_disk, memory_refused

ERROR = "error: "
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
            end_of_log = f'its log ends with "{said}"' if said is not None else "its log is empty"
            reason = "; ".join(text for text in (self.ending, end_of_log) if text)
            if self.ending == _TO_GO_ON and said is not None:
                reason = said
            if said is None and (full := full_disk(*(path.parent for path in there))):
                reason = full
        reason = memory_refused(reason) or reason
        return f"{self.name}: {reason}" + (f" (log: {_short(log)})" if log is not None else "")


def _short(path: Path) -> Path:
    """A path as it can be typed here; Slurm's logs are told with the whole path."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def how_it_ended(exception: str, report: str) -> tuple[str, str]:
    """How a command ended, and what Snakemake itself says went wrong; "" where there is nothing of the kind.

    `exception` is the message of Snakemake's exception, `report` what the executor says of the job.
    """
    found, state = _STATUS.search(exception), _SLURM_STATE.search(report)
    message = "" if found else " ".join(exception.split())
    return (f"{state[1]} in Slurm" if state else _ending(found)), message


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
