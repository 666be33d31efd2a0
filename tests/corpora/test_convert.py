"""The whole conversion: shards, counts, equal output of repeated runs, and no leftovers after an error."""

import csv
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stage_command import stage_command

from hatchery.artifacts.manifests import read_manifest, stage_run
from hatchery.artifacts.parquet import read_tables
from hatchery.corpora.documents import RawDocument, ReaderContext, count_words
from hatchery.corpora.file_groups import file_groups
from hatchery.corpora.readers import READERS, reader_and_options
from hatchery.corpora.settings import ConvertSettings
from hatchery.corpora.stages.convert_corpus import convert_corpus
from hatchery.errors import ConfigError, CorpusError
from hatchery.raw.registration import RawSource, register_source
from hatchery.settings.fields import hints_of
from hatchery.typed import build

BNC_AND_TEXT: dict[str, Any] = {
    "sources": [
        {"name": "bnc", "reader": "bnc_xml", "options": {}},
        {"name": "cbt", "reader": "babylm", "options": {"corpus": "cbt", "lines_per_document": 40}},
        {"name": "text", "reader": "plain_text", "options": {}},
    ],
    "split": {"development_fraction": 0.2, "test_fraction": 0.2, "seed": 4},
    "documents_per_shard": 7,
}


@pytest.fixture(scope="session")
def manifests(embedded_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("sources")
    paths = {}
    for name, root in (("bnc", "bnc"), ("cbt", "babylm"), ("text", "text")):
        paths[name] = folder / f"{name}.json"
        register_source(name, embedded_folder / root, paths[name])
    return paths


def convert(settings: dict[str, Any], manifests: dict[str, Path], output: Path, workers: int = 1) -> None:
    with stage_run(output, {"stage": "convert_corpus", "stage_version": 1, **settings}, manifests) as run:
        convert_corpus(build(ConvertSettings, settings), manifests, run, workers=workers)


@given(st.text(st.sampled_from([*map(chr, range(33)), "a", "b", ".", "\x7f", "\x85", "\xa0", "\u2028", "\u3000", "é"])))
def test_words_are_counted_as_python_splits_them(text: str) -> None:
    assert count_words(text) == len(text.split())
    assert count_words(ascii_only := text.encode("ascii", "ignore").decode()) == len(ascii_only.split())


def test_a_part_of_parallel_text_depends_on_both_sides(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    (raw / "a.de").write_text("Eins.\nZwei.\n")
    source = {"name": "pairs", "reader": "parallel_text", "options": {"files": {"any": ["a.de", "a.en"]}}}
    keys, settings = [], build(ConvertSettings, {"sources": [source]})
    for name, english in (("one", "One.\nTwo.\n"), ("two", "1.\n2.\n")):
        (raw / "a.en").write_text(english)
        register_source("pairs", raw, tmp_path / f"{name}.json")
        (group,) = file_groups(settings.sources[0], settings, tmp_path / f"{name}.json")
        assert group.bytes == len("Eins.\nZwei.\n" + english)
        keys.append(group.key())
    assert keys[0] != keys[1]


def test_a_part_depends_on_all_settings_with_which_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.txt").write_text("One. Two.\n")
    register_source("raw", tmp_path / "raw", tmp_path / "raw.json")
    keys = []
    changes: list[dict[str, Any]] = [{}, {"sentence_reading": "as_published"}, {"languages": ["en"]}]
    changes += [{"split": {"seed": 1}}, {"near_duplicates": {}}, {"near_duplicates": {"words": 4}}]
    for change in changes:
        body = {"sources": [{"name": "raw", "reader": "plain_text", "options": {}}], **change}
        settings = build(ConvertSettings, body)
        (group,) = file_groups(settings.sources[0], settings, tmp_path / "raw.json")
        keys.append(group.key())
    assert len({json.dumps(key) for key in keys}) == 6


def test_a_part_depends_on_the_sentence_model_and_on_the_names_of_all_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hatchery.corpora.file_groups.GROUP_BYTES", 1)
    settings = build(ConvertSettings, {"sources": [{"name": "raw", "reader": "plain_text", "options": {}}]})
    (tmp_path / "raw").mkdir()

    def key(text: str, model: str = "", further: str = "") -> str:
        """Return the key of the file a.txt, given the text of a sentence model and the name of a second file."""
        (tmp_path / "raw/a.txt").write_text(text)
        name = f"{text}{model}{further}"
        if further:
            (tmp_path / "raw" / further).write_text("Two.\n")
        register_source("raw", tmp_path / "raw", tmp_path / f"{name}.json")
        if model:
            (tmp_path / "model").write_text(model)
            register_source("model", tmp_path / "model", tmp_path / f"{name}.model.json")
        group = next(
            file_groups(
                settings.sources[0],
                settings,
                tmp_path / f"{name}.json",
                tmp_path / f"{name}.model.json" if model else None,
            )
        )
        assert group.files == ("a.txt",)
        return json.dumps(group.key())

    keys = [key("One."), key("1111"), key("One.", "first"), key("One.", "other"), key("One.", further="b.txt")]
    (tmp_path / "raw/b.txt").unlink()
    keys.append(key("One.", further="c.txt"))
    assert len(set(keys)) == 6


def test_shards_hold_every_document_once_and_the_tables_count_them(manifests: dict[str, Path], tmp_path: Path) -> None:
    convert(BNC_AND_TEXT, manifests, tmp_path / "manifest.json")
    manifest = read_manifest(tmp_path / "manifest.json")
    manifest.verify()
    rows = read_tables(manifest.files(".parquet")).to_pylist()
    assert len({row["doc_id"] for row in rows}) == len(rows)
    counted: Counter[tuple[str, str]] = Counter()
    for row in rows:
        assert row["n_words"] == len(row["text"].split())
        assert row["n_sentences"] == len([line for line in row["text"].split("\n") if line])
        counted[row["source"], row["split"]] += row["n_words"]
    with (tmp_path / "statistics.csv").open() as handle:
        statistics = {(line["source"], line["split"]): int(line["words"]) for line in csv.DictReader(handle)}
    assert {key: words for key, words in statistics.items() if words} == dict(counted)
    assert len(statistics) == 9
    for path in manifest.files(".parquet"):
        assert {row["split"] for row in read_tables([path]).to_pylist()} <= {path.name.split("-")[0]}
    assert (tmp_path / "rejected.csv").read_text().startswith("source,reason,count\n")


def test_two_processes_give_the_bytes_of_one(
    manifests: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hatchery.corpora.file_groups.GROUP_BYTES", 20_000)
    for name, workers in (("one", 1), ("two", 2)):
        convert(BNC_AND_TEXT, manifests, tmp_path / name / "manifest.json", workers)
    assert (tmp_path / "one" / "manifest.json").read_bytes() == (tmp_path / "two" / "manifest.json").read_bytes()
    assert not list(tmp_path.glob("*/.parts"))


def test_an_exact_number_of_development_texts_is_met(manifests: dict[str, Path], tmp_path: Path) -> None:
    settings = {
        "sources": [BNC_AND_TEXT["sources"][0]],
        "split": {"development_documents": 3, "seed": 1},
    }
    convert(settings, {"bnc": manifests["bnc"]}, tmp_path / "manifest.json")
    assert read_manifest(tmp_path / "manifest.json").measures["dev"]["documents"] == 3


def test_a_killed_conversion_goes_on_with_the_files_that_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hatchery.corpora.file_groups.GROUP_BYTES", 1)
    raw = tmp_path / "raw"
    raw.mkdir()
    for index in range(6):
        (raw / f"{index}.txt").write_text(f"Text number {index}.")
    register_source("raw", raw, tmp_path / "raw.json")
    settings = {"sources": [{"name": "raw", "reader": "plain_text", "options": {}}]}
    plain = READERS["plain_text"]
    read: list[str] = []

    def counting(source: RawSource, file: str, reading: ReaderContext) -> Iterator[RawDocument]:
        read.append(file)
        if len(read) == 4:
            raise KeyboardInterrupt
        yield from plain.read(source, file, reading)

    convert(settings, {"raw": tmp_path / "raw.json"}, tmp_path / "whole" / "manifest.json")
    monkeypatch.setitem(READERS, "plain_text", replace(plain, read=counting, divide=None))
    output = tmp_path / "killed" / "manifest.json"
    with pytest.raises(KeyboardInterrupt):
        convert(settings, {"raw": tmp_path / "raw.json"}, output)
    convert(settings, {"raw": tmp_path / "raw.json"}, output)
    assert read == ["0.txt", "1.txt", "2.txt", "3.txt", "3.txt", "4.txt", "5.txt"]
    assert output.read_bytes() == (tmp_path / "whole" / "manifest.json").read_bytes()


def test_the_split_of_a_source_that_is_split_is_kept(manifests: dict[str, Path], tmp_path: Path) -> None:
    settings = {**BNC_AND_TEXT, "sources": [BNC_AND_TEXT["sources"][1]]}
    convert(settings, {"cbt": manifests["cbt"]}, tmp_path / "manifest.json")
    rows = read_tables(read_manifest(tmp_path / "manifest.json").files(".parquet")).to_pylist()
    assert {(row["doc_id"].split("/")[1], row["split"]) for row in rows} == {("cbt.train", "train"), ("cbt.dev", "dev")}


def test_a_source_without_documents_is_an_error_that_says_why(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    (raw / "a.txt").write_text("two words")
    register_source("raw", raw, tmp_path / "raw.json")
    source = {"name": "raw", "reader": "plain_text", "options": {"minimum_words": 5}}
    with pytest.raises(CorpusError, match=r"'raw': no document was found .*fewer than 5 words"):
        convert({"sources": [source]}, {"raw": tmp_path / "raw.json"}, tmp_path / "out" / "manifest.json")


def test_a_document_name_that_occurs_twice_is_an_error(
    manifests: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def twice(source: RawSource, file: str, reading: ReaderContext) -> Iterator[RawDocument]:
        yield from [RawDocument("same", reading.name, "text")] * 2

    bnc = READERS["bnc_xml"]
    monkeypatch.setitem(READERS, "twice", replace(bnc, read=twice))
    with pytest.raises(CorpusError, match="'same' occurs twice"):
        convert(
            {"sources": [{"name": "bnc", "reader": "twice"}]}, {"bnc": manifests["bnc"]}, tmp_path / "manifest.json"
        )


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            {"name": "x", "reader": "nonsense"},
            r"sources\[0\]\.reader: there is no reader 'nonsense'; there are",
        ),
    ],
)
def test_wrong_settings_are_refused_before_anything_is_read(
    source: dict[str, Any], message: str, tmp_path: Path
) -> None:
    settings = build(ConvertSettings, {"sources": [source]})
    with pytest.raises(ConfigError, match=message), stage_run(tmp_path / "manifest.json", {}) as run:
        convert_corpus(settings, {"x": tmp_path / "missing.json"}, run)


@pytest.mark.parametrize("name", sorted(READERS))
def test_every_reader_is_called_like_its_file_and_has_documented_options(name: str) -> None:
    required: dict[str, dict[str, Any]] = {
        "babylm": {"corpus": "qed"},
        "raw_text": {"format": "json_lines"},
        "parallel_text": {"files": {"any": ["a.tsv"]}},
        "wit3": {"files": {"any": ["a.de.xml", "a.en.xml"]}},
        "preference_pairs": {"files": {"any": "*.jsonl"}},
    }
    reader, options = reader_and_options(name, required.get(name, {}), "sources[0]")
    assert get_args(hints_of(reader.source)["reader"]) == (name,)
    assert reader.options.__doc__
    assert reader.read.__doc__
    assert isinstance(options, reader.options)


# For the second file, the memory limit is 40 MB above the current size of the process.
LIMITED = """
import resource
from hatchery.corpora import convert, file_groups

read = convert.write_documents

def limited(group, path):
    if group.files == ("b.xml",):
        size = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmSize"))
        resource.setrlimit(resource.RLIMIT_AS, (size * 1024 + (40 << 20), resource.getrlimit(resource.RLIMIT_AS)[1]))
    return read(group, path)

file_groups.GROUP_BYTES = 1 << 20
convert.write_documents = limited
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_a_file_for_which_there_is_too_little_memory_is_named_in_one_line(
    workers: int, tmp_path: Path, repository: Path
) -> None:
    header = "<teiHeader><fileDesc><sourceDesc><bibl><title>T</title></bibl></sourceDesc></fileDesc></teiHeader>"
    (tmp_path / "raw").mkdir()
    for name, words in (("a", 10), ("b", 400_000)):
        body = f"<wtext><p>{'<s><w>word </w></s>' * words}</p></wtext>"
        (tmp_path / "raw" / f"{name}.xml").write_text(f'<bncDoc xml:id="{name}">{header}{body}</bncDoc>')
    register_source("raw", tmp_path / "raw", tmp_path / "raw.json")
    (tmp_path / "limited.py").write_text(LIMITED)
    settings = {"stage": "convert_corpus", "stage_version": 1, "sources": [{"name": "x", "reader": "bnc_xml"}]}
    given = {"source": {"x": tmp_path / "raw.json"}, "workers": workers}
    _, script, *words = stage_command("convert_corpus", settings, tmp_path / "out" / "manifest.json", **given)
    run = f"import limited, runpy; runpy.run_path({script!r}, run_name='__main__')"
    outcome = subprocess.run(
        [sys.executable, "-c", run, *words],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{repository / 'scripts'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome.returncode == 1
    [line] = [line for line in outcome.stderr.splitlines() if not line[0].isdigit()]
    assert line.startswith(
        "error: source 'x': not enough memory to read b.xml; run the same command again with fewer processes"
    )
