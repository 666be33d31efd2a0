"""All checks of a cluster for one experiment, in the order in which one would mend things."""

import getpass
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from hatchery.workflow import findings
from hatchery.workflow.check_controller import check_accounting, check_commands, check_controller, check_place
from hatchery.workflow.check_disk import check_disk, check_file_system
from hatchery.workflow.check_partitions import check_accounts, check_partitions
from hatchery.workflow.check_software import check_software, made_environment
from hatchery.workflow.cost_estimate import RunCost
from hatchery.workflow.external import Ask
from hatchery.workflow.findings import Finding
from hatchery.workflow.job_shapes import job_shapes
from hatchery.workflow.planned_jobs import ClusterJob, ClusterPlan
from hatchery.workflow.probe_jobs import probes, run_probes

RESULTS = Path("results")


def check_cluster(
    plan: ClusterPlan, costs: Sequence[RunCost], target: str, ask: Ask, patience_seconds: float | None
) -> list[Finding]:
    """Check everything that the jobs of a plan need; with a patience of None no job is submitted."""
    found = [*check_commands(), *check_place()]
    found += check_disk(costs, RESULTS)
    found += check_software(plan, target)
    asked = job_shapes(plan.jobs)
    if not asked:
        return [*found, findings.ok("jobs", "no job of this target goes to Slurm")]
    controller, settings = check_controller(ask)
    found += controller
    if findings.failed(controller):
        return found
    found += check_accounting(ask, settings, plan.executor)
    found += check_accounts(ask, asked, getpass.getuser())
    found += check_partitions(ask, asked, settings, plan.executor)
    mounts = Path("/proc/self/mounts")
    if patience_seconds is None:
        found += check_file_system(RESULTS, mounts.read_text(encoding="utf-8") if mounts.exists() else "")
        found.append(findings.skipped("nodes", "files, GPUs and network were not tried on the nodes (--no-jobs)"))
    elif findings.failed(found):
        found.append(findings.skipped("nodes", "no probe is submitted before the errors above are mended"))
    else:
        found += run_probes(probes(asked), ask, patience_seconds, _job_python(plan))
    return found


def sbatch_text(jobs: Sequence[ClusterJob]) -> str:
    """The lines that would be sent, once for each kind: of jobs that differ only in name the first is shown."""
    kinds: dict[tuple[str, str], list[ClusterJob]] = {}
    for job in jobs:
        kinds.setdefault((job.rule, _without_name(job)), []).append(job)
    lines = []
    for (rule, line), alike in kinds.items():
        count = "1 job" if len(alike) == 1 else f"{len(alike)} jobs"
        lines.append(f"{rule}: {count}" + (", on this machine" if not line else f", the first: {alike[0].name}"))
        if line:
            lines.append(f"  {alike[0].sbatch}")
    return "\n".join(lines) + "\n"


def _without_name(job: ClusterJob) -> str:
    """The line without the words that name the job: its log and its comment."""
    return " ".join(word for word in job.sbatch.split() if "slurm_logs" not in word and not word.startswith("rule_"))


def _job_python(plan: ClusterPlan) -> str:
    """The interpreter that pretraining will have: conda's where its environment is made, else that of this shell."""
    if plan.conda_prefix is not None:
        for definition in plan.environments:
            made = made_environment(definition, plan.conda_prefix) if definition.stem == "pretraining" else None
            if made is not None:
                return os.fspath((made / "bin" / "python").absolute())
    return sys.executable
