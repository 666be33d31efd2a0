"""The last run of Snakemake in this folder and the jobs that failed in it, from Snakemake's own log of the run."""

import re
from dataclasses import dataclass
from pathlib import Path

from hatchery.cluster.job_logs import RUN_LOGS
from hatchery.running.failed_jobs import FailedJob

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
