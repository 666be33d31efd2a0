"""A check whether Slurm accepts the jobs of a plan: every kind of `sbatch` line is submitted as a test.

Snakemake plans with the profile and configuration in force, and the Slurm plugin's own functions build the lines, so
the lines shown are those that would be submitted. All jobs of the target are planned, including finished ones. `sbatch
--test-only` checks account, partition, features, nodes, processors, memory and GPUs without submitting a job. It
accepts some jobs that would wait for ever, so the answer of `sinfo` is checked, too: for a partition that is down, and
for a time above the partition's limit, which Slurm refuses only if EnforcePartLimits is set (tried with Slurm 22.05).
"""

import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from snakemake_executor_plugin_slurm.partitions import get_best_partition, read_partition_file
from snakemake_executor_plugin_slurm.submit_string import get_submit_command, safe_quote
from snakemake_executor_plugin_slurm.utils import get_job_wildcards, set_gres_string
from snakemake_executor_plugin_slurm.validation import validate_slurm_extra
from snakemake_interface_executor_plugins.registry import ExecutorPluginRegistry

from hatchery.errors import PlanError, first_line
from hatchery.units import seconds_of
from hatchery.workflow.planned_jobs import dag_of, opened, wildcards_of

RUN_NAME = "RUN"
"""Placeholder for the name that each run of Snakemake draws at random."""


@dataclass(frozen=True)
class ClusterJob:
    """One job and its requested resources."""

    rule: str
    wildcards: dict[str, str]
    # Empty for a job on the submitting machine. The line omits the command that Slurm wraps: Snakemake's call of
    # itself.
    sbatch: str

    @property
    def name(self) -> str:
        """Return rule and wildcards, as Snakemake writes them into the comment of the Slurm job."""
        return "_".join([f"rule_{self.rule}", *(["wildcards", *self.wildcards.values()] if self.wildcards else [])])


def plan(target: str, profile: str = "slurm", extra: Sequence[str] = ()) -> list[ClusterJob]:
    """Return every job of `target` under a profile of the Slurm executor, sorted by name.

    The plan is made in the current folder. `extra` are further arguments of Snakemake. Raises PlanError, naming the
    rule if its resources are refused.
    """
    arguments = ["--profile", profile, "--dry-run", *extra, "--", target]
    with opened(arguments) as (parsed, api):
        if parsed.executor != "slurm":
            raise PlanError(f"profile {profile}: its executor is {parsed.executor or 'local'!r}, expected 'slurm'")
        settings = ExecutorPluginRegistry().get_plugin("slurm").get_settings(parsed)
        api.dag(dag_settings=dag_of(parsed, everything=True)).execute_workflow(
            executor="slurm", pseudo_executor="dryrun", executor_settings=settings
        )
        workflow = api._workflow
        # The dry run's own executor would treat every rule as local.
        workflow._executor_plugin = ExecutorPluginRegistry().get_plugin("slurm")
        partitions = read_partition_file(settings.partition_config) if settings.partition_config else None
        jobs = [
            ClusterJob(
                job.rule.name,
                wildcards_of(job),
                "" if workflow.is_local(job.rule) else _sbatch_line(job, settings, partitions),
            )
            for job in workflow.dag.jobs
        ]
        return sorted(jobs, key=lambda job: job.name)


