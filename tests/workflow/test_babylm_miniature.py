"""The complete BabyLM workflow in miniature: from raw text to the submission, the page and the hub's branches."""

import hashlib
import json
from pathlib import Path

import pytest
from projects import (
    ONE_CONVERTS,
    make_project,
    planned_rules,
    snakemake,
    with_fewer_pairs,
    with_narrow_figures,
    with_smaller_models,
)

from hatchery.artifacts.manifests import read_manifest
from hatchery.export.submission_check import structure_problems

pytestmark = pytest.mark.slow

EXPERIMENT = "babylm_mini"
RESULTS = f"results/{EXPERIMENT}"
TARGETS = [f"{RESULTS}/{name}" for name in ("submission.json", "index.html", "export/gpt_bert-s42/manifest.json")]
NAMES = ["chck_20K", "chck_40K", "chck_60K"]


def files(folder: Path) -> dict[str, str]:
    names = ("config.json", "model.safetensors", "tokenizer.json")
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}


def test_a_budget_of_words_becomes_a_submission_a_page_and_branches(tmp_path: Path, repository: Path) -> None:
    folder = make_project(tmp_path / "project", repository)
    with_fewer_pairs(folder)
    with_smaller_models(folder)
    with_narrow_figures(folder, EXPERIMENT)
    result = snakemake(folder, *ONE_CONVERTS, "--cores", "2", *TARGETS, timeout=1200)
    assert result.returncode == 0, (result.stdout + result.stderr)[-6000:]
    by_name = f"{RESULTS}/pretraining/gpt_bert-s42-chck_40K/manifest.json"
    assert planned_rules(folder, *TARGETS, by_name) == {}

    model = folder / RESULTS / "pretraining/gpt_bert-s42"
    measures = read_manifest(model / "manifest.json").measures
    assert 55_000 < measures["words"] <= 60_000 and sorted(measures["marks"]) == NAMES
    assert files(model / "milestones/chck_60K") == files(model) != files(model / "milestones/chck_40K")
    branches = folder / RESULTS / "export/gpt_bert-s42/branches"
    assert sorted(path.name for path in branches.iterdir()) == NAMES

    submission = json.loads((folder / RESULTS / "submission.json").read_text(encoding="utf-8"))
    assert structure_problems(submission, "strict_small") == []
    assert len(submission["glue"]) == 7 and submission["aoa"] is not None
    for block, checkpoints in submission["fast_eval_results"].items():
        assert len(checkpoints) == len(NAMES) and None not in checkpoints, block
