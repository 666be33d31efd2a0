"""Why a job failed, in one line: the last error in its log.

Commands end a user's mistake with `error: ...` (`hatchery.command`), everything else with Python's traceback, whose
last line names the exception.
"""

import re
from pathlib import Path

ERROR = "error: "
# Only the end of a log is read: the error stands there, and logs of long runs are long.
READ_BYTES = 64 * 1024
_DATE = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ")
_EXCEPTION = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit|Warning)\b(?::.*)?$")


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
