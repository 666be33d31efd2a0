"""Raw data, folders of models and packages that this machine lacks are reported before anything runs."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from hatchery.experiment.project import Project
from hatchery.experiment.raw_inputs import missing_sources
from hatchery.settings.problems import Problems
from hatchery.workflow.plan_checks import collect_problems


def check(folder: Path, name: str = "my_text") -> list[str]:
    problems = Problems()
    collect_problems(Project(folder), [("experiment", name)], problems)
    return problems.lines


def edited(folder: Path, file: str, **keys: Any) -> None:
    document = yaml.safe_load((folder / file).read_text(encoding="utf-8"))
    for key, value in keys.items():
        document[key] = {**document.get(key, {}), **value} if isinstance(value, dict) else value
    (folder / file).write_text(yaml.safe_dump(document), encoding="utf-8")


def test_a_folder_without_files_is_missing_data(configuration: Path, tmp_path: Path) -> None:
    (tmp_path / "empty/inside").mkdir(parents=True)
    (tmp_path / "empty/.git").mkdir()
    for hidden in ("inside/.hidden", ".git/config"):
        (tmp_path / "empty" / hidden).write_text("x", encoding="utf-8")
    edited(configuration, "config.yaml", data={"my_text": {"path": str(tmp_path / "empty")}})
    (line,) = missing_sources(Project(configuration), ["my_text"])
    assert f"source 'my_text' is at {tmp_path / 'empty'}, a folder without files: set data.my_text.path" in line
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/a.txt").write_text("x", encoding="utf-8")
    (tmp_path / "empty/linked").symlink_to(tmp_path / "elsewhere")
    linked = {"my_text": {"path": str(tmp_path / "empty"), "follow_links": True}}
    edited(configuration, "config.yaml", data=linked)
    assert missing_sources(Project(configuration), ["my_text"]) == []
    (tmp_path / "empty/linked").unlink()
    (tmp_path / "empty/inside/a.txt").write_text("x", encoding="utf-8")
    assert missing_sources(Project(configuration), ["my_text"]) == []


def test_a_folder_that_is_no_model_and_a_missing_package_are_told_before_anything_runs(
    configuration: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "model"
    model.mkdir()
    edited(configuration, "config.yaml", data={"bert_base_cased": {"path": str(model)}}, compute={"sinks": ["wandb"]})
    edited(configuration, "experiments/demo.yaml", baselines=["bert_base_cased"])
    monkeypatch.setattr("hatchery.workflow.plan_checks.find_spec", lambda name: None)
    for name, lacks in (
        ("readme.txt", "config.json"),
        ("config.json", "weights (*.safetensors or *.bin)"),
        ("model.safetensors", "a tokenizer (tokenizer.json, vocab.* or *.model)"),
        ("vocab.txt", None),
    ):
        (model / name).write_text("{}", encoding="utf-8")
        lines = check(configuration, "demo")
        assert [line for line in lines if "expected the folder of a model" in line] == (
            []
            if lacks is None
            else [
                f"{configuration}/baselines/bert_base_cased.yaml: data.bert_base_cased.path: {model} lacks {lacks}, "
                "expected the folder of a model with all of its files"
            ]
        )
        assert [line for line in lines if "compute.sinks: 'wandb' needs the package wandb" in line]
    (model / "adapter_config.json").write_text("{}", encoding="utf-8")
    assert any("merge the adapter into its model" in line for line in check(configuration, "demo"))
    # With conda, jobs have packages that planning cannot know.
    problems = Problems()
    collect_problems(Project(configuration), [("experiment", "demo")], problems, is_own_environment=False)
    assert not any("wandb" in line for line in problems.lines)
    monkeypatch.setattr("hatchery.workflow.plan_checks.find_spec", lambda name: name)
    assert not any("wandb" in line for line in check(configuration, "demo"))
