"""Data sets of the hub, read by the library from a local folder with the hub's layout; and models, complete
or absent."""

import gzip
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest

from hatchery.errors import ConfigError, SourceError
from hatchery.raw import hub as hub_module
from hatchery.raw.hub import chosen_files, fetch_hub, fetch_hub_model
from hatchery.raw.obtain import register_settings
from hatchery.raw.registration import STAMP, open_source
from hatchery.raw.settings import Hub, HubModel, source_settings

PER_SHARD = 70


@pytest.fixture(autouse=True)
def no_network_and_no_cache_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr("datasets.config.HF_MODULES_CACHE", tmp_path / "modules")


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """Three compressed files of 100 documents each and a validation file of 30 documents, in the layout of C4."""
    root = tmp_path / "c4"
    (root / "en").mkdir(parents=True)
    for split, files, documents in (("train", 3, 100), ("validation", 1, 30)):
        for file in range(files):
            with gzip.open(root / f"en/c4-{split}.{file:05d}-of-{files:05d}.json.gz", "wt") as handle:
                for index in range(documents):
                    row = {"text": f"{split} {file} {index}\nsecond line", "timestamp": "2019", "url": f"u{index}"}
                    handle.write(json.dumps(row) + "\n")
    (root / "README.md").write_text(
        "---\nconfigs:\n- config_name: en\n  data_files:\n"
        "  - {split: train, path: en/c4-train.*.json.gz}\n"
        "  - {split: validation, path: en/c4-validation.*.json.gz}\n---\n"
    )
    return root


def of(root: Path, **changes: Any) -> Hub:
    return Hub(**{"dataset": str(root), "revision": "0" * 40, "config": "en", **changes})


def texts(folder: Path, split: str = "train") -> list[str]:
    shards = sorted(folder.glob(f"{split}-*.parquet"))
    return [text for shard in shards for text in pq.read_table(shard).column("text").to_pylist()]


def expected(split: str = "train", files: int = 3, documents: int = 100) -> list[str]:
    return [f"{split} {file} {index}\nsecond line" for file in range(files) for index in range(documents)]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix == ".parquet"}


