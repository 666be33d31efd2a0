"""The output of `make why` for a plan: the reasons why jobs would run, and the costs of the planned pretrainings.

A job runs because a setting has changed, because a file has changed or is missing, or because another job that makes
its inputs runs. In the last case, Snakemake does not report whether the settings of the job have also changed.
Therefore the settings in the manifest of each planned job are compared with the settings in the current configuration.
"""

import ast
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hatchery.artifacts.manifests import MANIFEST, read_manifest
from hatchery.errors import ManifestError
from hatchery.experiment.cluster import planned_device
from hatchery.rendering.setting_texts import Difference, differences, shorten
from hatchery.rendering.table import table
from hatchery.units import hours, percent, power, rough_duration
from hatchery.workflow.cost_estimate import RunCost, cost_settings, estimate
from hatchery.workflow.jobs import Jobs
from hatchery.workflow.planned_jobs import PlannedJob
from hatchery.workflow.raw_files import RawFiles
from hatchery.workflow.registry import STAGES

_REASON_ORDER = ("settings", "input", "missing", "after")
# Names of the wildcards in the paths of results that are stored by digest.
MODEL, ADDRESS = "model", "address"
_MOST_SETTINGS = 8
_MOST_FILES = 3


@dataclass(frozen=True)
class Cause:
    """A reason why a job would run. Equal reasons of a rule's jobs are counted together."""

    kind: str
    text: str


@dataclass(frozen=True)
class RuleReasons:
    """The number of jobs of a rule that would run, and each reason with the number of jobs that run for this reason."""

    rule: str
    jobs: int
    causes: list[tuple[Cause, int]]


def by_rule(planned: Sequence[PlannedJob], jobs: Jobs, project: str | Path = ".") -> list[RuleReasons]:
    """Return for each rule the reasons why its planned jobs would run, in the order of each rule's first job.

    Raises ConfigError if the current configuration is invalid.
    """
    makers = {output: job.rule for job in planned for output in job.outputs}
    grouped: dict[str, list[list[Cause]]] = {}
    for job in planned:
        grouped.setdefault(job.rule, []).append(job_causes(job, jobs, makers, Path(project)))
    return [RuleReasons(rule, len(causes), _counted(causes)) for rule, causes in grouped.items()]


def _counted(causes: Iterable[Iterable[Cause]]) -> list[tuple[Cause, int]]:
    counts = Counter(cause for job in causes for cause in dict.fromkeys(job))
    return sorted(counts.items(), key=lambda entry: _REASON_ORDER.index(entry[0].kind))


def job_causes(job: PlannedJob, jobs: Jobs, makers: Mapping[str, str], project: Path) -> list[Cause]:
    """Return the reasons why a job would run; `makers` maps output files to the planned rules that make these files."""
    changed, reason = setting_changes(job, jobs, project), job.reason
    causes = [Cause("settings", str(difference)) for difference in changed]
    if reason.params_changed and not changed:
        edited = RawFiles(jobs.project).edited_files(job.wildcards["source"]) if job.rule == "register_source" else []
        causes += [Cause("input", text) for text in edited]
        if not edited:
            causes.append(Cause("settings", "its arguments changed"))
    if reason.code_changed:
        causes.append(Cause("settings", "its rule's command in workflow/ changed"))
    if reason.software_stack_changed:
        causes.append(Cause("settings", "its conda environment changed"))
    # If the output is missing, leave out further reasons. A result that is stored by digest has another path, and thus
    # a missing output, whenever a setting has changed; then only the changed settings are reported.
    if reason.missing_output:
        return causes if changed and MODEL in job.wildcards else [*causes, Cause("missing", "its output is missing")]
    updated = sorted(reason.updated_input - reason.updated_input_run)
    causes += [Cause("input", f"changed input {_general(name, job)}") for name in updated]
    if reason.input_changed:
        causes.append(Cause("input", "its list of input files changed"))
    if reason.incomplete_output:
        causes.append(Cause("missing", "an interrupted run left its output unfinished"))
    before = {makers.get(name, "another job") for name in reason.updated_input_run}
    causes += [Cause("after", f"after {rule}") for rule in sorted(before)]
    if reason.forced:
        causes.append(Cause("after", "forced"))
    return causes or [Cause("after", "after another job")]


def setting_changes(job: PlannedJob, jobs: Jobs, project: Path) -> list[Difference]:
    """Return the differences between the settings with which the job's existing output was made and the current
    settings.

    The settings of the existing output are read from its manifest or, if there is no manifest, from Snakemake's
    metadata. Return an empty list if there is no output.
    """
    manifest = next((project / place for place in _manifests(job, jobs) if (project / place).is_file()), None)
    if manifest is not None:
        try:
            recorded = read_manifest(manifest)
        except ManifestError as error:
            return [Difference("manifest", str(error), None)]
        present = present_settings(job.rule, job.wildcards, jobs)
        return [] if present is None else differences(recorded.settings, json.loads(present))
    before, now = (
        _remembered(values) for values in (job.reason.params_changed.only_old, job.reason.params_changed.only_new)
    )
    return [] if before is None or now is None else differences(before, now)


def _remembered(params: Iterable[str]) -> Mapping[str, Any] | None:
    """Return the settings of a job; `params` are the job's parameters, as the `repr` texts that Snakemake records.

    The settings are one of the parameters. None if this parameter cannot be identified.
    """
    found = [text for text in params if '"stage":' in text]
    return json.loads(ast.literal_eval(found[0])) if len(found) == 1 else None


