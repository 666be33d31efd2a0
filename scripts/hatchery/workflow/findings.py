"""What a check of the cluster found: how grave it is, what was seen, and what to do about it."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from hatchery.rendering.table import table


class Level(StrEnum):
    """How grave a finding is; only errors stop a run."""

    OK = "ok"
    SKIPPED = "skipped"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True)
class Finding:
    """One observation; `advice` says what to do, and is empty where nothing is to be done."""

    level: Level
    check: str
    seen: str
    advice: str = ""


def ok(check: str, seen: str) -> Finding:
    """All is well."""
    return Finding(Level.OK, check, seen)


def skipped(check: str, why: str) -> Finding:
    """Not looked at."""
    return Finding(Level.SKIPPED, check, why)


def warning(check: str, seen: str, advice: str) -> Finding:
    """May end badly."""
    return Finding(Level.WARNING, check, seen, advice)


def error(check: str, seen: str, advice: str) -> Finding:
    """Will end badly."""
    return Finding(Level.ERROR, check, seen, advice)


def failed(findings: Sequence[Finding]) -> bool:
    """Whether there is an error among the findings."""
    return any(finding.level is Level.ERROR for finding in findings)


def findings_text(findings: Sequence[Finding]) -> str:
    """One line for each finding, the advice below it, and a last line with the counts."""
    width = max((len(finding.check) for finding in findings), default=0)
    rows = []
    for finding in findings:
        rows.append((finding.level.value, finding.check, finding.seen))
        if finding.advice:
            rows.append(("", "", f"-> {finding.advice}"))
    _, *lines = table(("", "", ""), rows, words=3).text((9, width + 2, max((len(row[2]) for row in rows), default=0)))
    counts = [f"{sum(finding.level is level for finding in findings)} {level}" for level in Level]
    return "\n".join([*lines, "", ", ".join(counts)]) + "\n"
