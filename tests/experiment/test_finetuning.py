"""Which job makes the results of a task: the workflow must ask for each result once and find all of them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from hatchery.errors import ConfigError
from hatchery.experiment.experiment_file import Finetuning
from hatchery.experiment.finetuning import task_batch, task_batches
from hatchery.experiment.project import Project
from hatchery.workflow.jobs import Jobs
from hatchery.workflow.registry import stage_settings


@pytest.fixture
def project(repository: Path) -> Project:
    return Project(repository / "config")


def test_tasks_are_dealt_out_in_their_order() -> None:
    tasks: dict[str, dict[str, Any]] = {name: {} for name in "abcde"}
    assert task_batches(Finetuning(tasks=tasks, tasks_per_job=2), 1) == {
        "batch_1": ["a", "b"],
        "batch_2": ["c", "d"],
        "batch_3": ["e"],
    }
    assert task_batches(Finetuning(tasks=tasks, tasks_per_job=1), 1_000_000) == {}


def test_jobs_have_several_tasks_only_where_there_would_be_thousands_of_jobs() -> None:
    finetuning = Finetuning(tasks={f"t{number}": {} for number in range(40)})
    assert task_batches(finetuning, 100) == {}
    assert [len(tasks) for tasks in task_batches(finetuning, 101).values()] == [2] * 20
    assert [len(tasks) for tasks in task_batches(finetuning, 1000).values()] == [10] * 4


def test_jobs_of_one_task_make_its_manifest_alone(project: Project) -> None:
    jobs = Jobs(project)
    finetuned = jobs.results.finetuned("strict")
    assert jobs.to_make(finetuned.values()) == [jobs.place(path) for path in finetuned.values()]


def test_jobs_of_several_tasks_are_asked_for_once(project: Project, configuration: Path) -> None:
    jobs = Jobs(project)
    runs = [run.name for run in project.seeded_runs("bnc_mini")]

    def places(batch: str) -> list[str]:
        return [jobs.place(f"results/bnc_mini/finetuning_jobs/{run}/{batch}/manifest.json") for run in runs]

    assert jobs.to_make(jobs.results.finetuned("bnc_mini").values()) == places("batch_1")
    # Who needs the probes needs the jobs in which they are, and no others.
    path = configuration / "experiments/bnc_mini.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(re.sub(r"tasks_per_job: \d+", "tasks_per_job: 14", text), encoding="utf-8")
    jobs = Jobs(Project(configuration))
    probed = {name: path for name, path in jobs.results.finetuned("bnc_mini").items() if "probe" in name}
    assert jobs.to_make(probed.values()) == places("batch_2")


def test_a_job_hands_every_task_the_settings_of_a_job_of_its_own(project: Project) -> None:
    given = json.loads(stage_settings(project, "finetune_tasks", experiment="bnc_mini", batch="batch_1"))["tasks"]
    assert list(given) == sorted(task_batch(project, "bnc_mini", "batch_1"))
    for task, settings in given.items():
        assert settings == json.loads(stage_settings(project, "finetune", experiment="bnc_mini", task=task))


def test_an_unknown_job_is_an_error_that_names_those_there_are(project: Project) -> None:
    with pytest.raises(ConfigError, match="has no job 'batch_9' of several fine-tuning tasks; there are: batch_1"):
        task_batch(project, "bnc_mini", "batch_9")
    with pytest.raises(ConfigError, match="there are: none"):
        task_batch(project, "strict", "batch_1")
