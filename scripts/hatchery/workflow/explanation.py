"""What `make why` says of a plan: why its jobs would run, and what they would cost.

A job runs for a changed setting, a changed or missing file, or because of a stage that runs before.

Snakemake's reason of a job that follows another one is only that other one, even when its own settings changed too.
Therefore the settings in the manifest of every planned job are compared with those of the present configuration.
"""

import ast
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from hatchery.artifacts.manifests import MANIFEST, read_manifest
from hatchery.errors import ManifestError
from hatchery.experiment.cluster import planned_device
from hatchery.modeling.families import training_flops_per_sequence
from hatchery.raw.listings import RawFiles
from hatchery.rendering.setting_texts import Difference, differences, shorten
from hatchery.rendering.table import table
from hatchery.training.settings import pretrain_settings
from hatchery.units import NONE, hours, percent, power, rough_duration
from hatchery.workflow.cost_estimate import CostSettings, cost_settings, estimate
from hatchery.workflow.evaluation_work import PairWork, TuningWork, evaluation_seconds, pair_work, tuning_work
from hatchery.workflow.jobs import Jobs
from hatchery.workflow.planned_jobs import PlannedJob
from hatchery.workflow.registry import STAGES

_REASON_ORDER = ("settings", "input", "missing", "after")
# Wildcards of the rules whose results are kept by what they are made from.
MODEL, ADDRESS = "model", "address"
_MOST_SETTINGS = 8
_MOST_FILES = 3


@dataclass(frozen=True)
class Cause:
    """One reason of one job, as text; causes with equal texts of a rule are counted together."""

    kind: str
    text: str


@dataclass(frozen=True)
class RuleReasons:
    """The jobs of one rule that would run, and for each cause how many of them have it."""

    rule: str
    jobs: int
    causes: list[tuple[Cause, int]]


def by_rule(planned: Sequence[PlannedJob], jobs: Jobs, project: str | Path = ".") -> list[RuleReasons]:
    """The plan by rule, in the order in which the rules come first.

    Raises ConfigError when the present configuration is broken.
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
    """The causes of one job; `makers` says which rule of the plan makes a file."""
    changed, reason = setting_changes(job, jobs, project), job.reason
    causes = [Cause("settings", str(difference)) for difference in changed]
    if reason.params_changed and not changed:
        edited = RawFiles(jobs.project).edited_files(job.wildcards["source"]) if job.rule == "register_source" else []
        causes += [Cause("input", text) for text in _some(edited)]
        if not edited:
            causes.append(Cause("settings", "its arguments changed"))
    if reason.code_changed:
        causes.append(Cause("settings", "its rule's command in workflow/ changed"))
    if reason.software_stack_changed:
        causes.append(Cause("settings", "its conda environment changed"))
    # A file that is not there needs no further reason. Where results are kept by what they are made from, it is not
    # there because a setting changed.
    if reason.missing_output:
        return causes if changed and MODEL in job.wildcards else [*causes, Cause("missing", "not there yet")]
    updated = sorted(reason.updated_input - reason.updated_input_run)
    causes += [Cause("input", f"changed input {_general(name, job)}") for name in _some(updated)]
    if reason.input_changed:
        causes.append(Cause("input", "other input files than before"))
    if reason.incomplete_output:
        causes.append(Cause("missing", "left unfinished by an interrupted run"))
    before = {makers.get(name, "another job") for name in reason.updated_input_run}
    causes += [Cause("after", f"after {rule}") for rule in sorted(before)]
    if reason.forced:
        causes.append(Cause("after", "forced"))
    return causes or [Cause("after", "after another job")]


def setting_changes(job: PlannedJob, jobs: Jobs, project: Path) -> list[Difference]:
    """What differs between the settings that the job's present output was made with and those of the configuration.

    Old settings are those of the manifest; for outputs without one, those that Snakemake remembers. Empty when there
    is no output yet.
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
    """The settings among recorded parameters, of which Snakemake keeps the `repr`."""
    found = [text for text in params if '"stage":' in text]
    return json.loads(ast.literal_eval(found[0])) if len(found) == 1 else None


