"""What a check of the cluster found: how grave it is, what was seen, and what to do about it."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


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
    lines = []
    for finding in findings:
        lines.append(f"{finding.level:<8} {finding.check:<{width}}  {finding.seen}")
        if finding.advice:
            lines.append(f"{'':<8} {'':<{width}}  -> {finding.advice}")
    counts = [f"{sum(finding.level is level for finding in findings)} {level}" for level in Level]
    return "\n".join([*lines, "", ", ".join(counts)]) + "\n"
