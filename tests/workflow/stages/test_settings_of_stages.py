"""A stage's slice holds what the stage depends on, and nothing else."""

import json
import re
import shutil
from pathlib import Path

import pytest

from hatchery.experiment.project import Project
from hatchery.workflow.jobs import Jobs


@pytest.fixture
def project(repository: Path) -> Project:
    return Project(repository / "config")


def slice_of(project: Project, stage: str, **wildcards: str) -> dict:
    return json.loads(Jobs(project).settings(stage, **wildcards))


def test_a_slice_is_canonical_json(project: Project) -> None:
    text = Jobs(project).settings("pretrain", experiment="demo", run="ltg_bert-s42")
    assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))


def test_a_run_overrides_its_experiment(project: Project) -> None:
    assert slice_of(project, "pretrain", experiment="demo", run="random-s42")["steps"] == 0
    assert slice_of(project, "pretrain", experiment="demo", run="ltg_bert-s42")["steps"] > 0


def test_a_task_overrides_the_protocol(project: Project) -> None:
    assert slice_of(project, "finetune", experiment="strict", task="babylm_qqp")["protocol"]["batch_size"] == 32
    assert slice_of(project, "finetune", experiment="strict", task="babylm_rte")["protocol"]["batch_size"] == 16


def test_paths_and_descriptions_belong_to_no_result(project: Project) -> None:
    for stage, wildcards in [
        ("convert_corpus", {"corpus": "real_small"}),
        ("score_minimal_pairs", {"suite": "blimp_sample"}),
        ("finetune", {"experiment": "real_tasks", "task": "rte"}),
        ("pretrain", {"experiment": "real_tasks", "run": "ltg_bert-s42"}),
    ]:
        text = Jobs(project).settings(stage, **wildcards)
        assert "shared" not in text
        assert "description" not in text
        assert "languages" not in text
    exported = slice_of(project, "export_model", experiment="demo", run="ltg_bert-s42")
    assert exported["languages"] == ["en"]


def test_compute_settings_change_no_slice(repository: Path) -> None:
    plain = Project(repository / "config")
    other = Project(repository / "config", {"compute": {"pretraining_threads": 7, "checkpoint_interval_steps": 3}})
    for stage, wildcards in [
        ("pretrain", {"experiment": "demo", "run": "ltg_bert-s42"}),
        ("finetune", {"experiment": "demo", "task": "demo_acceptability"}),
    ]:
        assert Jobs(plain).settings(stage, **wildcards) == Jobs(other).settings(stage, **wildcards)


def test_swapping_two_values_changes_the_slice(tmp_path: Path, repository: Path) -> None:
    folder = tmp_path / "config"
    shutil.copytree(repository / "config", folder)
    before = Jobs(Project(folder)).settings("pretrain", experiment="demo", run="ltg_bert-s42")
    path = folder / "experiments/demo.yaml"
    text = path.read_text(encoding="utf-8")
    sequences, interval = json.loads(before)["batch_size"], json.loads(before)["evaluation_interval_steps"]
    assert sequences != interval
    swapped = text.replace(f"  batch_size: {sequences}", f"  batch_size: {interval}", 1)
    swapped = swapped.replace(f"evaluation_interval_steps: {interval}", f"evaluation_interval_steps: {sequences}", 1)
    path.write_text(swapped, encoding="utf-8")
    after = Jobs(Project(folder)).settings("pretrain", experiment="demo", run="ltg_bert-s42")
    assert json.loads(after)["evaluation_interval_steps"] == sequences
    assert after != before


def test_missing_data_is_no_input(repository: Path) -> None:
    jobs = Jobs(Project(repository / "config"))
    assert jobs.data.source_inputs("bnc") == []
    assert jobs.data.source_inputs("embedded_bnc") == ["resources/embedded/manifest.json"]


def test_options_of_an_experiment_lie_over_those_of_heads_for_sequences(tmp_path: Path, repository: Path) -> None:
    folder = tmp_path / "config"
    shutil.copytree(repository / "config", folder)
    path = folder / "experiments/demo_suites.yaml"
    text = path.read_text(encoding="utf-8")
    head = "  head_options: {pooling: position_linear, transform: none}\n"
    path.write_text(text.replace("  tasks:\n", f"{head}  tasks:\n", 1), encoding="utf-8")
    project = Project(folder)
    heads = {
        task: slice_of(project, "finetune", experiment="demo_suites", task=task)["task"]["head"]
        for task in ("demo_babylm_rte", "demo_glue_stsb", "demo_probe_dp")
    }
    assert heads["demo_babylm_rte"]["options"] == {"pooling": "position_linear", "transform": "none"}
    assert heads["demo_glue_stsb"]["options"]["pooling"] == "position_linear"
    assert "pooling" not in heads["demo_probe_dp"]["options"]


def test_a_model_of_others_is_what_is_said_about_it_and_is_evaluated_like_ours(
    repository: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "config"
    shutil.copytree(repository / "config", folder)
    (folder / "baselines/gpt.yaml").write_text("data: my_text\narchitecture: causal\n", encoding="utf-8")
    own = "base: causal_mini\nbaselines: [gpt]\n"
    (folder / "experiments/own.yaml").write_text(own, encoding="utf-8")
    jobs = Jobs(Project(folder))
    imported = slice_of(jobs.project, "import_model", baseline="gpt")
    stage = {"stage": "import_model", "stage_version": 1}
    assert imported == {**stage, "architecture": "causal", "leading_blank": None}
    model = jobs.place("results/own/baselines/gpt/manifest.json").split("/")[2]
    assert re.fullmatch("imported-gpt-[0-9a-f]{16}", model)
    # The same address on another model, because the same is asked of both.
    ours, theirs = (
        jobs.place(f"results/own/minimal_pairs/{run}/demo_blimp_filtered/manifest.json").split("/")
        for run in ("causal_zero-s42", "gpt")
    )
    assert theirs == [*ours[:2], model, *ours[3:]]
    # Documents, which its own tokenizer encodes.
    calls = [jobs.call("measure_perplexity", experiment="own", run=run) for run in ("causal_zero-s42", "gpt")]
    assert [set(call.arguments) for call in calls] == [{"tokens"}, {"corpus"}]
    assert calls[0].settings == calls[1].settings


def test_objectives_are_told_of_models_that_were_not_trained_on_masked_text_alone(project: Project) -> None:
    causal = slice_of(project, "summarise", experiment="causal_mini")["objectives"]
    assert causal == dict.fromkeys(("causal_zero", "causal_unigram", "causal_documents"), "causal")
    study = slice_of(project, "summarise", experiment="natural_bias_demo")["objectives"]
    assert study["natural_bias_mini/zero"] == "translation"
    assert "objectives" not in slice_of(project, "summarise", experiment="demo")


def test_what_is_not_asked_of_held_out_text_changes_no_address(project: Project) -> None:
    assert slice_of(project, "measure_perplexity", experiment="causal_mini")["frequency_bin_nats"] == 0.75
    assert "frequency_bin_nats" not in slice_of(project, "measure_perplexity", experiment="strict")
