"""Stages that measure models, ours and those of others: minimal pairs, perplexity, translation, fine-tuning."""

import json
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from hatchery.evaluation.baselines.settings import BaselineSettings
from hatchery.evaluation.finetuning.settings import ProtocolSettings
from hatchery.evaluation.perplexity.settings import OPTIONAL
from hatchery.evaluation.tasks.settings import TaskSettings
from hatchery.experiment.finetuning import head_of_task, task_batch
from hatchery.experiment.project import Project
from hatchery.job_spec import Argument
from hatchery.stages.record import Shared, Stage
from hatchery.typed import keys_of

if TYPE_CHECKING:
    from hatchery.workflow.jobs import Jobs


def minimal_pairs_settings(project: Project, suite: str) -> dict[str, object]:
    """What is scored of a suite, and how."""
    return project.suite(suite).scored(suite)


def import_settings(project: Project, baseline: str) -> dict[str, object]:
    """What is said about a model that others pretrained."""
    return keys_of(project.baseline(baseline), of=BaselineSettings)


def perplexity_settings(project: Project, experiment: str) -> dict[str, object]:
    """On which splits perplexity is measured, and with which masks."""
    block = project.experiment(experiment)
    chosen = {key: value for key, value in keys_of(block.perplexity).items() if value is not None or key != OPTIONAL}
    return {**chosen, "sequence_length": block.perplexity.sequence_length or block.pretraining.sequence_length}


def translation_settings(project: Project, experiment: str) -> dict[str, object]:
    """Which test sets are translated, and the beams to choose from where there are any."""
    chosen = project.experiment(experiment).translation
    return {"tests": chosen.tests} | ({} if chosen.beams is None else {"beams": chosen.beams})


def finetuning_settings(project: Project, experiment: str, task: str) -> dict[str, object]:
    """A task with its protocol, and the tasks that its models are also scored on."""
    own, protocol = task_settings(project, task), project.protocol_of(experiment, task)
    # The first metric stands for a task: papers and pipelines report different ones of the same predictions.
    metrics = sorted(own.metrics, key=lambda metric: metric != protocol.reported_metric)
    head = head_of_task(project.experiment(experiment).finetuning, own.head)
    return {
        "task": replace(own, head=head, metrics=tuple(metrics)),
        "protocol": keys_of(protocol, of=ProtocolSettings),
        "transfer": [task_settings(project, name) for name in project.task(task).transfer_tasks],
    }


def task_settings(project: Project, task: str) -> TaskSettings:
    """A task as fine-tuning is told of it."""
    return project.task(task).settings(task)


def several_tasks_settings(project: Project, experiment: str, batch: str) -> dict[str, object]:
    """What a job of each task alone would be given, so that the results are the same."""
    tasks = task_batch(project, experiment, batch)
    return {
        "tasks": {
            task: json.loads(FINETUNE.canonical_settings(project, experiment=experiment, task=task)) for task in tasks
        }
    }


def several_tasks_inputs(jobs: "Jobs", experiment: str, batch: str) -> dict[str, Argument]:
    """The sources and vocabularies of all tasks of a job, and the addresses of their results, by task."""
    tasks, results = task_batch(jobs.project, experiment, batch), jobs.results
    return {
        "source": {name: path for task in tasks for name, path in results.task_sources(task).items()},
        "vocabulary": {task: path for task in tasks for path in results.task_vocabulary(task)},
        "folder": {task: jobs.address(experiment, "finetuning", task=task) for task in tasks},
    }


def link_settings(project: Project, experiment: str, kind: str, place: str) -> dict[str, object]:
    """Nothing: a link has no settings."""
    return {}


_on_model = partial(Stage, environment="evaluation", sort="model", threads="evaluation", memory_mb=8000, minutes=480)

# Models compute in the same way wherever they are scored. Weights, rows and the libraries of a GPU come to a few
# gigabytes of main memory.
_SCORING = ("device", "tokens_per_batch")
_FINETUNING = ("device", "frozen_layers_mib")

FINETUNE = _on_model(
    name="finetune",
    version=3,
    settings=finetuning_settings,
    inputs=lambda results, task: {"source": results.task_sources(task), "vocabulary": results.task_vocabulary(task)},
    shared=Shared("finetuning", ("task",)),
    expected_minutes=lambda work, run, task: work.finetuning_minutes(run, [task]),
    runtime=_FINETUNING,
)
MINIMAL_PAIRS = _on_model(
    name="score_minimal_pairs",
    version=4,
    settings=minimal_pairs_settings,
    inputs=lambda data, suite: {"source": data.suite_source(suite)},
    shared=Shared("minimal_pairs", ("suite",)),
    expected_minutes=lambda work, run, suite: work.minimal_pairs_minutes(run, suite),
    runtime=_SCORING,
)

STAGES = (
    Stage(
        name="import_model",
        version=1,
        settings=import_settings,
        inputs=lambda data, baseline: {"source": data.baseline_source(baseline)},
        shared=Shared("baselines"),
        environment="evaluation",
        sort="cpu",
        # A model may be large; it is held twice.
        memory_mb=16000,
        minutes=60,
    ),
    MINIMAL_PAIRS,
    _on_model(
        name="measure_perplexity",
        version=1,
        settings=perplexity_settings,
        inputs=lambda results, experiment, run: results.held_out_text(experiment, run),
        shared=Shared("perplexity"),
        minutes=240,
        runtime=_SCORING,
    ),
    _on_model(
        name="translate_tests",
        version=2,
        settings=translation_settings,
        inputs=lambda results, experiment: {"corpus": results.translation_corpora(experiment)},
        shared=Shared("translation"),
        minutes=240,
        runtime=_SCORING,
    ),
    FINETUNE,
    _on_model(
        name="finetune_tasks",
        version=2,
        settings=several_tasks_settings,
        inputs=several_tasks_inputs,
        shared=Shared("finetuning_jobs", ("batch",)),
        expected_minutes=lambda work, project, experiment, run, batch: work.finetuning_minutes(
            run, task_batch(project, experiment, batch)
        ),
        runtime=_FINETUNING,
    ),
    # Says where a result is kept.
    Stage(
        name="show_result",
        computes=False,
        version=1,
        settings=link_settings,
        environment="sources",
        sort="local",
        memory_mb=100,
        minutes=1,
    ),
)