def _manifests(job: PlannedJob, jobs: Jobs) -> list[str]:
    """Return the paths at which the manifest of a job's output may be.

    A manifest among the job's outputs comes first. For a result that is stored by digest, the readable paths of its
    manifest follow; these paths may still be links to an earlier result.
    """
    own = [output for output in job.outputs if Path(output).name == MANIFEST]
    places = jobs.results_at(job.wildcards[MODEL], job.wildcards.get(ADDRESS, "")) if MODEL in job.wildcards else []
    return [*own, *(f"{place.readable}/{MANIFEST}" for place in places)]


def present_settings(rule: str, wildcards: Mapping[str, str], jobs: Jobs) -> str | None:
    """Return the settings of a rule's job in the current configuration, as canonical JSON.

    None if the job is unknown: the rule runs no stage, or no result with the job's address (name of its folder) was
    requested.
    """
    if MODEL in wildcards:
        address = wildcards.get(ADDRESS, wildcards[MODEL])
        return jobs.call_at(address).settings if jobs.is_requested(address) else None
    return jobs.settings(rule, **wildcards) if rule in STAGES else None


def _general(path: str, job: PlannedJob) -> str:
    """Return a path with the values of the job's wildcards replaced by placeholders, such as `<model>`.

    With placeholders, the paths of all jobs of a rule are equal, so that equal reasons of several jobs can be counted.
    """
    names = {value: f"<{key}>" for key, value in job.wildcards.items() if key != "experiment"}
    return "/".join(names.get(part, part) for part in path.split("/"))


def reasons_text(rules: Sequence[RuleReasons], full: bool = False) -> str:
    """Return one line per rule: its number of jobs, and the reasons why the jobs would run.

    If a reason concerns only some jobs of the rule, the number of these jobs follows the reason.
    """
    rows = [
        (entry.rule, f"{entry.jobs:,} job{'s' if entry.jobs != 1 else ''}", _causes(entry, full)) for entry in rules
    ]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return "\n".join(f"{rule:<{widths[0]}}  {jobs:>{widths[1]}}  {causes}" for rule, jobs, causes in rows) + "\n"


def _causes(entry: RuleReasons, full: bool) -> str:
    texts = []
    shown = entry.causes if full else _limited(entry.causes)
    for cause, count in shown:
        text = cause.text if full else shorten(cause.text, 160)
        texts.append(text if count == entry.jobs else f"{text} ({count} of {entry.jobs})")
    rest = len(entry.causes) - len(shown)
    return "; ".join(texts) + (f"; and {rest:,} more (--full lists them)" if rest else "")


def _limited(causes: list[tuple[Cause, int]]) -> list[tuple[Cause, int]]:
    settings = [entry for entry in causes if entry[0].kind == "settings"]
    inputs = [entry for entry in causes if entry[0].kind == "input"]
    others = [entry for entry in causes if entry[0].kind in ("missing", "after")]
    return settings[:_MOST_SETTINGS] + inputs[:_MOST_FILES] + others


@dataclass(frozen=True)
class RemainingCost:
    """The estimated cost of one planned pretraining."""

    experiment: str
    cost: RunCost


def planned_costs(planned: Sequence[PlannedJob], jobs: Jobs) -> list[RemainingCost]:
    """Return the costs of the pretrainings that the planned jobs would run, in the order of their experiments.

    Raises ConfigError or ModelError for an invalid model or run.
    """
    names = [jobs.names(job.wildcards[MODEL]) for job in planned if job.rule == "pretrain"]
    # An entry of `names` is empty if the model no longer belongs to any requested experiment.
    wanted = {(of["experiment"], of["run"]) for of in names if of}
    costs = []
    for experiment in dict.fromkeys(of["experiment"] for of in names if of):
        settings = cost_settings(json.loads(jobs.settings("write_cost", experiment=experiment)))
        runs = [run for run in settings.runs if (experiment, run.name) in wanted]
        costs += [RemainingCost(experiment, cost) for cost in estimate(replace(settings, runs=runs))]
    return costs


def planned_cost_text(costs: Sequence[RemainingCost], jobs: Jobs) -> str:
    """Return the costs as an aligned table with sums, followed by the assumptions."""
    config = jobs.project.config
    cluster = config.cluster
    header = ["model", "pretraining FLOPs", "time", "device hours"]
    body = [_row(f"{one.experiment}/{one.cost.run}", [one.cost]) for one in costs]
    body.append(_row("all, one after another", [one.cost for one in costs]))
    devices = f"{cluster.processes} x {planned_device(cluster, config.compute.device)}"
    return (
        f"{table(header, body).markdown(aligned=True)}\n"
        f"Estimated for {devices} at an MFU of {percent(cluster.planned_mfu)} (`cluster` in config/config.yaml), "
        "without evaluation, corpora, tables and figures.\n"
    )


def _row(name: str, costs: Sequence[RunCost]) -> list[str]:
    return [
        name,
        power(sum(cost.training_flops + cost.development_flops for cost in costs)),
        rough_duration(sum(cost.wall_seconds for cost in costs)),
        hours(sum(cost.device_hours for cost in costs)),
    ]
