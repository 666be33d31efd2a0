"""Stages that measure models: minimal pairs, perplexity, translation, fine-tuning; and the links to their results."""

import json
from functools import partial
from typing import Any

from hatchery.evaluation.perplexity.settings import OPTIONAL
from hatchery.experiment.block_bodies import suite_body, task_body, without
from hatchery.experiment.finetuning_jobs import task_batch
from hatchery.experiment.project import Project
from hatchery.experiment.protocols import head_of_task
from hatchery.stages.record import Kept, Stage


def minimal_pairs_settings(project: Project, suite: str) -> dict[str, Any]:
    """What is scored of a suite, and how."""
    return suite_body(suite, project.block("suite", suite))


def baseline_settings(project: Project, baseline: str, suite: str) -> dict[str, Any]:
    """The same for a model that others pretrained."""
    external = without(project.block("baseline", baseline), "description", "data")
    return {**minimal_pairs_settings(project, suite), "model_kind": "transformers", "external": external}


def perplexity_settings(project: Project, experiment: str) -> dict[str, Any]:
    """On which splits perplexity is measured, and with which masks."""
    block = project.experiment(experiment)
    chosen = {key: value for key, value in block["perplexity"].items() if value is not None or key != OPTIONAL}
    return {**chosen, "sequence_length": chosen["sequence_length"] or block["pretraining"]["sequence_length"]}


def translation_settings(project: Project, experiment: str) -> dict[str, Any]:
    """Which test sets are translated."""
    return {"tests": project.experiment(experiment)["translation"]["tests"]}


def finetuning_settings(project: Project, experiment: str, task: str) -> dict[str, Any]:
    """A task with its protocol, and the tasks that its models are also scored on."""
    transfer = [task_settings(project, name) for name in project.block("task", task)["transfer_tasks"]]
    own = task_settings(project, task)
    own["head"] = head_of_task(project.experiment(experiment)["finetuning"], own["head"])
    # The first metric stands for a task: papers and pipelines report different ones of the same predictions.
    reported = project.reported_metric(experiment, task)
    own["metrics"] = [reported, *(metric for metric in own["metrics"] if metric != reported)]
    return {"task": own, "protocol": project.protocol_of(experiment, task), "transfer": transfer}


def task_settings(project: Project, task: str) -> dict[str, Any]:
    """A task as fine-tuning is told of it."""
    return task_body(task, project.block("task", task))


def several_tasks_settings(project: Project, experiment: str, batch: str) -> dict[str, Any]:
    """What a job of each task alone would be given, so that the results are the same."""
    tasks = task_batch(project, experiment, batch)
    return {
        "tasks": {
            task: json.loads(FINETUNE.canonical_settings(project, experiment=experiment, task=task)) for task in tasks
        }
    }


def link_settings(project: Project, experiment: str, kind: str, place: str) -> dict[str, Any]:
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
    arguments=lambda layout, task: {"source": layout.task_sources(task), "vocabulary": layout.task_vocabulary(task)},
    kept=Kept("finetuning", ("task",)),
    expected_minutes=lambda work, run, task: work.finetuning_minutes(run, [task]),
    runtime=_FINETUNING,
)
MINIMAL_PAIRS = _on_model(
    name="score_minimal_pairs",
    version=4,
    settings=minimal_pairs_settings,
    arguments=lambda layout, suite: {"source": layout.evaluation_source("suite", suite)},
    kept=Kept("minimal_pairs", ("suite",)),
    expected_minutes=lambda work, run, suite: work.minimal_pairs_minutes(run, suite),
    runtime=_SCORING,
)

STAGES = (
    MINIMAL_PAIRS,
    # The same function for a model that others pretrained, which may be large and which no plan knows.
    _on_model(
        name="score_baseline",
        function=MINIMAL_PAIRS.name,
        version=MINIMAL_PAIRS.version,
        settings=baseline_settings,
        memory_mb=16000,
        runtime=_SCORING,
    ),
    _on_model(
        name="measure_perplexity",
        version=1,
        settings=perplexity_settings,
        arguments=lambda layout, experiment: {"tokens": layout.experiment_tokens(experiment)},
        kept=Kept("perplexity"),
        minutes=240,
        runtime=_SCORING,
    ),
    _on_model(
        name="translate_tests",
        version=2,
        settings=translation_settings,
        arguments=lambda layout, experiment: {"corpus": layout.translation_corpora(experiment)},
        kept=Kept("translation"),
        minutes=240,
        runtime=_SCORING,
    ),
    FINETUNE,
    _on_model(
        name="finetune_tasks",
        version=2,
        settings=several_tasks_settings,
        arguments=lambda layout, experiment, batch: {
            "source": layout.batch_sources(experiment, batch),
            "vocabulary": layout.batch_vocabularies(experiment, batch),
            "folder": layout.batch_folders(experiment, batch),
        },
        kept=Kept("finetuning_jobs", ("batch",)),
        expected_minutes=lambda work, layout, experiment, run, batch: work.finetuning_minutes(
            run, layout.batch_tasks(experiment, batch)
        ),
        runtime=_FINETUNING,
    ),
    # Says where a result is kept; it computes nothing.
    Stage(
        name="show_result",
        function="",
        version=1,
        settings=link_settings,
        environment="sources",
        sort="local",
        memory_mb=100,
        minutes=1,
    ),
)