def test_a_split_becomes_shards_in_its_own_order_and_is_taken_as_it_is_until_something_else_is_asked_for(
    dataset: Path, tmp_path: Path, tree: Callable[[Path], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fetch_hub(of(dataset), tmp_path / "fetched/c4", PER_SHARD)
    assert texts(folder) == expected()
    assert tree(tmp_path / "fetched") == [f"c4/{STAMP}", *(f"c4/train-{index:05d}.parquet" for index in range(5))]
    with monkeypatch.context() as patch:
        patch.setattr(hub_module, "open_stream", lambda hub, split: pytest.fail("asked the hub again"))
        fetch_hub(of(dataset), tmp_path / "fetched/c4", PER_SHARD)
    fetch_hub(of(dataset, revision="1" * 40, documents=3), folder, PER_SHARD)
    assert texts(folder) == expected()[:3] and len(contents(folder)) == 1
    # If the documents fill the last shard of a split, there is no empty shard.
    fetch_hub(of(dataset), folder, 100)
    assert sorted(contents(folder)) == [f"train-{index:05d}.parquet" for index in range(3)]


@pytest.mark.parametrize("documents", [1, 69, 70, 71, 140, 300, 5000])
def test_the_first_documents_of_a_split_can_be_taken(documents: int, dataset: Path, tmp_path: Path) -> None:
    folder = fetch_hub(of(dataset, documents=documents), tmp_path / "c4-first", PER_SHARD)
    assert texts(folder) == expected()[:documents]
    assert len(contents(folder)) == -(-min(documents, 300) // PER_SHARD)


def test_several_splits_and_columns_are_kept(dataset: Path, tmp_path: Path) -> None:
    wanted = of(dataset, splits=("validation", "train"), columns=("url", "text"), documents=40)
    folder = fetch_hub(wanted, tmp_path / "out", PER_SHARD)
    assert texts(folder, "validation") == expected("validation", 1, 30)
    assert texts(folder, "train") == expected()[:40]
    assert pq.read_schema(folder / "train-00000.parquet").names == ["url", "text"]


class Interrupting:
    """Reads documents through the library and raises an error after `after` documents."""

    def __init__(self, after: int) -> None:
        self.after, self.read = after, 0
        self.original = hub_module._write_shard

    def write_shard(self, path: Path, schema: Any, rows: Iterator[Any], progress: Any) -> int:
        return self.original(path, schema, self.counted(rows), progress)

    def counted(self, rows: Iterator[Any]) -> Iterator[Any]:
        for row in rows:
            if self.read == self.after:
                raise KeyboardInterrupt
            self.read += 1
            yield row


@pytest.mark.parametrize("after", [0, 1, 70, 75, 140, 215, 299])
def test_a_killed_run_goes_on_behind_its_last_shard_with_the_same_bytes(
    after: int, dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = contents(fetch_hub(of(dataset), tmp_path / "whole", PER_SHARD))
    interrupting = Interrupting(after)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(hub_module, "_write_shard", interrupting.write_shard)
        fetch_hub(of(dataset), tmp_path / "out", PER_SHARD)
    assert not (tmp_path / "out").exists()
    assert set(contents(tmp_path / ".out.partial")) == {f"train-{index:05d}.parquet" for index in range(after // 70)}
    counting = Interrupting(10_000)
    monkeypatch.setattr(hub_module, "_write_shard", counting.write_shard)
    assert contents(fetch_hub(of(dataset), tmp_path / "out", PER_SHARD)) == whole
    assert counting.read == 300 - after // 70 * 70


def test_no_files_are_opened_before_or_behind_the_documents_that_are_needed(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = dataset / "en/c4-train.00002-of-00003.json.gz"
    content = last.read_bytes()
    last.write_bytes(b"damaged")
    assert texts(fetch_hub(of(dataset, documents=150), tmp_path / "first", PER_SHARD)) == expected()[:150]
    for path in (last, dataset / "en/c4-train.00003-of-00004.json.gz"):
        path.write_bytes(content)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(hub_module, "_write_shard", Interrupting(355).write_shard)
        fetch_hub(of(dataset), tmp_path / "out", PER_SHARD)
    # The first file is needed for the column types; to resume, the library rereads at most one earlier file.
    (dataset / "en/c4-train.00001-of-00003.json.gz").write_bytes(b"damaged")
    assert texts(fetch_hub(of(dataset), tmp_path / "out", PER_SHARD)) == expected() + expected()[200:]


def test_work_for_other_settings_is_not_continued(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(hub_module, "_write_shard", Interrupting(215).write_shard)
        fetch_hub(of(dataset), tmp_path / "out", PER_SHARD)
    folder = fetch_hub(of(dataset, splits=("validation",)), tmp_path / "out", PER_SHARD)
    assert texts(folder) == []
    assert texts(folder, "validation") == expected("validation", 1, 30)


def test_a_failing_network_is_told_and_finished_shards_are_kept(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing(Interrupting):
        def counted(self, rows: Iterator[Any]) -> Iterator[Any]:
            for row in super().counted(rows):
                if self.read == 100:
                    raise ConnectionError("the hub\ndoes not answer")
                yield row

    with monkeypatch.context() as patch, pytest.raises(SourceError) as caught:
        patch.setattr(hub_module, "_write_shard", Failing(1000).write_shard)
        fetch_hub(of(dataset), tmp_path / "out", PER_SHARD)
    assert str(caught.value) == f"{dataset} (en, train) at {'0' * 40}: the hub; finished shards are kept"
    assert len(contents(tmp_path / ".out.partial")) == 1
    assert texts(fetch_hub(of(dataset), tmp_path / "out", PER_SHARD)) == expected()


@pytest.mark.parametrize(("status", "told"), [(429, "the hub answers 429 busy; run again later"), (404, "not found")])
def test_what_the_server_answered_is_told_where_the_library_speaks_of_missing_files(
    status: int, told: str, dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> Any:
        answer = OSError("refused")
        answer.response = SimpleNamespace(status_code=status, reason_phrase="busy")  # type: ignore[attr-defined]
        raise FileNotFoundError("not found") from answer

    monkeypatch.setattr(hub_module, "open_stream", refused)
    with pytest.raises(SourceError, match=rf": {told}; finished shards are kept$"):
        fetch_hub(of(dataset), tmp_path / "out", PER_SHARD)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"columns": ("words",)}, "has no column 'words'; there are: text, timestamp, url"),
        ({"dataset": "owner/there-is-none"}, "owner/there-is-none"),
        # The second file of the data set is damaged.
        ({}, "finished shards are kept"),
    ],
)
def test_what_the_hub_does_not_have_is_told_in_one_line(
    changes: dict[str, Any], reason: str, dataset: Path, tmp_path: Path
) -> None:
    file = dataset / "en/c4-train.00001-of-00003.json.gz"
    file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(SourceError) as caught:
        fetch_hub(of(dataset, **changes), tmp_path / "out", PER_SHARD)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_a_full_disk_is_told_and_leaves_no_half_shard(dataset: Path, small_disk: Path) -> None:
    noise = random.Random("noise").randbytes(2_000_000).hex()
    with gzip.open(dataset / "en/c4-train.00001-of-00003.json.gz", "wt", compresslevel=1) as handle:
        handle.writelines(json.dumps({"text": noise[at : at + 40_000]}) + "\n" for at in range(0, len(noise), 40_000))
    with pytest.raises(SourceError, match=r"No space left on device.*; finished shards are kept"):
        fetch_hub(of(dataset), small_disk / "out", PER_SHARD)
    assert not (small_disk / "out").exists()
    work = small_disk / ".out.partial"
    shards = sorted(path.name for path in work.iterdir() if path.name not in (".begun.json", ".train.json"))
    assert shards == [f"train-{index:05d}.parquet" for index in range(len(shards))]
    assert [len(texts(work))] == [len(shards) * PER_SHARD]


def test_an_empty_split_is_told_every_time(dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = hub_module.open_stream
    monkeypatch.setattr(hub_module, "open_stream", lambda hub, split: original(hub, split).filter(lambda row: False))
    for _twice in range(2):
        with pytest.raises(SourceError, match="has no documents"):
            fetch_hub(of(dataset), tmp_path / "out", PER_SHARD)


def test_the_library_is_asked_for_the_pinned_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def record(*given: Any, **named: Any) -> list[str]:
        asked.append((given, named))
        return ["a.txt"]

    commit = "1" * 40
    monkeypatch.setattr(hub_module, "load_dataset", record)
    monkeypatch.setattr(hub_module, "hf_hub_download", record)
    monkeypatch.setattr(hub_module, "HfApi", lambda: SimpleNamespace(list_repo_files=record))
    hub_module.open_stream(Hub("some/text", commit, config="en"), "test")
    fetch_hub(Hub("some/text", commit, files=("*.txt",)), tmp_path / "text")
    assert asked == [
        (("some/text", "en"), {"split": "test", "revision": commit, "streaming": True}),
        (("some/text",), {"repo_type": "dataset", "revision": commit}),
        (("some/text", "a.txt"), {"repo_type": "dataset", "revision": commit, "local_dir": tmp_path / ".text.partial"}),
    ]


MODEL = {"repository": "somebody/bert", "revision": "0" * 40}
FILES = [
    *("README.md", "config.json", "flax_model.msgpack", "model.safetensors", "modeling_evil.py", "pytorch_model.bin"),
    *("rust_model.ot", "tf_model.h5", "tokenizer.json", "tokenizer_config.json", "vocab.txt", "onnx/model.onnx"),
]


class FakeHub:
    """A hub with one repository that fails at the file `broken`."""

    def __init__(self, files: list[str], broken: str = "") -> None:
        self.files, self.broken, self.fetched = files, broken, list[str]()

    def names_in(self, repository: str, kind: str, revision: str) -> list[str]:
        return self.files

    def fetch_file(self, repository: str, kind: str, revision: str, name: str, folder: Path) -> None:
        if name == self.broken:
            raise ConnectionError("the line is dead")
        (folder / ".cache").mkdir(exist_ok=True)
        (folder / name).write_text(f"{name} at {revision}")
        self.fetched.append(name)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> FakeHub:
    made = FakeHub(FILES)
    for name in ("names_in", "fetch_file"):
        monkeypatch.setattr(hub_module, name, getattr(made, name))
    return made


def test_weights_configuration_and_tokenizer_are_registered_and_nothing_that_is_code(
    hub: FakeHub, tmp_path: Path
) -> None:
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
    with pytest.raises(SourceError, match=r"here: config\.json or the weights are missing"):
        chosen_files(["config.json", "tf_model.h5"], "here")


def test_a_broken_line_is_told_in_one_line_and_leaves_no_half_model(hub: FakeHub, tmp_path: Path) -> None:
    hub.broken = "model.safetensors"
    with pytest.raises(SourceError, match=f"somebody/bert at {'0' * 40}: the line is dead; finished files are kept"):
        fetch_hub_model(HubModel(**MODEL), tmp_path / "bert")
    assert not (tmp_path / "bert").exists()
    hub.broken = ""
    fetch_hub_model(HubModel(**MODEL), tmp_path / "bert")
    assert (tmp_path / "bert/model.safetensors").read_text() == f"model.safetensors at {'0' * 40}"


def test_files_of_a_data_set_are_fetched_as_they_are(hub: FakeHub, tmp_path: Path) -> None:
    hub.files = ["README.md", "childes.train.txt", "switchboard.train.txt"]
    wanted = {"dataset": "somebody/text", "revision": "0" * 40, "files": ["*.train.txt"]}
    register_settings({"name": "text", "hub": wanted}, tmp_path / "text.json", tmp_path / "fetched")
    source = open_source(tmp_path / "text.json")
    assert source.names() == ["childes.train.txt", "switchboard.train.txt"]
    with pytest.raises(SourceError, match=r"text at 0{40}: no file matches \*\.zip; there are: README\.md, chil"):
        fetch_hub(Hub("somebody/text", "0" * 40, files=("*.zip",)), tmp_path / "zip")
    with pytest.raises(ConfigError, match="which cannot be combined with `documents`"):
        source_settings({"name": "text", "hub": {**wanted, "documents": 3}})
