"""What a plan would cost: the estimate of `cost_estimate`, for the models and evaluations that would run alone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hatchery.command import load_settings
from hatchery.experiment.cluster import planned_device
from hatchery.rendering.table import table
from hatchery.units import hours, percent, power, rough_duration
from hatchery.workflow.cost_estimate import CostSettings, RunCost, cost_settings, estimate
from hatchery.workflow.cost_table import about
from hatchery.workflow.jobs import Jobs
from hatchery.workflow.planned_jobs import PlannedJob

PRETRAIN, FINETUNE, SEVERAL_TASKS, PAIRS = "pretrain", "finetune", "finetune_tasks", "score_minimal_pairs"


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


def planned_costs(planned: Sequence[PlannedJob], jobs: Jobs) -> list[RemainingCost]:
    """The runs of which something would be pretrained or evaluated, in the order of their experiments.

    Raises ConfigError and ModelError for an impossible model or run.
    """
    named = (_named(job, jobs) for job in planned if job.rule in (PRETRAIN, FINETUNE, SEVERAL_TASKS, PAIRS))
    wanted = [job for job in named if job.wildcards]
    costs = []
    for experiment in dict.fromkeys(job.wildcards["experiment"] for job in wanted):
        settings = cost_settings(load_settings(jobs.settings("write_cost", experiment=experiment)))
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
    narrowed = replace(
        settings,
        runs=[entry for entry in settings.runs if entry.name == run],
        suites=[suite for suite in settings.suites if suite.name in suites],
        tasks=[task for task in settings.tasks if task.name in tasks],
    )
    cost = estimate(narrowed)[0]
    pretrained = any(job.rule == PRETRAIN for job in own)
    return RemainingCost(
        experiment=settings.experiment,
        run=run,
        pretrained=pretrained,
        training_flops=cost.training_flops + cost.development_flops if pretrained else 0.0,
        training_seconds=cost.wall_seconds if pretrained else 0.0,
        device_hours=cost.device_hours if pretrained else 0.0,
        evaluation_flops=cost.minimal_pairs_flops + cost.finetuning_flops,
        evaluation_seconds=_evaluation_seconds(cost, settings),
    )


def _evaluation_seconds(cost: RunCost, settings: CostSettings) -> float:
    # Evaluations run on one device each.
    speed = cost.peak_flops_per_second * settings.plan.mfu / settings.plan.devices
    return (cost.minimal_pairs_flops + cost.finetuning_flops) / speed


def planned_cost_text(costs: Sequence[RemainingCost], jobs: Jobs) -> str:
    """The costs as a table whose columns line up, with the sums and what they rest on."""
    config = jobs.project.config
    cluster = config.cluster
    header = ["model", "pretraining FLOPs", "time", "device hours", "evaluation FLOPs", "time"]
    body = [_row(f"{cost.experiment}/{cost.run}", [cost]) for cost in costs]
    devices = f"{cluster.processes} x {planned_device(cluster, config.compute.device)}"
    return (
        f"{table(header, [*body, _row('all, one after another', costs)]).markdown(aligned=True)}\n"
        f"Estimated for {devices} at an MFU of {percent(cluster.planned_mfu)} (`cluster` in config/config.yaml); "
        "evaluation is rough. Perplexity, models of others, corpora, tables and figures are not counted.\n"
    )


def _row(name: str, costs: Sequence[RemainingCost]) -> list[str]:
    def total(field: str) -> float:
        return sum(getattr(cost, field) for cost in costs)

    return [
        name,
        power(total("training_flops")),
        rough_duration(total("training_seconds")),
        hours(total("device_hours")),
        about(power(total("evaluation_flops"))),
        about(rough_duration(total("evaluation_seconds"))),
    ]
