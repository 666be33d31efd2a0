"""The answer to "where is the log of this job": paths, the error, Slurm's word on every attempt, and the last lines.

Which jobs failed in the last run of Snakemake in this folder is read from Snakemake's own log of the run.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hatchery.workflow.external import Ask
from hatchery.workflow.failed_jobs import FailedJob, last_error
from hatchery.workflow.job_logs import (
    RUN_LOGS,
    LogError,
    RuleLogs,
    SlurmJob,
    attempts,
    kept_place,
    last_lines,
    of_comment,
    of_file,
    of_name,
    readable_places,
    slurm_job,
    submissions,
    workflow_rules,
)

_FINISHED = re.compile(r"^Finished jobid: (\d+)\b")
_FAILED = re.compile(r"^Error in rule (\w+):$")
_JOBID = re.compile(r"^    jobid: (\d+)$")
_LOGS = re.compile(r"^    log: (.+) \(check log file\(s\) for error details\)$")


@dataclass(frozen=True)
class LastRun:
    """A run and what failed in it for good."""

    log: Path
    failed: tuple[FailedJob, ...]


def last_run(run_logs: Path = RUN_LOGS) -> LastRun | None:
    """The latest run of this folder; None where nothing has run yet. Their names are their times."""
    logs = sorted(run_logs.glob("*.snakemake.log"))
    if not logs:
        return None
    failed: dict[str, FailedJob] = {}
    rule = jobid = ""
    for line in logs[-1].read_text(encoding="utf-8", errors="replace").splitlines():
        if (found := _FINISHED.match(line)) is not None:
            failed.pop(found[1], None)
        elif (found := _FAILED.match(line)) is not None:
            rule, jobid = found[1], ""
        elif rule and (found := _JOBID.match(line)) is not None:
            jobid = found[1]
            failed[jobid] = FailedJob(rule, ())
        elif rule and jobid and (found := _LOGS.match(line)) is not None:
            paths = tuple(Path(path.split(" (", 1)[0]) for path in found[1].split(", "))
            failed[jobid] = FailedJob(_name(rule, paths[0]), paths)
            rule = ""
    return LastRun(logs[-1], tuple(failed.values()))


def _name(rule: str, log: Path) -> str:
    """The name of a job after its log, `logs/<rule>/<wildcards>.log`."""
    parts = log.with_suffix("").parts
    return "/".join(parts[1:]) if parts[:1] == ("logs",) else rule


SHOWN_JOBS = 5


def find_logs(target: str, ask: Ask, lines: int) -> str:
    """The answer for a file, a Slurm job id, or `<rule>/<wildcard>/...`. Raises LogError and PlanError."""
    told, rules = submissions(), workflow_rules()
    if target.isdigit():
        known, comment = slurm_job(target, ask, told)
        jobs = of_comment(comment, rules)
        if not jobs:
            name = comment.removeprefix("rule_").replace("_wildcards_", ", ") or "unknown"
            return "\n".join([f"job {target}: {name}", *_slurm_lines(known, lines)]) + "\n"
        return "\n".join(line for job in jobs for line in _job_lines(job, [known], lines)) + "\n"
    target = kept_place(target.removesuffix("/"))
    by_name = not target.startswith(("results/", "resources/", "logs/")) and not Path(target).exists()
    jobs = of_name(target, rules) if by_name else [of_file(target, rules)]
    texts = []
    for job in jobs[:SHOWN_JOBS]:
        found = []
        for number in attempts(job, told):
            try:
                found.append(slurm_job(number, ask, told)[0])
            except LogError:
                continue
        texts += _job_lines(job, found, lines if len(jobs) == 1 else 1)
    if len(jobs) > SHOWN_JOBS:
        texts.append(f"... and {len(jobs) - SHOWN_JOBS} older ones below {jobs[0].logs[0].parent}")
    run = last_run()
    if run is not None and run.failed and not any(log.exists() for job in jobs for log in job.logs):
        texts += _failures(run, lines)
    return "\n".join(texts) + "\n"


def what_failed(lines: int) -> str:
    """The answer without a target: what failed in the last run of this folder, and the last lines of those logs."""
    run = last_run()
    if run is None:
        return "nothing has run in this folder yet\n"
    if not run.failed:
        shown = [f"no job of the last run failed; its own log ends ({_short(run.log)})", *_tail(run.log, lines)]
        return "\n".join([*shown, "make log TARGET=results/... shows the log of any job"]) + "\n"
    return "\n".join(_failures(run, lines)) + "\n"


def _failures(run: LastRun, lines: int) -> list[str]:
    count = len(run.failed)
    shown = [f"{count} job{'s' if count > 1 else ''} of the last run failed ({_short(run.log)})"]
    for job in run.failed[:SHOWN_JOBS]:
        shown.append(f"error: {job.line()}")
        # Of a job of Slurm the second is Slurm's.
        there = [log for log in job.logs if log.exists()][:1]
        shown += [line for log in there for line in _tail(log, lines)]
    return shown + ([f"... and {count - SHOWN_JOBS} more"] if count > SHOWN_JOBS else [])


def _job_lines(job: RuleLogs, known: Sequence[SlurmJob], lines: int) -> list[str]:
    values = ", ".join(f"{name}={value}" for name, value in job.wildcards.items())
    places = ", ".join(readable_places(job))
    shown = [f"rule {job.rule}" + (f" ({values})" if values else "") + (f": {places}" if places else "")]
    for log in job.logs:
        error = last_error(log)
        shown.append(f"  log        {log}" + ("" if log.exists() else "  (not written yet)"))
        shown += ([f"  error      {error}"] if error is not None else []) + _tail(log, lines)
    for attempt in known:
        # The rule's own log says more; Slurm's is shown where that one is missing, or has no error of a failed job.
        told = any(last_error(log) is not None for log in job.logs)
        needed = not any(log.exists() for log in job.logs) or not (told or attempt.state in ("COMPLETED", "RUNNING"))
        shown += _slurm_lines(attempt, lines if needed and attempt is known[-1] else 0)
    if not known:
        shown.append("  Slurm job  none known: run on this machine, or not yet")
    return shown


def _slurm_lines(job: SlurmJob, lines: int) -> list[str]:
    shown = [f"  Slurm job  {job.number}  {job.state or 'state unknown'}" + (f"  ({job.detail})" if job.detail else "")]
    if job.log is not None:
        why = "removed, as logs of jobs that succeed are" if job.state == "COMPLETED" else "not there"
        gone = "" if job.log.exists() else f"  ({why})"
        shown += [f"  Slurm log  {_short(job.log)}{gone}", *_tail(job.log, lines)]
    return shown


def _tail(path: Path, lines: int) -> list[str]:
    if lines < 1 or not path.is_file():
        return []
    return [f"             | {line}" for line in last_lines(path, lines)]


def _short(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