def _manifests(job: PlannedJob, jobs: Jobs) -> list[str]:
    """Where the job's manifest lies, or the one that the links of experiments lead to until it is made."""
    own = [output for output in job.outputs if Path(output).name == MANIFEST]
    places = jobs.results_at(job.wildcards[MODEL], job.wildcards.get(ADDRESS, "")) if MODEL in job.wildcards else []
    return [*own, *(f"{place.readable}/{MANIFEST}" for place in places)]


def present_settings(rule: str, wildcards: Mapping[str, str], jobs: Jobs) -> str | None:
    """Canonical settings of a rule's job in the present configuration; None for a rule that is no stage."""
    if MODEL in wildcards:
        address = wildcards.get(ADDRESS, wildcards[MODEL])
        return jobs.call_at(address).settings if jobs.is_requested(address) else None
    return jobs.settings(rule, **wildcards) if rule in STAGES else None


def _general(path: str, job: PlannedJob) -> str:
    """The path with the job's own names as placeholders, so that jobs of a rule have causes of equal texts."""
    names = {value: f"<{key}>" for key, value in job.wildcards.items() if key != "experiment"}
    return "/".join(names.get(part, part) for part in path.split("/"))


def _some(names: Sequence[str]) -> list[str]:
    rest = len(names) - _MOST_FILES
    return [*names[:_MOST_FILES], f"and {rest} more"] if rest > 1 else list(names)


def reasons_text(rules: Sequence[RuleReasons], full: bool = False) -> str:
    """One line per rule: its jobs and the causes, with a number where a cause is not that of all of them."""
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
    return "; ".join(texts) + (f"; and {rest} more changes (--full lists them)" if rest else "")


def _limited(causes: list[tuple[Cause, int]]) -> list[tuple[Cause, int]]:
    settings = [entry for entry in causes if entry[0].kind == "settings"]
    inputs = [entry for entry in causes if entry[0].kind == "input"]
    others = [entry for entry in causes if entry[0].kind in ("missing", "after")]
    return settings[:_MOST_SETTINGS] + inputs[:_MOST_FILES] + others


PRETRAIN, FINETUNE, SEVERAL_TASKS, PAIRS = "pretrain", "finetune", "finetune_tasks", "score_minimal_pairs"


START_SECONDS = 5.0
"""What a job with a model takes before it computes: Python, PyTorch, loading, and writing its results."""


@dataclass(frozen=True)
class RemainingCost:
    """The cost of one run of an experiment, as far as it would run; operations, and seconds on the planned devices."""

    experiment: str
    run: str
    pretrained: bool
    training_flops: float
    training_seconds: float
    device_hours: float
    evaluation_flops: float
    evaluation_seconds: float
    # Suites and tasks that nobody could count.
    uncounted: tuple[str, ...] = ()


def planned_costs(planned: Sequence[PlannedJob], jobs: Jobs) -> list[RemainingCost]:
    """The runs of which something would be pretrained or evaluated, in the order of their experiments.

    Raises ConfigError and ModelError for an impossible model or run.
    """
    named = (_named(job, jobs) for job in planned if job.rule in (PRETRAIN, FINETUNE, SEVERAL_TASKS, PAIRS))
    wanted = [job for job in named if job.wildcards]
    costs = []
    for experiment in dict.fromkeys(job.wildcards["experiment"] for job in wanted):
        settings = cost_settings(json.loads(jobs.settings("write_cost", experiment=experiment)))
        own = [job for job in wanted if job.wildcards["experiment"] == experiment]
        costs += [cost for run in settings.runs if (cost := _planned(run.name, own, settings, jobs)) is not None]
    return costs


def _named(job: PlannedJob, jobs: Jobs) -> PlannedJob:
    """The job with the names that its addresses stand for; without wildcards where nobody knows them."""
    return replace(job, wildcards=jobs.names(job.wildcards["model"], job.wildcards.get("address", "")))


