"""The stage `finetune_tasks`: fine-tune one pretrained model on several tasks, one after another, in one process
(`several_items`).
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchery.artifacts.manifests import StageRun
from hatchery.errors import ConfigError
from hatchery.evaluation.several_items import run_each
from hatchery.evaluation.stages.finetune import SOURCE, UNFINISHED, files_read, finetune, task_inputs
from hatchery.job_spec import Paths
from hatchery.runner import OutputPath
from hatchery.stage import Stage, StoredByDigest, record_of

if TYPE_CHECKING:
    from hatchery.experiment.project import Project
    from hatchery.raw.registration import RawSource
    from hatchery.workflow.jobs import Jobs
    from hatchery.workflow.outputs import Outputs


def several_tasks_settings(project: "Project", experiment: str, batch: str) -> dict[str, object]:
    """Return the settings of all tasks of a job. Each task has the same settings, and thus the same results, as in a
    separate job.
    """
    tasks = project.task_batch(experiment, batch)
    return {
        "tasks": {
            task: json.loads(record_of(finetune).canonical_settings(project, experiment=experiment, task=task))
            for task in tasks
        }
    }


def several_tasks_inputs(of: "Outputs", jobs: "Jobs", experiment: str, batch: str) -> dict[str, Paths]:
    """Return the sources and vocabularies of all tasks of a job, and the result folder of each task."""
    tasks = jobs.project.task_batch(experiment, batch)
    read = {task: task_inputs(of, task) for task in tasks}
    return {
        "source": {name: path for each in read.values() for name, path in each["source"].items()},
        "vocabulary": {task: path for task, each in read.items() for path in each["vocabulary"]},
        "folder": {task: jobs.address(experiment, "finetuning", task=task) for task in tasks},
    }


def files_of_tasks(settings: Mapping[str, Any], name: str, source: "RawSource") -> Iterable[str]:
    """Return those files of a source that the tasks or their transfer tasks read. Transfer tasks are tasks on which the
    fine-tuned models are scored without training.
    """
    return {file for task in settings["tasks"].values() for file in files_read(task, name, source)}


@Stage(
    version=2,
    settings=several_tasks_settings,
    inputs=several_tasks_inputs,
    input_names={"source": SOURCE, "vocabulary": "vocabulary {}"},
    files_read=files_of_tasks,
    unrecorded=lambda model: {"results": f"results/finetuning/{model}"},
    # Do not declare the tasks' folders as outputs. If one task changes or fails, Snakemake would also delete the
    # folders of finished tasks.
    shared=StoredByDigest("finetuning_jobs", ("batch",)),
    environment="evaluation",
    runs_on="gpu",
    threads="evaluation",
    memory_mb=8000,
    minutes=480,
    runtime=("device", "frozen_layers_mib", "compile"),
)
def finetune_tasks(
    settings: Mapping[str, Any],
    runtime: Mapping[str, Any],
    model: Path,
    source: Mapping[str, Path],
    vocabulary: Mapping[str, Path],
    results: OutputPath,
    folder: Mapping[str, OutputPath],
    run: StageRun,
    checkpoints: OutputPath = UNFINISHED,
) -> None:
    """Fine-tune the model on every task of `settings["tasks"]`; each task's results are written to its `folder` in
    `results`.

    `settings["tasks"]` maps names of tasks to settings of the stage `finetune`. `source` maps the names of all tasks
    and transfer tasks to source manifests; `vocabulary` maps names of tasks to manifests. If a task fails, the other
    tasks still run. At the end, EvaluationError is raised with the first error message and the names of all failed
    tasks. Raises ConfigError for a task without a source.
    """
    tasks: Mapping[str, Mapping[str, Any]] = settings["tasks"]
    given = {name: _inputs_of(name, task, model, source, vocabulary) for name, task in tasks.items()}
    folders = {name: results / place for name, place in folder.items()}
    run_each(finetune, tasks, given, folders, run, "tasks", runtime=runtime, checkpoints=checkpoints)


def _inputs_of(
    name: str,
    task: Mapping[str, Any],
    model: Path,
    sources: Mapping[str, Path],
    vocabularies: Mapping[str, Path],
) -> dict[str, Any]:
    """Return the inputs of the stage `finetune` for the task `name`."""
    names = [name, *(other["name"] for other in task["transfer"])]
    missing = [other for other in names if other not in sources]
    if missing:
        raise ConfigError(f"source: the source {missing[0]!r} is missing, expected the sources of the task {name!r}")
    source = {other: sources[other] for other in names}
    return {"model": model, "source": source, "vocabulary": vocabularies.get(name)}
