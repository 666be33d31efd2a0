"""The stage `finetune`: fine-tune one pretrained model on one task, for all seeds and learning rates."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchery.artifacts.manifests import StageRun
from hatchery.evaluation.evaluation import DataCheck, Evaluation, MostRows, ReadData
from hatchery.evaluation.finetuning.measurements import finetuning_rows, probe_rows, with_distinct_tasks
from hatchery.evaluation.tasks.settings import (
    FinetuneRuntime,
    FinetuneSettings,
    HeadSettings,
    ProtocolChoice,
    ProtocolSettings,
    TaskSettings,
)
from hatchery.raw.listings import source_of
from hatchery.runner import Job, OutputPath
from hatchery.stage import Stage, StoredByDigest
from hatchery.typed import build, keys_of, stage_body

UNFINISHED = Path("results/finetuning_runs")
"""Folder in which each finished fine-tuning run is stored, so that a repeated job trains only the missing runs."""

SOURCE = "source {}"
"""Pattern for the name of an input in manifests: the source manifest of a task."""

if TYPE_CHECKING:
    from hatchery.experiment.project import Project
    from hatchery.raw.registration import RawSource
    from hatchery.workflow.outputs import Outputs


def finetuning_settings(project: "Project", experiment: str, task: str) -> dict[str, object]:
    """Return the settings of a task with its protocol, and of its transfer tasks. Fine-tuned models are also scored on
    transfer tasks, without training on them.
    """
    protocol, head = project.protocol_of(experiment, task), project.head_of(experiment, task)
    transfer = [project.task(name).settings(name) for name in project.task(task).transfer_tasks]
    return {**task_settings(project.task(task).settings(task), head, protocol), "transfer": transfer}


def task_settings(own: TaskSettings, head: HeadSettings, protocol: ProtocolChoice) -> dict[str, object]:
    """Return the settings of the stage `finetune` for a task, its head and its protocol. In the returned list of the
    task's metrics, the metric that the protocol reports is the first.
    """
    # Papers and pipelines report different metrics of the same predictions. A task's first metric is its primary
    # metric, so put the metric that the protocol reports first.
    metrics = sorted(own.metrics, key=lambda metric: metric != protocol.reported_metric)
    return {
        "task": replace(own, head=head, metrics=tuple(metrics)),
        "protocol": keys_of(protocol, only=ProtocolSettings),
    }


def task_inputs(of: "Outputs", task: str) -> dict[str, Any]:
    """Return the manifests that the fine-tuning on a task reads: the source manifest of the task and of each of its
    transfer tasks, by task, and the manifests of the vocabularies of these tasks. Rows with a word outside the task's
    vocabulary are dropped.
    """
    blocks = {name: of.project.task(name) for name in (task, *of.project.task(task).transfer_tasks)}
    vocabularies = {block.vocabulary.name for block in blocks.values() if block.vocabulary is not None}
    return {
        "source": {name: of("register_source", source=source_of(block)) for name, block in blocks.items()},
        "vocabulary": sorted(of("build_vocabulary", vocabulary=name) for name in vocabularies),
    }


def files_read(settings: Mapping[str, Any], name: str, source: "RawSource") -> Iterable[str]:
    """Return those files of a source that the task or its transfer tasks read. Transfer tasks are tasks on which the
    fine-tuned model is scored without training.
    """
    from hatchery.evaluation.tasks.formats import task_files

    found = build(FinetuneSettings, stage_body(settings))
    tasks = [task for task in (found.task, *found.transfer) if SOURCE.format(task.name) == name]
    return [file for task in tasks for key in task.files for file in task_files(source, task, key)]


def tasks_read(project: "Project", experiment: str) -> Iterator[ReadData]:
    """Yield the data of an experiment's tasks, and of the transfer tasks on which fine-tuned models are also scored."""
    tasks = dict(project.readable("task", project.experiment(experiment).finetuning.tasks))
    others = [name for task in tasks.values() for name in task.transfer_tasks]
    for name, task in {**tasks, **dict(project.readable("task", others))}.items():
        yield ReadData(project.place("task", name), task.data, task.settings(name))


def check_task(source: "RawSource", task: TaskSettings, rows: MostRows) -> Iterable[str]:
    """Check the rows of a task by reading them (`task_rows.check_rows`)."""
    from hatchery.evaluation.tasks.task_rows import check_rows

    check_rows(source, task, rows)
    return ()


@Stage(
    version=2,
    settings=finetuning_settings,
    inputs=task_inputs,
    input_names={"source": SOURCE},
    files_read=files_read,
    shared=StoredByDigest("finetuning", ("task",)),
    evaluation=Evaluation(
        place=40,
        title="Fine-tuning",
        note="over pretraining seeds x fine-tuning seeds x learning rates",
        asked=lambda experiment, run: experiment.finetuning.tasks,
        rows=finetuning_rows,
        layers=probe_rows,
        together=with_distinct_tasks,
        direct="hatchery.evaluation.finetuning.finetune_on_task:evaluate",
        data=DataCheck(settings=TaskSettings, reads=tasks_read, check=check_task),
    ),
    keep=True,
    environment="evaluation",
    runs_on="gpu",
    threads="evaluation",
    memory_mb=8000,
    minutes=480,
    runtime=("device", "frozen_layers_mib", "compile"),
)
def finetune(
    job: Job,
    settings: FinetuneSettings,
    runtime: FinetuneRuntime,
    model: Path,
    source: Mapping[str, Path],
    vocabulary: Path | None,
    run: StageRun,
    checkpoints: OutputPath = UNFINISHED,
) -> None:
    """Fine-tune the model of a pretraining manifest on a task.

    `source` maps the names of the task and of its transfer tasks to source manifests. `vocabulary` is the manifest of a
    built vocabulary if the task uses only rows within this vocabulary, else None. If a run already finished in an
    interrupted attempt, or in an attempt with other lists of seeds and learning rates, its result is read from
    `checkpoints`. Raises EvaluationError naming file and line for wrong data, ConfigError for wrong settings, and the
    errors of the model, tokenizer and source loaders.
    """
    from hatchery.evaluation.finetuning.finetune_on_task import finetune_on_task

    finetune_on_task(job, settings, runtime, model, source, vocabulary, checkpoints, run)