def _planned(run: str, planned: Sequence[PlannedJob], settings: CostSettings, jobs: Jobs) -> RemainingCost | None:
    own = [job for job in planned if job.wildcards["run"] == run]
    if not own:
        return None
    suites = {job.wildcards["suite"] for job in own if job.rule == PAIRS}
    batches = {job.wildcards["batch"] for job in own if job.rule == SEVERAL_TASKS}
    tasks = {job.wildcards["task"] for job in own if job.rule == FINETUNE}
    tasks |= {task for batch in batches for task in jobs.project.task_batch(settings.experiment, batch)}
    chosen = replace(settings, runs=[entry for entry in settings.runs if entry.name == run])
    cost = estimate(chosen)[0]
    pretrained = any(job.rule == PRETRAIN for job in own)
    work: dict[str, PairWork | TuningWork | None] = {suite: pair_work(jobs.project, suite) for suite in sorted(suites)}
    work |= {task: tuning_work(jobs.project, settings.experiment, task) for task in sorted(tasks)}
    per_sequence = partial(
        training_flops_per_sequence,
        pretrain_settings(chosen.runs[0].pretraining).model_values,
        settings.vocabulary_size,
    )
    evaluation = sum(known.flops(per_sequence) for known in work.values() if known is not None)
    starts = START_SECONDS * sum(job.rule != PRETRAIN for job in own)
    return RemainingCost(
        experiment=settings.experiment,
        run=run,
        pretrained=pretrained,
        training_flops=cost.training_flops + cost.development_flops if pretrained else 0.0,
        training_seconds=cost.wall_seconds + START_SECONDS if pretrained else 0.0,
        device_hours=cost.device_hours if pretrained else 0.0,
        evaluation_flops=evaluation,
        evaluation_seconds=starts + evaluation_seconds(evaluation, settings.plan),
        uncounted=tuple(name for name, known in work.items() if known is None),
    )


def planned_cost_text(costs: Sequence[RemainingCost], jobs: Jobs) -> str:
    """The costs as a table whose columns line up, with the sums and what they rest on."""
    config = jobs.project.config
    cluster = config.cluster
    header = ["model", "pretraining FLOPs", "time", "device hours", "evaluation FLOPs", "time"]
    body = [_row(f"{cost.experiment}/{cost.run}", [cost]) for cost in costs]
    devices = f"{cluster.processes} x {planned_device(cluster, config.compute.device)}"
    uncounted = sorted({name for cost in costs for name in cost.uncounted})
    left_out = ["perplexity", "models of others", "corpora", "tables", "figures"]
    left_out += [f"{name} (its files cannot be counted here yet)" for name in uncounted]
    return (
        f"{table(header, [*body, _row('all, one after another', costs)]).markdown(aligned=True)}\n"
        f"Estimated for {devices} at an MFU of {percent(cluster.planned_mfu)} (`cluster` in config/config.yaml). "
        "Evaluation is rough: pairs and training rows are counted in their files, words count as subwords, and inputs "
        f"of fine-tuning as as long as they may be. Every job counts {START_SECONDS:g} s for its start. "
        f"Left out: {', '.join(left_out)}.\n"
    )


def _about(text: str, costs: Sequence[RemainingCost]) -> str:
    """Mark a number as rough, or as a lower bound if some evaluations are uncounted; a dash if all are uncounted."""
    if text == NONE or not any(cost.evaluation_flops for cost in costs):
        return NONE
    return f"at least {text}" if any(cost.uncounted for cost in costs) else f"~ {text}"


def _row(name: str, costs: Sequence[RemainingCost]) -> list[str]:
    def total(field: str) -> float:
        return sum(getattr(cost, field) for cost in costs)

    return [
        name,
        power(total("training_flops")),
        rough_duration(total("training_seconds")),
        hours(total("device_hours")),
        _about(power(total("evaluation_flops")), costs),
        _about(rough_duration(total("evaluation_seconds")), costs),
    ]
