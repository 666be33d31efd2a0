"""Several tasks in one job: the same bytes as one job per task, and valid results are not computed again."""

import json
from pathlib import Path

import pytest
from finetuning_cases import RUNTIME, contents, finetuned, sentences, short

from hatchery.artifacts.manifests import read_manifest
from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation import several_items
from hatchery.evaluation.stages.finetune_tasks import finetune_tasks
from hatchery.runner import run_stage


@pytest.fixture
def job(model_manifest, source, tmp_path, monkeypatch):
    """Return a function that runs a job of named tasks and returns the trained tasks."""
    trained = []

    def counted(function, settings, output, **given):
        trained.append(settings["task"]["name"])
        run_stage(function, settings, output, **given)

    monkeypatch.setattr(several_items, "run_stage", counted)

    def run(tasks, sources=None):
        trained.clear()
        settings = {"stage": "finetune_tasks", "stage_version": 1, "tasks": tasks}
        sources = dict.fromkeys(tasks, source.manifest) if sources is None else sources
        run_stage(
            finetune_tasks,
            settings,
            output(tmp_path),
            runtime=RUNTIME,
            model=model_manifest,
            source=sources,
            checkpoints=tmp_path / "kept",
            results=tmp_path / "out",
            folder={task: task for task in tasks},
        )
        return list(trained)

    return run


def output(tmp_path: Path) -> Path:
    return tmp_path / "jobs" / "batch_1" / "manifest.json"


def tasks_reused(tmp_path: Path) -> int:
    return json.loads(output(tmp_path).with_name("provenance.json").read_text())["tasks_reused"]


def named(name, **changes):
    return short(task={"name": name, **changes})


def test_a_job_writes_what_jobs_of_one_task_write(job, model_manifest, source, tmp_path):
    tasks = {"first": named("first"), "second": named("second", metrics=["mcc"])}
    assert job(tasks) == ["first", "second"]
    for name, settings in tasks.items():
        sources = {name: source.manifest}
        # With the same checkpoints, the second job would only read the runs that the first job stored.
        alone = finetuned(tmp_path / "alone" / name, settings, model_manifest, sources, tmp_path / "kept alone")
        assert contents(alone) == contents(tmp_path / "out" / name)
    digests = read_manifest(output(tmp_path)).measures["tasks"]
    assert digests == {name: read_manifest(tmp_path / "out" / name / "manifest.json").digest for name in tasks}


def test_only_the_task_that_changed_is_trained_again(job, tmp_path):
    tasks = {"first": named("first"), "second": named("second")}
    job(tasks)
    assert (job(tasks), tasks_reused(tmp_path)) == ([], 2)
    before = read_manifest(output(tmp_path)).digest
    assert job({**tasks, "second": named("second", metrics=["mcc"])}) == ["second"]
    assert tasks_reused(tmp_path) == 1
    assert read_manifest(output(tmp_path)).digest != before


def test_results_that_were_damaged_are_made_again(job, tmp_path):
    tasks = {"first": named("first"), "second": named("second")}
    job(tasks)
    whole = (tmp_path / "out/first/results.csv").read_bytes()
    (tmp_path / "out/first/results.csv").write_bytes(whole[:-1])
    assert job(tasks) == ["first"]
    assert (tmp_path / "out/first/results.csv").read_bytes() == whole


def test_other_raw_data_under_the_same_name_is_trained_on(job, make_source, json_lines):
    tasks = {"first": named("first")}
    job(tasks)
    make_source({"train.jsonl": json_lines(sentences(50, 2)), "validation.jsonl": json_lines(sentences(40, 1))})
    assert job(tasks) == ["first"]


def test_a_task_that_fails_stops_no_other_and_a_second_attempt_trains_it_alone(job, tmp_path):
    wrong = named("wrong", fields=["no_such_field"])
    with pytest.raises(EvaluationError, match=r"1 of 3 tasks failed \(wrong\); the first error: .*no_such_field"):
        job({"first": named("first"), "wrong": wrong, "last": named("last")})
    assert not output(tmp_path).exists()
    assert not (tmp_path / "out/wrong/manifest.json").exists()
    assert job({"first": named("first"), "wrong": named("wrong"), "last": named("last")}) == ["wrong"]
    assert json.loads(output(tmp_path).read_text())["measures"]["tasks"].keys() == {"first", "wrong", "last"}


def test_of_several_tasks_that_fail_all_are_named_and_the_first_error_is_shown(job, capsys):
    wrong = {"wrong": named("wrong", fields=["no_such_field"]), "bad": named("bad", fields=["neither"])}
    with pytest.raises(EvaluationError, match=r"2 of 2 tasks failed \(wrong, bad\); the first error: .*no_such_field"):
        job(wrong)
    lines = [line for line in capsys.readouterr().err.splitlines() if "is missing" in line]
    assert [line.partition(": ")[0] for line in lines] == ["wrong", "bad"] and "'neither'" in lines[1]


def test_a_task_without_a_source_is_an_error_before_any_work(job, source):
    with pytest.raises(
        ConfigError, match="source: the source 'second' is missing, expected the sources of the task 'second'"
    ):
        job({"first": named("first"), "second": named("second")}, {"first": source.manifest})
