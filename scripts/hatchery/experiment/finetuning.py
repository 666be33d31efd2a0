"""Fine-tuning of an experiment on a task: the protocol, the head, and the assignment of tasks to jobs.

A protocol is merged, key by key, from a named protocol, the experiment's changes and the task's changes; later values
override earlier values. A task with its own `base` ignores the experiment's changes. `finetuning.tasks_per_job` sets
the number of tasks per job. By default, each job has one task, unless the experiment would then have thousands of jobs.
Jobs are numbered in the order of the tasks. A task's results do not depend on its job.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hatchery.errors import ConfigError
from hatchery.evaluation.tasks.settings import HeadSettings, ProtocolChoice
from hatchery.experiment.experiment_file import Finetuning
from hatchery.experiment.written_blocks import Document, merged
from hatchery.typed import validated

if TYPE_CHECKING:
    from hatchery.experiment.project import Project

SEQUENCE_HEADS = ("sequence_classification", "regression", "multiple_choice")
"""Heads with one vector per sequence. `finetuning.head_options` of an experiment applies to these heads."""


def resolve_protocol(
    finetuning: Finetuning, task: str, project: "Project", where: str, metrics: Sequence[str] | None = None
) -> ProtocolChoice:
    """Return all protocol settings of `task`; `where` is the experiment's file.

    `metrics` are the task's metrics. If `metrics` is None, the metrics are read from the project. Raises ConfigError
    for an unknown base or metric, and for contradictory values.
    """
    own, of_task = finetuning.protocol, finetuning.tasks[task]
    place = f"{where}: finetuning.tasks.{task}"
    if of_task.get("base") is not None:
        layers = [*_named(of_task["base"], task, project, place), of_task]
    else:
        layers = [*_named(own.get("base"), task, project, f"{where}: finetuning.protocol"), own, of_task]
    settings: Document = {}
    for layer in layers:
        settings = merged(settings, layer, ProtocolChoice)
    resolved = validated(ProtocolChoice, settings, place)
    if resolved.selection != "held_out":
        # Without held-out rows, `development_fraction` has no effect. Set it to 0, so that equal jobs have equal
        # settings.
        resolved = replace(resolved, development_fraction=0.0)
    elif resolved.development_fraction == 0:
        raise ConfigError(f"{place}: development_fraction: got 0, expected more than 0 with selection 'held_out'")
    metrics = project.task(task).metrics if metrics is None else metrics
    for key in ("reported_metric", "selection_metric"):
        given = getattr(resolved, key)
        if given is not None and given not in metrics:
            raise ConfigError(f"{place}: {key}: got {given!r}, the metrics of this task are: {', '.join(metrics)}")
    reported = resolved.reported_metric or metrics[0]
    return replace(resolved, reported_metric=reported, selection_metric=resolved.selection_metric or reported)


def head_of_task(finetuning: Finetuning, head: HeadSettings) -> HeadSettings:
    """Return the head of a task. If the head reads one vector per sequence, the experiment's `head_options` override
    the head's options.
    """
    if head.kind not in SEQUENCE_HEADS:
        return head
    return replace(head, options={**head.options, **finetuning.head_options})


def _named(base: str | None, task: str, project: "Project", where: str) -> list[Mapping[str, Any]]:
    """Return the settings that the protocol `base` and its own bases contain, for all tasks and for `task`, in the
    order of merging. The settings of `base` come last.
    """
    layers: list[Mapping[str, Any]] = []
    taken: list[str] = []
    while base is not None:
        project.require("protocol", base, f"{where}.base")
        if base in taken:
            raise ConfigError(
                f"{where}.base: the protocols {', '.join(taken)} name each other as base; remove one of these keys"
            )
        taken.append(base)
        block = project.protocol(base)
        layers[:0] = [block.settings, block.tasks.get(task, {})]
        base = block.settings.get("base")
    return layers


MOST_JOBS = 4000
"""Number of fine-tuning jobs above which a job has several tasks if `tasks_per_job` is null. The number of jobs is
limited because Snakemake needs 2 ms to plan a job.
"""


def task_batches(finetuning: Finetuning, models: int) -> dict[str, list[str]]:
    """Return the tasks of each job by the job's name; empty if each job has one task.

    `finetuning` is the experiment's setting `finetuning`, and `models` is the number of models to fine-tune.
    """
    tasks = list(finetuning.tasks)
    size = finetuning.tasks_per_job or max(1, -(-models * len(tasks) // MOST_JOBS))
    if size == 1:
        return {}
    return {f"batch_{start // size + 1}": tasks[start : start + size] for start in range(0, len(tasks), size)}


def task_batch(project: "Project", experiment: str, batch: str) -> list[str]:
    """Return the tasks of one job. Raises ConfigError for an unknown job of the experiment."""
    batches = _batches(project, experiment)
    if batch not in batches:
        raise ConfigError(
            f"experiment {experiment!r} has no job {batch!r} that combines several fine-tuning tasks; "
            f"the jobs with several tasks are: {', '.join(batches) or 'none'}"
        )
    return batches[batch]


def _batches(project: "Project", experiment: str) -> dict[str, list[str]]:
    return task_batches(project.experiment(experiment).finetuning, len(project.seeded_runs(experiment)))


def batches_by_task(project: "Project", experiment: str) -> dict[str, str]:
    """Return the name of the job of each task; empty if every job has one task."""
    return {task: name for name, tasks in _batches(project, experiment).items() for task in tasks}
