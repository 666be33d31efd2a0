"""Check of a plan's jobs on a Slurm cluster: every distinct `sbatch` command is tested with `--test-only`.

Snakemake plans with the current profile and configuration, and functions of the Slurm plugin build the commands. So the
shown commands equal the commands that Snakemake would submit, except for the run's id and a default account. All jobs
of the target are planned, including finished jobs. `sbatch --test-only` checks account, partition, features, nodes,
processors, memory and GPUs without submitting a job. But `--test-only` accepts some jobs that would wait forever.
Therefore the output of `sinfo` is also checked: a job is reported if its partition is down, or if its run time exceeds
the limit of the partition. Slurm itself refuses too long run times only if EnforcePartLimits is set (tried with Slurm
22.05).
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
"""Placeholder in commands for the run's id, which Snakemake draws at random and uses as job name."""


@dataclass(frozen=True)
class ClusterJob:
    """One job and its `sbatch` command, which requests the job's resources."""

    rule: str
    wildcards: dict[str, str]
    # The `sbatch` command up to `--wrap`; empty if the job runs on the submitting machine.
    sbatch: str

    @property
    def name(self) -> str:
        """Return the job's rule and wildcards, as in the comment that Snakemake adds to the Slurm job."""
        return "_".join([f"rule_{self.rule}", *(["wildcards", *self.wildcards.values()] if self.wildcards else [])])


def plan(target: str, profile: str = "slurm", extra: Sequence[str] = ()) -> list[ClusterJob]:
    """Return all jobs that Snakemake plans for `target`, sorted by name. The profile must use the Slurm executor.

    Snakemake plans in the current folder. `extra` are further arguments of Snakemake. Raises PlanError if Snakemake
    cannot plan `target`, if the profile has another executor, or if the Slurm plugin refuses the resources of a rule.
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
        # Use the Slurm executor's plugin, because the executor of dry runs treats all rules as local.
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
    """Return the `sbatch` command, up to `--wrap`, that the plugin's method `Executor.run_job` would submit.

    Unlike the plugin, this function does not query Slurm for the default account.
    """
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
"""Slurm commands that this check runs."""
ANSWER_SECONDS = 60.0
_BLOCK = "the block `cluster` of config/config.yaml"


def sbatch_text(jobs: Sequence[ClusterJob]) -> str:
    """Return the `sbatch` commands as text.

    If commands of a rule's jobs differ only in the job's name, only the first command is written, with the number of
    jobs.
    """
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
    """For each reason why Slurm would not run a job, return one line with the affected rules and the reason."""
    shapes: dict[str, tuple[ClusterJob, set[str]]] = {}
    for job in jobs:
        if job.sbatch:
            shapes.setdefault(_without_name(job), (job, set()))[1].add(job.rule)
    if not shapes:
        return []
    listed = _ask(["sinfo", "--noheader", "--format=%P|%a|%l"])
    if listed.returncode != 0:
        # If `sinfo` fails, the `sbatch` commands would fail too, so these commands are not tested.
        return [f"sinfo: {_last_words(listed)}; ask the administrators of the cluster"]
    partitions = {name: (state, limit) for name, state, limit in (line.split("|") for line in listed.stdout.split())}
    found: dict[str, set[str]] = {}
    for job, rules in shapes.values():
        if problem := _problem(shlex.split(job.sbatch), partitions):
            found.setdefault(problem, set()).update(rules)
    return [f"{', '.join(sorted(rules))}: {problem}" for problem, rules in found.items()]


def _problem(line: Sequence[str], partitions: dict[str, tuple[str, str]]) -> str:
    """Test an `sbatch` command with Slurm, and return the reason why Slurm would not run the job. Return an empty text
    if Slurm would run the job.
    """
    tested = _ask([*line, "--test-only", "--wrap=true"])
    if tested.returncode != 0:
        return f"Slurm refuses the job: {_last_words(tested)}; change {_BLOCK} (docs/cluster.md says which key)"
    default = next((name.removesuffix("*") for name in partitions if name.endswith("*")), "")
    name = line[line.index("-p") + 1] if "-p" in line else default
    state, limit = partitions.get(name) or partitions.get(f"{name}*") or ("up", "")
    if state != "up":
        return (
            f"jobs in partition {name} would wait, because the partition is {state}; name another partition in {_BLOCK}"
        )
    asked, allowed = int(line[line.index("-t") + 1]) if "-t" in line else 0, seconds_of(limit)
    if allowed is not None and 60 * asked > allowed:
        return (
            f"jobs would wait forever, because they request more than the {allowed // 60} minutes of partition {name}; "
            f"lower max_minutes or gpu_max_minutes in {_BLOCK}"
        )
    return ""


def _ask(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a Slurm command, and return its result. If Slurm's controller does not answer in time, the command counts as
    failed.
    """
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
    """Return the `sbatch` command without the options that contain the job's name (log and comment)."""
    return " ".join(word for word in job.sbatch.split() if "slurm_logs" not in word and not word.startswith("rule_"))
