"""Text of one's own, before anything runs: what needs nothing else, where it lies, and whether it can be split."""

import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from hatchery.config.own_text import check_own_text
from hatchery.config.project import Project
from hatchery.config.raw_inputs import raw_inputs
from hatchery.errors import ConfigError
from hatchery.planning.layout import Layout

REPOSITORY = Path(__file__).resolve().parents[2]


def project_with(folder: Path, path: Path | str, **corpus: Any) -> Project:
    shutil.copytree(REPOSITORY / "config", folder / "config")
    file = folder / "config/corpora/my_text.yaml"
    block = yaml.safe_load(file.read_text(encoding="utf-8"))
    block["sources"][0]["options"] = corpus.pop("options", {})
    block["split"].update(corpus.pop("split", {}))
    file.write_text(yaml.safe_dump({**block, **corpus}), encoding="utf-8")
    return Project(folder / "config", {"data": {"my_text": {"path": str(path)}}})


def test_the_experiment_needs_no_data_but_the_text_itself() -> None:
    project = Project(REPOSITORY / "config")
    block = project.experiment("my_text")
    layout = Layout(project)
    assert {source["name"] for source in raw_inputs(project, block["corpus"])} == {"my_text"}
    assert project.block("tokenizer", block["tokenizer"])["corpus"] == "my_text"
    assert block["minimal_pairs"] == block["baselines"] == []
    assert block["finetuning"]["tasks"] == {}
    assert layout.perplexities("my_text")
    assert project.config["data"]["my_text"]["path"] is None


def test_blimp_is_one_line_away() -> None:
    text = (REPOSITORY / "config/experiments/my_text.yaml").read_text(encoding="utf-8")
    added = yaml.safe_load(re.sub(r"^# (minimal_pairs:)", r"\1", text, flags=re.MULTILINE))
    assert added["minimal_pairs"] == ["blimp_sample"]
    assert "github.com/alexwarstadt/blimp" in Project(REPOSITORY / "config").config["data"]["blimp"]["obtain"]


def test_a_tilde_in_the_path_of_data_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "letters").mkdir()
    project = project_with(tmp_path / "project", "~/letters")
    assert project.config["data"]["my_text"]["path"] == str(tmp_path / "letters")
    assert f'"path":"{tmp_path}/letters"' in Layout(project).settings("register_source", source="my_text")


@pytest.mark.parametrize("form", ["file", "folder", "zip"])
@pytest.mark.parametrize(
    ("bytes_", "corpus", "told"),
    [
        (3_000, {}, True),
        (90_000, {}, False),
        (90_000, {"options": {"cut_files": "never"}}, True),
        (90_000, {"options": {"cut_files": "never", "lines_per_document": 9}}, False),
        (3_000, {"split": {"development_fraction": 0.0}}, False),
        (3_000, {"split": {"development_documents": 1}}, True),
    ],
)
def test_a_text_that_is_one_document_is_told_before_anything_runs(
    form: str, bytes_: int, corpus: dict[str, Any], told: bool, tmp_path: Path
) -> None:
    root = tmp_path / "note"
    root.mkdir()
    (root / "a.txt").write_text("word " * (bytes_ // 5))
    (root / "b.md").write_text("not read")
    path = root / "a.txt" if form == "file" else root
    if form == "zip":
        path = tmp_path / "note.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.write(root / "a.txt", "a.txt")
    project = project_with(tmp_path, path, **corpus)
    if not told:
        check_own_text(project, "my_text")
        return
    with pytest.raises(ConfigError, match=r"corpora/my_text\.yaml: split: .* is one document.*lines_per_document"):
        project.experiment("my_text")


def test_what_cannot_be_told_at_once_is_left_to_the_stages(tmp_path: Path) -> None:
    root = tmp_path / "raw"
    root.mkdir()
    project = project_with(tmp_path, root)
    check_own_text(project, "my_text")
    (root / "a.csv").write_text("text\nx\n")
    check_own_text(project, "my_text")
    (root / "a.txt").write_text("x")
    check_own_text(project, "my_text")
    check_own_text(project, "babylm_10M")
    check_own_text(project, "demo")
    damaged = tmp_path / "damaged.zip"
    damaged.write_bytes(b"PK\x03\x04")
    check_own_text(project_with(tmp_path / "other", damaged), "my_text")
    check_own_text(project_with(tmp_path / "third", tmp_path / "missing"), "my_text")
