"""Models of the hub: which files of a repository are fetched, whole or not at all."""

from pathlib import Path

import pytest

from hatchery.errors import ConfigError, SourceError
from hatchery.raw import hub as hub_models
from hatchery.raw.hub import chosen_files, fetch_hub_model
from hatchery.raw.obtain import register_settings
from hatchery.raw.registration import open_source
from hatchery.raw.settings import HubModel, source_settings

MODEL = {"repository": "somebody/bert", "revision": "0" * 40}
FILES = [
    *("README.md", "config.json", "flax_model.msgpack", "model.safetensors", "modeling_evil.py", "pytorch_model.bin"),
    *("rust_model.ot", "tf_model.h5", "tokenizer.json", "tokenizer_config.json", "vocab.txt", "onnx/model.onnx"),
]


class Hub:
    """A hub with one repository, that breaks down at the file `broken`."""

    def __init__(self, files: list[str], broken: str = "") -> None:
        self.files, self.broken, self.fetched = files, broken, list[str]()

    def names_in(self, model: HubModel) -> list[str]:
        return self.files

    def fetch_file(self, model: HubModel, name: str, folder: Path) -> None:
        if name == self.broken:
            raise ConnectionError("the line is dead")
        (folder / ".cache").mkdir(exist_ok=True)
        (folder / name).write_text(f"{name} at {model.revision}")
        self.fetched.append(name)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Hub:
    made = Hub(FILES)
    for name in ("names_in", "fetch_file"):
        monkeypatch.setattr(hub_models, name, getattr(made, name))
    return made


def test_weights_configuration_and_tokenizer_are_registered_and_nothing_that_is_code(hub: Hub, tmp_path: Path) -> None:
    settings = {"name": "bert", "hub_model": MODEL}
    register_settings(settings, tmp_path / "bert.json", tmp_path / "fetched")
    names = ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "vocab.txt"]
    source = open_source(tmp_path / "bert.json")
    assert (source.kind, source.names()) == ("folder", names)
    hub.fetched.clear()
    register_settings(settings, tmp_path / "again.json", tmp_path / "fetched")
    assert hub.fetched == [] and (tmp_path / "again.json").read_bytes() == (tmp_path / "bert.json").read_bytes()


def test_pickled_weights_are_taken_where_there_are_no_others_and_large_ones_with_their_index() -> None:
    old = [name for name in FILES if name != "model.safetensors"]
    assert "pytorch_model.bin" in chosen_files(old, "here")
    parts = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "model.safetensors.index.json"]
    assert chosen_files([*old, *parts], "here")[-3:] == parts
    with pytest.raises(SourceError, match=r"here: holds no config\.json with weights"):
        chosen_files(["config.json", "tf_model.h5"], "here")


def test_a_broken_line_is_told_in_one_line_and_leaves_no_half_model(hub: Hub, tmp_path: Path) -> None:
    hub.broken = "model.safetensors"
    with pytest.raises(SourceError, match=f"somebody/bert at {'0' * 40}: the line is dead; finished files are kept"):
        fetch_hub_model(HubModel(**MODEL), tmp_path / "bert")
    assert not (tmp_path / "bert").exists()
    hub.broken = ""
    fetch_hub_model(HubModel(**MODEL), tmp_path / "bert")
    assert (tmp_path / "bert/model.safetensors").read_text() == f"model.safetensors at {'0' * 40}"


@pytest.mark.parametrize("revision", ["main", "", None])
def test_a_model_without_a_commit_is_refused(revision: str | None) -> None:
    with pytest.raises(ConfigError, match=r"data\.bert\.hub_model\.revision"):
        source_settings({"name": "bert", "hub_model": {**MODEL, "revision": revision}})
