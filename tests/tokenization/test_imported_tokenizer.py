"""A tokenizer that is there already is taken as it is."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from hatchery.artifacts.manifests import read_manifest
from hatchery.errors import ConfigError, ManifestError, TokenizationError
from hatchery.experiment.project import Project
from hatchery.runner import run_stage
from hatchery.tokenization.imported_tokenizer import import_tokenizer
from hatchery.tokenization.tokenizer_file import load_tokenizer
from hatchery.tokenization.trainer import train
from hatchery.tokenization.trainer_settings import TokenizerSettings
from hatchery.workflow.jobs import Jobs


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("theirs") / "tokenizer.json"
    settings = TokenizerSettings("wordpiece", 400, 1, "babylm", allow_smaller=True)
    train(["the dog sees a cat", "a child likes the river"] * 5, settings).save(str(path))
    return path


def size_of(file: Path) -> int:
    return load_tokenizer(file).vocabulary_size


def settings(vocabulary_size: int) -> dict[str, Any]:
    return {"stage": "train_tokenizer", "stage_version": 2, "imported": True, "vocabulary_size": vocabulary_size}


def test_the_file_is_copied_with_what_transformers_wants_and_its_digest(file: Path, tmp_path: Path) -> None:
    output = tmp_path / "out" / "manifest.json"
    run_stage(import_tokenizer, settings(size_of(file)), output, tokenizer_file=file)
    manifest = read_manifest(output)
    manifest.verify()
    assert manifest.file("tokenizer.json").read_bytes() == file.read_bytes()
    assert json.loads(manifest.file("special_tokens_map.json").read_text())["mask_token"]
    assert list(manifest.inputs) == ["tokenizer_file"]


def test_another_size_and_a_missing_file_are_refused(file: Path, tmp_path: Path) -> None:
    with pytest.raises(TokenizationError, match=f"vocabulary_size: got 7, expected {size_of(file)}, the entries"):
        run_stage(import_tokenizer, settings(7), tmp_path / "out" / "manifest.json", tokenizer_file=file)
    with pytest.raises(ManifestError, match=r"none\.json: the input 'tokenizer_file' is missing"):
        run_stage(
            import_tokenizer, settings(7), tmp_path / "out" / "manifest.json", tokenizer_file=tmp_path / "none.json"
        )


def test_a_file_that_is_no_tokenizer_is_told_by_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "theirs.json").write_text("{}")
    with pytest.raises(TokenizationError, match=r"theirs\.json: "):
        run_stage(
            import_tokenizer, settings(7), tmp_path / "out" / "manifest.json", tokenizer_file=tmp_path / "theirs.json"
        )
    assert not (tmp_path / "out" / "tokenizer.json").exists()


def test_a_block_with_a_path_depends_on_the_file_and_on_no_corpus(file: Path, tmp_path: Path, repository: Path) -> None:
    shutil.copytree(repository / "config", tmp_path / "config")
    block = tmp_path / "config/tokenizers/theirs.yaml"
    text = f"path: {file}\nvocabulary_size: 400\n"
    block.write_text(text)
    project = Project(tmp_path / "config")
    assert Jobs(project).data.tokenizer_corpora("theirs") == [str(file)]
    chosen = json.loads(Jobs(project).settings("train_tokenizer", tokenizer="theirs"))
    assert chosen["imported"] and "theirs" not in str(chosen)
    block.write_text(text + "corpus: demo\nkind: wordpiece\n")
    with pytest.raises(ConfigError, match=r"theirs\.yaml"):
        Project(tmp_path / "config").check("tokenizer", "theirs")
    block.write_text("path: nowhere.json\nvocabulary_size: 400\n")
    with pytest.raises(ConfigError, match=r"theirs\.yaml: path: got 'nowhere.json', there is no such file"):
        Project(tmp_path / "config").check("tokenizer", "theirs")
