"""How an experiment fine-tunes on a task: the protocol, the head, and the jobs that work on several tasks.

A protocol is a named one, the experiment's changes, the task's changes; later ones win, key by key. A task that names a
base of its own takes that one and nothing of the experiment's. An experiment says how many tasks a job has
(`finetuning.tasks_per_job`); else there are several only where there would be thousands of jobs. Jobs are named after
the order of the tasks, and what a task's results hold does not depend on its job.
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
"""Heads with one vector per sequence, of which `finetuning.head_options` of an experiment speaks."""


def resolve_protocol(
    finetuning: Finetuning, task: str, project: "Project", where: str, metrics: Sequence[str] | None = None
) -> ProtocolChoice:
    """All settings of the protocol of `task`; `where` names the experiment's file.

    `metrics` are those of a task that is not in the project.
    Raises ConfigError for an unknown base and for values that do not fit each other.
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
        # Nothing is held out, whatever the layers below said about the share.
        resolved = replace(resolved, development_fraction=0.0)
    elif resolved.development_fraction == 0:
        raise ConfigError(f"{place}: development_fraction: got 0, expected more with selection 'held_out'")
    metrics = project.task(task).metrics if metrics is None else metrics
    for key in ("reported_metric", "selection_metric"):
        given = getattr(resolved, key)
        if given is not None and given not in metrics:
            raise ConfigError(f"{place}: {key}: got {given!r}, the metrics of this task are: {', '.join(metrics)}")
    reported = resolved.reported_metric or metrics[0]
    return replace(resolved, reported_metric=reported, selection_metric=resolved.selection_metric or reported)


def head_of_task(finetuning: Finetuning, head: HeadSettings) -> HeadSettings:
    """The head of a task, with the options that the experiment lays over those of such heads."""
    if head.kind not in SEQUENCE_HEADS:
        return head
    return replace(head, options={**head.options, **finetuning.head_options})


def reads_first_token(finetuning: Finetuning, head: HeadSettings) -> bool:
    """Whether the head of a task reads the first token alone, which has seen nothing in a causal model."""
    if head.kind not in SEQUENCE_HEADS:
        return False
    options = head_of_task(finetuning, head).options
    # A loader chooses the pooling itself when it meets the model, and chooses the first token for some.
    return options.get("pooling", "first_token") == "first_token" or options.get("loader", "none") != "none"


def _named(base: str | None, task: str, project: "Project", where: str) -> list[Mapping[str, Any]]:
    """The layers of a named protocol, those of its own base first."""
    layers: list[Mapping[str, Any]] = []
    taken: list[str] = []
    while base is not None:
        project.require("protocol", base, f"{where}.base")
        if base in taken:
            raise ConfigError(f"{where}.base: the protocols {', '.join(taken)} are bases of each other")
        taken.append(base)
        block = project.protocol(base)
        layers[:0] = [block.settings, block.tasks.get(task, {})]
        base = block.settings.get("base")
    return layers


MOST_JOBS = 4000
"""Fine-tuning jobs of an experiment that does not say how many tasks a job has: each takes 2 ms to plan."""


def task_batches(finetuning: Finetuning, models: int) -> dict[str, list[str]]:
    """The tasks of each job by its name, for the `finetuning` block of an experiment with so many models.

    None where jobs have one task.
    """
    tasks = list(finetuning.tasks)
    size = finetuning.tasks_per_job or max(1, -(-models * len(tasks) // MOST_JOBS))
    if size == 1:
        return {}
    return {f"batch_{start // size + 1}": tasks[start : start + size] for start in range(0, len(tasks), size)}


def task_batch(project: "Project", experiment: str, batch: str) -> list[str]:
    """The tasks of one job. Raises ConfigError for a name that no job of the experiment has."""
    batches = _batches(project, experiment)
    if batch not in batches:
        raise ConfigError(
            f"experiment {experiment!r} has no job {batch!r} of several fine-tuning tasks; "
            f"there are: {', '.join(batches) or 'none'}"
        )
    return batches[batch]


def _batches(project: "Project", experiment: str) -> dict[str, list[str]]:
    return task_batches(project.experiment(experiment).finetuning, len(project.seeded_runs(experiment)))


def batches_by_task(project: "Project", experiment: str) -> dict[str, str]:
    """The job that works on each task; none where every task has its own."""
    return {task: name for name, tasks in _batches(project, experiment).items() for task in tasks}
