"""Commands, controller and accounting: without them Snakemake cannot submit, or waits for ever for an answer."""

import os
import shutil
from collections.abc import Callable, Mapping
from typing import Any

from hatchery.workflow import findings
from hatchery.workflow.external import Ask
from hatchery.workflow.findings import Finding
from hatchery.workflow.slurm_text import configuration

COMMANDS = ("sbatch", "squeue", "scontrol", "scancel", "srun", "sacct")
_SQUEUE = "put `slurm-status-command: squeue` into workflow/profiles/slurm/config.yaml"


def check_commands(which: Callable[[str], str | None] = shutil.which) -> list[Finding]:
    """Whether the commands that Snakemake and the pretraining call are on PATH."""
    missing = [name for name in COMMANDS if which(name) is None]
    if not missing:
        return [findings.ok("commands", f"{', '.join(COMMANDS)} are on PATH")]
    if missing == ["sacct"]:
        return [findings.warning("commands", "sacct is missing; states of jobs then come from squeue", _SQUEUE)]
    return [
        findings.error(
            "commands",
            f"not on PATH: {', '.join(missing)}",
            "work on a login node of the cluster, or load its Slurm module first",
        )
    ]


def check_place(environment: Mapping[str, str] = os.environ) -> list[Finding]:
    """Whether Snakemake would be started inside a Slurm job, which ends when that job does."""
    if "SLURM_JOB_ID" in environment:
        return [
            findings.warning(
                "place",
                f"this shell is inside Slurm job {environment['SLURM_JOB_ID']}, with whose end Snakemake would end",
                "start Snakemake on the login node, in tmux or screen",
            )
        ]
    return [findings.ok("place", "outside any Slurm job")]


def check_controller(ask: Ask) -> tuple[list[Finding], dict[str, str]]:
    """Whether the controller answers, and its configuration (empty where it does not)."""
    answer = ask(["scontrol", "show", "config"])
    if answer.problem:
        return [findings.error("controller", answer.problem, "ask the administrators: Slurm does not answer here")], {}
    settings = configuration(answer.output)
    version, name = settings.get("SLURM_VERSION", "?"), settings.get("ClusterName", "?")
    return [findings.ok("controller", f"Slurm {version}, cluster {name}")], settings


def check_accounting(ask: Ask, cluster: Mapping[str, str], executor: Mapping[str, Any]) -> list[Finding]:
    """Whether the command that Snakemake asks for states gives answers.

    Where sacct exists but nothing is stored, its queries fail quietly and Snakemake waits for ever.
    """
    chosen = executor.get("status_command") or "sacct"
    storage = cluster.get("AccountingStorageType", "")
    answer = ask(["sacct", "--allocations", "--noheader", "--starttime=now-1hour", "--format=JobID"])
    broken = answer.problem or ("nothing is stored (AccountingStorageType none)" if "none" in storage else "")
    if chosen == "squeue":
        return [_squeue_answers(cluster, executor, broken)]
    if broken:
        return [
            findings.error("accounting", f"states of jobs are asked of sacct, but {broken}: runs would hang", _SQUEUE)
        ]
    found = [findings.ok("accounting", f"sacct answers ({storage or 'storage not known'})")]
    if executor.get("efficiency_report") and "job_comment" not in cluster.get("AccountingStoreFlags", "job_comment"):
        found.append(
            findings.warning(
                "efficiency",
                "comments of jobs are not stored, so the efficiency report cannot name rules",
                "nothing to do; administrators can set AccountingStoreFlags=job_comment",
            )
        )
    return found


def _squeue_answers(cluster: Mapping[str, str], executor: Mapping[str, Any], sacct_broken: str) -> Finding:
    interval = int(executor.get("init_seconds_before_status_checks") or 40)
    age = cluster.get("MinJobAge", "").split()
    seconds = int(age[0]) if age and age[0].isdigit() else None
    if seconds is None or seconds >= 3 * interval:
        return findings.ok("accounting", f"states of jobs come from squeue (MinJobAge {seconds or 'unknown'} s)")
    advice = f"set `slurm-init-seconds-before-status-checks` to {max(1, seconds // 3)} or less in the profile"
    seen = f"finished jobs leave squeue after {seconds} s, too early for a question every {interval} s"
    return findings.error("accounting", seen, advice) if sacct_broken else findings.warning("accounting", seen, advice)
