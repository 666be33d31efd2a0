"""The experiment `my_text`: its inputs, and its changes for the languages of the user's text."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from shipped import REPOSITORY

from hatchery.experiment.project import Project
from hatchery.experiment.raw_inputs import raw_inputs
from hatchery.workflow.jobs import Jobs


def project_with(folder: Path, path: Path | str, **corpus: Any) -> Project:
    shutil.copytree(REPOSITORY / "config", folder / "config")
    file = folder / "config/experiments/my_text.yaml"
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    block = document["corpus"]
    block["sources"][0]["options"] = corpus.pop("options", {})
    block["split"].update(corpus.pop("split", {}))
    block.update(corpus)
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    return Project(folder / "config", {"data": {"my_text": {"path": str(path)}}})


def test_the_experiment_needs_no_data_but_the_text_itself() -> None:
    project = Project(REPOSITORY / "config")
    block = project.experiment("my_text")
    jobs = Jobs(project)
    assert {source["name"] for source in raw_inputs(project, block.corpus)} == {"my_text"}
    assert project.tokenizer(block.tokenizer).corpus == "my_text"
    assert block.minimal_pairs == block.baselines == ()
    assert block.finetuning.tasks == {}
    assert jobs.results.of_kind("my_text", "perplexity")
    assert project.config.data["my_text"].path is None


def test_blimp_is_one_line_away() -> None:
    text = (REPOSITORY / "config/experiments/my_text.yaml").read_text(encoding="utf-8")
    added = yaml.safe_load(re.sub(r"^# (minimal_pairs:)", r"\1", text, flags=re.MULTILINE))
    assert added["minimal_pairs"] == ["blimp_sample"]
    assert "github.com/alexwarstadt/blimp" in Project(REPOSITORY / "config").config.data["blimp"].obtain


def test_a_tilde_in_the_path_of_data_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "letters").mkdir()
    project = project_with(tmp_path / "project", "~/letters")
    assert project.raw_input("my_text").path == str(tmp_path / "letters")
    assert f'"path":"{tmp_path}/letters"' in Jobs(project).settings("register_source", source="my_text")


def test_languages_change_the_conversion_of_own_text_alone_and_only_where_no_option_speaks(tmp_path: Path) -> None:
    settings = {
        name: Jobs(project_with(tmp_path / name, "x", **corpus)).settings("convert_corpus", corpus="my_text")
        for name, corpus in {
            "unknown": {},
            "german": {"languages": ["de"]},
            "said": {"languages": ["de"], "options": {"sentences": "line"}},
        }.items()
    }
    assert '"languages":[]' in settings["unknown"] and '"languages":["de"]' in settings["german"]
    assert '"languages":null' in settings["said"]
    card = Jobs(project_with(tmp_path / "card", "x", languages=["de"])).settings("describe_corpus", corpus="my_text")
    assert '"languages":["de"]' in card
    for corpus in ("bnc", "babylm_10M", "real_small", "child_directed", "c4_en", "demo_parallel_english"):
        assert '"languages":null' in Jobs(Project(REPOSITORY / "config")).settings("convert_corpus", corpus=corpus)


def test_no_card_says_a_language_that_nobody_named_or_what_we_call_a_text(tmp_path: Path) -> None:
    exported = json.loads(
        Jobs(project_with(tmp_path, "x")).settings("export_model", experiment="my_text", run="ltg_bert-s42")
    )
    assert exported["languages"] == []
    assert (exported["corpus_description"], exported["sources"][0]["obtain"]) == ("", "")
    assert "yours" not in json.dumps(exported)
    assert not re.search(r"\([a-z]+_[a-z_]+\)", exported["model_description"])
