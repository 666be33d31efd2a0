"""Several suites in one job: the same bytes as one job per suite, one loaded model, nothing computed twice."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from hatchery.artifacts.manifests import read_manifest
from hatchery.errors import EvaluationError
from hatchery.evaluation import several_items
from hatchery.evaluation.minimal_pairs import opened_models
from hatchery.evaluation.settings import ScoringSettings
from hatchery.evaluation.stages.score_minimal_pairs import score_minimal_pairs
from hatchery.evaluation.stages.score_suites import score_suites
from hatchery.experiment.milestones import suite_batches
from hatchery.experiment.project import Project
from hatchery.runner import run_stage
from hatchery.workflow.jobs import Jobs
from hatchery.workflow.outputs import ReadablePath


def contents(folder):
    return {name: (folder / name).read_bytes() for name in ("accuracy.csv", "scores.parquet", "manifest.json")}


RUNTIME = {"tokens_per_batch": 64, "device": "cpu"}
BLIMP = {"stage": "score_minimal_pairs", "stage_version": 1, "format": "blimp", "files": "*.jsonl", "scoring": "pll"}
PAIRS = [{"sentence_good": "The dogs sleep .", "sentence_bad": "The dogs sleeps ."}] * 2


@pytest.fixture
def job(model_manifest, make_source, json_lines, tmp_path, monkeypatch):
    """Return a function that runs a job of suites and returns the number of loaded models and the scored suites."""
    source = make_source({"a.jsonl": json_lines(PAIRS), "b.jsonl": json_lines(PAIRS[:1]), "c.jsonl": "{}\n"})
    loaded, scored = [], []
    original = opened_models.load_sentence_model

    def counted(*given, **more):
        loaded.append(given[0])
        return original(*given, **more)

    def run_counted(function, settings, output, **given):
        scored.append(settings["suite"])
        run_stage(function, settings, output, **given)

    monkeypatch.setattr(opened_models, "load_sentence_model", counted)
    monkeypatch.setattr(several_items, "run_stage", run_counted)

    def run(suites):
        loaded.clear()
        scored.clear()
        run_stage(
            score_suites,
            {"stage": "score_suites", "stage_version": 1, "suites": suites},
            tmp_path / "job" / "manifest.json",
            runtime=RUNTIME,
            model=model_manifest,
            source=dict.fromkeys(suites, source.manifest),
            results=tmp_path / "out",
            folder={suite: suite for suite in suites},
        )
        return len(loaded), list(scored)

    run.source = source.manifest
    return run


def suite(name, **changes):
    return {**BLIMP, "suite": name, "files": f"{name}.jsonl", **changes}


def test_a_job_loads_the_model_once_and_writes_what_jobs_of_one_suite_write(job, model_manifest, tmp_path):
    suites = {"a": suite("a"), "b": suite("b")}
    assert job(suites) == (1, ["a", "b"])
    for name, settings in suites.items():
        alone = tmp_path / "alone" / name / "manifest.json"
        run_stage(score_minimal_pairs, settings, alone, runtime=RUNTIME, model=model_manifest, source=job.source)
        assert contents(alone.parent) == contents(tmp_path / "out" / name)
    digests = read_manifest(tmp_path / "job" / "manifest.json").measures["suites"]
    assert digests == {name: read_manifest(tmp_path / "out" / name / "manifest.json").digest for name in suites}
    # Only the changed suite is scored again. Another scoring method loads the model again.
    assert job({"a": suite("a"), "b": suite("b", scoring="pll_within_word_l2r")}) == (1, ["b"])
    both = {"a": suite("a", seed=1), "b": suite("b", scoring="pll_within_word_l2r", seed=1)}
    assert job(both) == (2, ["a", "b"])


def test_a_kept_model_is_used_again_only_by_suites_with_the_same_frame_and_scoring(monkeypatch, tmp_path):
    loaded, framed, compiled = [], [], set()

    def load(manifest, device, scoring, template):
        loaded.append((manifest.name, scoring, template))
        return SimpleNamespace(number=len(loaded))

    monkeypatch.setattr(opened_models, "load_sentence_model", load)
    monkeypatch.setattr(opened_models, "frame_by_bos_", lambda model: framed.append(model.number))
    monkeypatch.setattr(
        opened_models, "compilation_in_use", lambda model: "layers" if model.number in compiled else "off"
    )
    plain, template = ScoringSettings(suite="a"), ScoringSettings(suite="b", edition=2026)
    track = replace(template, format="multiple_choice", track="multilingual")
    causal = replace(plain, scoring="left_to_right")

    def opened(settings, name="one"):
        return opened_models.opened_model(tmp_path / name, torch.device("cpu"), settings).number

    with opened_models.models_are_kept():
        asked = [plain, plain, causal, causal, template, track, track]
        assert [opened(settings) for settings in asked] == [1, 1, 2, 2, 3, 4, 4]
        assert opened(track, "other") == 5 and opened(causal, "other") == 6, "only the last model is kept"
        # The layers of a compiled model are not used for another suite.
        compiled.add(6)
        assert [opened(causal, "other"), opened(causal, "other")] == [7, 7]
    assert [opened(causal), opened(causal)] == [8, 9], "outside of a job of several suites, no model is kept"
    ways = [("auto", False), ("left_to_right", False), ("auto", True), ("auto", True)]
    assert loaded[:5] == [*(("one", *way) for way in ways), ("other", "auto", True)]
    assert framed == [4, 5]


def test_a_suite_that_fails_does_not_stop_the_others(job, tmp_path):
    with pytest.raises(
        EvaluationError, match=r"2 of 3 suites failed \(c, d\); the first error: c.jsonl:1: the field 'sentence_good'"
    ):
        job({"c": suite("c"), "d": suite("d"), "a": suite("a")})
    assert (tmp_path / "out" / "a" / "manifest.json").exists() and not (tmp_path / "job" / "manifest.json").exists()


def test_the_suites_of_a_model_and_of_its_milestones_are_divided_into_jobs(repository):
    project = Project(repository / "config")
    mini = project.experiment("babylm_multilingual_mini")
    assert {name: len(suites) for name, suites in suite_batches(mini, of_milestone=False).items()} == {"batch_1": 24}
    assert list(suite_batches(mini, of_milestone=True)) == ["milestone_batch_1"]
    assert suite_batches(project.experiment("babylm_mini"), of_milestone=False) == {}
    jobs = Jobs(project)
    asked = [
        ReadablePath("babylm_multilingual_mini", "minimal_pairs", run, f"demo_multilingual_{name}")
        for run in ("gpt_bert-s42", "gpt_bert-s42-chck_10K")
        for name in ("zhoblimp", "hanzi_pinyin")
        if run in project.evaluated("babylm_multilingual_mini")
    ]
    made = jobs.targets_for(asked)
    assert len(made) == len(asked) // 2 and all("minimal_pairs_jobs" in path for path in made)
    settings = json.loads(jobs.settings("score_suites", experiment="babylm_multilingual_mini", batch="batch_1"))
    alone = json.loads(jobs.settings("score_minimal_pairs", suite="demo_multilingual_zhoblimp"))
    assert settings["suites"]["demo_multilingual_zhoblimp"] == alone
