"""What Snakemake would run, and its own reasons, read from its dry run.

Snakemake alone decides what is out of date; nothing of that is computed anew here. The number of jobs that were read is
compared with its own table, so that a new layout of its text is an error and never a wrong answer.
"""

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hatchery.errors import PlanError

_PARAMS = "Params have changed since last execution: "
_ENVIRONMENT = "Software environment definition has changed since last execution"
# How `Reason.__str__` of Snakemake begins each of its reasons, and what they are called here.
_REASONS = {
    "Missing output files": "missing",
    "Incomplete output files": "incomplete",
    "Updated input files": "updated",
    "Input files updated by another job": "upstream",
    "Set of input files has changed since last execution": "input set",
    "Code has changed since last execution": "code",
    _ENVIRONMENT: "environment",
    "Forced execution": "forced",
}
_REASON = re.compile("(?:^|; )(" + "|".join(map(re.escape, _REASONS)) + r")(?:: )?")
_JOB = re.compile(r"^(?:local)?(?:rule|checkpoint) (\w+):$")
_FIELD = re.compile(r"^ {4}(\w+): (.*)$")
_TOTAL = re.compile(r"^total +(\d+)$", re.MULTILINE)
_NOTHING = "Nothing to be done"
_LITERAL_OR_NOW = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\bnow:""")


@dataclass(frozen=True)
class PlannedJob:
    """One job that would run; `reasons` maps kinds of reasons (`params`, those of `_REASONS`) to files or words."""

    rule: str
    outputs: tuple[str, ...]
    wildcards: dict[str, str]
    reasons: dict[str, str] = field(default_factory=dict)

    def files(self, reason: str) -> list[str]:
        """Files that a reason names."""
        return [name for name in self.reasons.get(reason, "").split(", ") if name]

    def changed_settings(self) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """The settings before and now that Snakemake itself remembers of a job whose parameters changed, or None."""
        sides: tuple[list[dict[str, Any]], list[dict[str, Any]]] = ([], [])
        now = False
        for token in _LITERAL_OR_NOW.findall(self.reasons.get("params", "")):
            if token == "now:":
                now = True
            elif (settings := _settings(token)) is not None:
                sides[now].append(settings)
        if len(sides[0]) == len(sides[1]) == 1:
            return sides[0][0], sides[1][0]
        return None


def _settings(literal: str) -> dict[str, Any] | None:
    try:
        value = json.loads(ast.literal_eval(literal))
    except (ValueError, SyntaxError, TypeError):
        return None
    return value if isinstance(value, dict) and "stage" in value else None


def dry_run(targets: Sequence[str], project: str | Path = ".") -> list[PlannedJob]:
    """The jobs that Snakemake would run for `targets` in `project`, in its order; empty when all is up to date.

    Raises PlanError with Snakemake's own last words when it cannot plan.
    """
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--nocolor", "--", *targets]
    result = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        words = [line.strip() for line in (result.stdout + "\n" + result.stderr).splitlines() if line.strip()]
        errors = [line.removeprefix("error: ") for line in words if line.startswith("error: ")]
        # Each mistake of the configuration stays a line of its own.
        said = "\n".join(["", *errors]) if len(errors) > 1 else f" {' '.join(errors or words[-3:])}"
        raise PlanError(f"snakemake cannot plan {' '.join(targets)}:{said}")
    return parse_plan(result.stdout + "\n" + result.stderr)


def parse_plan(text: str) -> list[PlannedJob]:
    """The jobs in the output of `snakemake --dry-run`.

    Raises PlanError unless there are as many as its table of jobs says.
    """
    jobs = [_job(rule, fields) for rule, fields in _blocks(text.splitlines())]
    if not jobs and _NOTHING in text:
        return []
    total = _TOTAL.search(text)
    if total is None or int(total.group(1)) != len(jobs):
        announced = "none" if total is None else total.group(1)
        raise PlanError(f"snakemake --dry-run: read {len(jobs)} jobs, but its table announces {announced}")
    return jobs


def _blocks(lines: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    rule, fields = "", dict[str, str]()
    for line in [*lines, ""]:
        if rule and (match := _FIELD.match(line)):
            fields[match.group(1)] = match.group(2)
            continue
        if rule:
            yield rule, fields
        header = _JOB.match(line)
        rule, fields = (header.group(1) if header else ""), {}


def _job(rule: str, fields: dict[str, str]) -> PlannedJob:
    outputs = tuple(name.strip() for name in fields.get("output", "").split(", ") if name.strip())
    pairs = (pair.partition("=") for pair in fields.get("wildcards", "").split(", "))
    return PlannedJob(rule, outputs, {key: value for key, _, value in pairs if key}, _reasons(fields.get("reason", "")))


def _reasons(text: str) -> dict[str, str]:
    # What changed in the parameters is quoted and may hold any words, so only their end is looked at.
    start, end = text.find(_PARAMS), len(text)
    found = {}
    if start >= 0:
        end = len(text.removesuffix(f"; {_ENVIRONMENT}"))
        found = {"params": text[start + len(_PARAMS) : end]} | ({"environment": ""} if end < len(text) else {})
        text = text[:start].removesuffix("; ")
    pieces = _REASON.split(text)
    found |= {_REASONS[name]: rest for name, rest in zip(pieces[1::2], pieces[2::2], strict=True)}
    # A reason in unknown words is shown as it is.
    return found or ({"other": text} if text else {})