def _sbatch_line(job: Any, settings: Any, partitions: Any) -> str:
    """Build the line of the plugin's `Executor.run_job`, up to `--wrap`; the account is not looked up."""
    folder = Path(settings.logdir or ".snakemake/slurm_logs")
    wildcards = get_job_wildcards(job)
    partition = job.resources.get("slurm_partition")
    if not partition and partitions:
        partition = get_best_partition(partitions, job, _Silent())
    account = job.resources.get("slurm_account")
    try:
        validate_slurm_extra(job)
        line = get_submit_command(
            job,
            {
                "run_uuid": f"{settings.jobname_prefix}_{RUN_NAME}" if settings.jobname_prefix else RUN_NAME,
                "slurm_logfile": folder / f"rule_{job.rule.name}" / wildcards / "%j.log",
                "comment_str": f"rule_{job.rule.name}" + (f"_wildcards_{wildcards}" if wildcards else ""),
                "account": f"-A {safe_quote(account)}" if account else "",
                "partition": f"-p {safe_quote(partition)}" if partition else "",
                "workdir": None,
            },
            settings=settings,
        )
        return " ".join((line + set_gres_string(job)).split())
    except Exception as error:
        raise PlanError(f"rule {job.rule.name}: the Slurm plugin refuses its resources: {first_line(error)}") from error


class _Silent:
    """A logger that discards the plugin's messages about its choice of a partition."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None


ASKED = ("sbatch", "sinfo")
"""Commands of Slurm that this check calls."""
ANSWER_SECONDS = 60.0
_BLOCK = "the block `cluster` of config/config.yaml"


def sbatch_text(jobs: Sequence[ClusterJob]) -> str:
    """Return the `sbatch` lines, one for each kind: of jobs that differ only in name, the first is shown."""
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


def problems(jobs: Sequence[ClusterJob]) -> list[str]:
    """Return a line with the affected rules for each reason why Slurm would not run a job."""
    shapes: dict[str, tuple[ClusterJob, set[str]]] = {}
    for job in jobs:
        if job.sbatch:
            shapes.setdefault(_without_name(job), (job, set()))[1].add(job.rule)
    if not shapes:
        return []
    listed = _ask(["sinfo", "--noheader", "--format=%P|%a|%l"])
    if listed.returncode != 0:
        # No other command would be answered either.
        return [f"sinfo: {_last_words(listed)}; ask the administrators of the cluster"]
    partitions = {name: (state, limit) for name, state, limit in (line.split("|") for line in listed.stdout.split())}
    found: dict[str, set[str]] = {}
    for job, rules in shapes.values():
        if problem := _problem(shlex.split(job.sbatch), partitions):
            found.setdefault(problem, set()).update(rules)
    return [f"{', '.join(sorted(rules))}: {problem}" for problem, rules in found.items()]


def _problem(line: Sequence[str], partitions: dict[str, tuple[str, str]]) -> str:
    """Return the reason why a job with this line would not run; empty if it would run. Tests one line with Slurm."""
    tested = _ask([*line, "--test-only", "--wrap=true"])
    if tested.returncode != 0:
        return f"Slurm refuses the job: {_last_words(tested)}; change {_BLOCK} (docs/cluster.md says which key)"
    default = next((name.removesuffix("*") for name in partitions if name.endswith("*")), "")
    name = line[line.index("-p") + 1] if "-p" in line else default
    state, limit = partitions.get(name) or partitions.get(f"{name}*") or ("up", "")
    if state != "up":
        return f"jobs in partition {name} would wait, because it is {state}; name another one in {_BLOCK}"
    asked, allowed = int(line[line.index("-t") + 1]) if "-t" in line else 0, seconds_of(limit)
    if allowed is not None and 60 * asked > allowed:
        return (
            f"jobs would wait for ever: they ask for more than the {allowed // 60} minutes of partition {name}; "
            f"lower max_minutes or gpu_max_minutes in {_BLOCK}"
        )
    return ""


def _ask(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a command of Slurm; a timeout counts as a failure, because the controller may be unreachable."""
    try:
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=ANSWER_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(list(command), 1, "", f"no answer: {error}")


def _last_words(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line.strip() for line in (done.stdout + "\n" + done.stderr).splitlines() if line.strip()]
    return lines[-1].removeprefix("allocation failure: ") if lines else f"status {done.returncode}"


def _without_name(job: ClusterJob) -> str:
    """Return the line without the parts that contain the job's name: log and comment."""
    return " ".join(word for word in job.sbatch.split() if "slurm_logs" not in word and not word.startswith("rule_"))
