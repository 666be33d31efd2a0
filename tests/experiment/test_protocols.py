"""The tasks of an experiment: their protocols, keys from other tasks, and the jobs that make their results."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from shipped import PROJECT, REPOSITORY, written

from hatchery.errors import ConfigError
from hatchery.experiment.experiment_file import Finetuning
from hatchery.experiment.finetuning import task_batch, task_batches
from hatchery.experiment.project import Project
from hatchery.settings.fields import ABSENT
from hatchery.workflow.jobs import Jobs
from hatchery.workflow.outputs import readable_path


def experiment(**finetuning: Any) -> dict[str, Any]:
    block = yaml.safe_load((REPOSITORY / "config/experiments/demo.yaml").read_text(encoding="utf-8"))
    return {**block, "finetuning": finetuning}


def test_later_layers_win_and_defaults_fill_the_rest(configuration: Path) -> None:
    project = written(
        configuration,
        {
            "protocols/lower": {"settings": {"epochs": 4, "beta2": 0.98, "seeds": [5]}, "tasks": {}},
            "protocols/upper": {
                "settings": {"base": "lower", "epochs": 5},
                "tasks": {"demo_entailment": {"epochs": 6}},
            },
            "experiments/mine": experiment(
                protocol={"base": "upper", "batch_size": 3},
                tasks={"demo_acceptability": {}, "demo_entailment": {"batch_size": 2}},
            ),
        },
    )
    first = project.protocol_of("mine", "demo_acceptability")
    second = project.protocol_of("mine", "demo_entailment")
    assert (first.epochs, first.batch_size, first.beta2, first.seeds) == (5, 3, 0.98, (5,))
    assert (second.epochs, second.batch_size, second.dropout) == (6, 2, 0.1)


def test_a_task_with_a_base_of_its_own_takes_nothing_of_the_experiments_protocol(configuration: Path) -> None:
    project = written(
        configuration,
        {
            "experiments/mine": experiment(
                protocol={"epochs": 77, "batch_size": 3},
                tasks={"demo_acceptability": {"base": "babylm_official", "selection_metric": "accuracy"}},
            )
        },
    )
    resolved = project.protocol_of("mine", "demo_acceptability")
    assert (resolved.epochs, resolved.batch_size, resolved.selection) == (10, 64, "scored")


def test_the_first_metric_selects_or_the_reported_one_and_nothing_is_held_out_without_need(configuration: Path) -> None:
    tasks: dict[str, Any] = {"demo_acceptability": {}, "demo_entailment": {"selection": "last"}}
    tasks |= {"babylm_cola": {"reported_metric": "mcc"}}
    project = written(configuration, {"experiments/mine": experiment(protocol={}, tasks=tasks)})
    assert project.protocol_of("mine", "demo_acceptability").selection_metric == "accuracy"
    assert project.protocol_of("mine", "babylm_cola").selection_metric == "mcc"
    assert project.protocol_of("mine", "demo_acceptability").development_fraction == 0.1
    assert project.protocol_of("mine", "demo_entailment").development_fraction == 0.0


def test_selection_on_held_out_rows_needs_some(configuration: Path) -> None:
    project = written(
        configuration,
        {"experiments/mine": experiment(protocol={"development_fraction": 0}, tasks={"demo_acceptability": {}})},
    )
    with pytest.raises(
        ConfigError, match="development_fraction: got 0, expected more than 0 with selection 'held_out'"
    ):
        project.check("experiment", "mine")


def test_protocols_that_are_bases_of_each_other_are_refused(configuration: Path) -> None:
    project = written(
        configuration,
        {
            "protocols/one": {"settings": {"base": "two"}},
            "protocols/two": {"settings": {"base": "one"}},
            "experiments/mine": experiment(protocol={"base": "one"}, tasks={"demo_acceptability": {}}),
        },
    )
    with pytest.raises(ConfigError, match="the protocols one, two name each other as base"):
        project.check("experiment", "mine")


def test_a_task_takes_the_keys_of_its_base_and_has_one_place_of_rows(configuration: Path) -> None:
    project = written(
        configuration,
        {
            "tasks/mine": {"base": "demo_acceptability", "metrics": ["mcc"], "data": "my_text"},
            "tasks/mine_again": {"base": "mine", "train_limit": 7},
        },
    )
    block = project.task("mine_again")
    assert (block.metrics, block.train_limit, block.data) == (("mcc",), 7, "my_text")
    assert block.embedded is ABSENT
    assert block.files == project.task("demo_acceptability").files


def test_only_a_task_that_says_how_can_be_transferred_to(configuration: Path) -> None:
    project = written(
        configuration, {"tasks/mine": {"base": "demo_acceptability", "transfer_tasks": ["demo_entailment"]}}
    )
    with pytest.raises(ConfigError, match="got 'demo_entailment', expected a task with the key `transfer`"):
        project.check("task", "mine")


def test_a_protocol_says_which_metric_stands_for_a_task(configuration: Path) -> None:
    tasks = {"babylm_cola": {}, "babylm_mrpc": {}}
    project = written(
        configuration,
        {
            "experiments/official": experiment(protocol={"base": "babylm_official"}, tasks=tasks),
            "experiments/paper": experiment(protocol={"base": "elc_bert"}, tasks=tasks),
        },
    )

    def first(name: str, task: str) -> str:
        return json.loads(Jobs(project).settings("finetune", experiment=name, task=task))["task"]["metrics"][0]

    assert (first("official", "babylm_cola"), first("paper", "babylm_cola")) == ("mcc", "accuracy")
    assert (first("official", "babylm_mrpc"), first("paper", "babylm_mrpc")) == ("f1", "f1")
    assert project.protocol_of("official", "babylm_cola").selection_metric == "f1"
    assert project.protocol_of("paper", "babylm_cola").selection_metric == "accuracy"


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


def test_jobs_of_one_task_make_its_manifest_alone() -> None:
    jobs = Jobs(PROJECT)
    finetuned = jobs.results.of_kind("strict", "finetuning")
    assert jobs.targets_for(finetuned.values()) == [jobs.storage_path(path) for path in finetuned.values()]


def test_jobs_of_several_tasks_are_asked_for_once(configuration: Path) -> None:
    jobs = Jobs(PROJECT)
    runs = [run.name for run in PROJECT.seeded_runs("bnc_mini")]

    def places(batch: str) -> list[str]:
        return [jobs.storage_path(readable_path("bnc_mini", "finetuning_jobs", f"{run}/{batch}")) for run in runs]

    assert jobs.targets_for(jobs.results.of_kind("bnc_mini", "finetuning").values()) == places("batch_1")
    # A request for the probes plans only the jobs that contain probes.
    path = configuration / "experiments/bnc_mini.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(re.sub(r"tasks_per_job: \d+", "tasks_per_job: 14", text), encoding="utf-8")
    jobs = Jobs(Project(configuration))
    probed = {name: path for name, path in jobs.results.of_kind("bnc_mini", "finetuning").items() if "probe" in name}
    assert jobs.targets_for(probed.values()) == places("batch_2")


def test_a_job_hands_every_task_the_settings_of_a_job_of_its_own() -> None:
    given = json.loads(Jobs(PROJECT).settings("finetune_tasks", experiment="bnc_mini", batch="batch_1"))["tasks"]
    assert list(given) == sorted(task_batch(PROJECT, "bnc_mini", "batch_1"))
    for task, settings in given.items():
        assert settings == json.loads(Jobs(PROJECT).settings("finetune", experiment="bnc_mini", task=task))


def test_an_unknown_job_is_an_error_that_names_those_there_are() -> None:
    with pytest.raises(
        ConfigError, match=r"has no job 'batch_9' that combines several .*; the jobs with several tasks are: batch_1"
    ):
        task_batch(PROJECT, "bnc_mini", "batch_9")
    with pytest.raises(ConfigError, match="the jobs with several tasks are: none"):
        task_batch(PROJECT, "strict", "batch_1")
