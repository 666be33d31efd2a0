"""The stage that selects text: from raw texts and from corpora; test_drawn_windows.py tests drawn windows."""

import csv
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from selection_cases import WORDS, Select, items, json_lines, texts

from hatchery.artifacts.manifests import Manifest, read_manifest, stage_run
from hatchery.corpora.corpus_writer import CorpusWriter, document_row
from hatchery.corpora.raw_texts import RawTextOptions
from hatchery.corpora.settings import ConvertSettings
from hatchery.corpora.stages.convert_corpus import convert_corpus
from hatchery.errors import ConfigError, SourceError
from hatchery.experiment.project import Project
from hatchery.typed import build as typed
from hatchery.typed import plain
from hatchery.vocabulary import select as stage
from hatchery.vocabulary import selection_parts
from hatchery.vocabulary.settings import SelectionSettings
from hatchery.vocabulary.stages.select_text import select_text

PAGES = [
    "The cat sat on a mat. The dog sat on a mat. Big.",
    "",
    "A cat  is big! The cat sat on a mat.",
    "Cat http://x is.",
]


def bytes_of(manifest: Manifest) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes() for path in sorted(manifest.folder.iterdir()) if path.name != "provenance.json"
    }


def numbered_pages(number: int) -> list[str]:
    return [f"The cat sat on {index} a mat. Is the cat {index} big? It is a dog." for index in range(number)]


def test_items_name_their_documents_and_counts_and_samples_say_why_others_were_rejected(select: Select) -> None:
    manifest = select({"p.json.gz": json_lines(PAGES)}, WORDS)
    assert items(manifest) == [
        {
            "source": "pages",
            "document": "p.json.gz/00000000",
            "unit": 0,
            "text": "the cat sat on a mat.",
            "n_words": 6,
            "n_counted": 6,
        },
        {
            "source": "pages",
            "document": "p.json.gz/00000002",
            "unit": 0,
            "text": "a cat  is big!",
            # Words are separated by single spaces.
            "n_words": 5,
            "n_counted": 4,
        },
    ]
    with (manifest.folder / "counts.csv").open(newline="") as handle:
        counts = {row["measure"]: int(row["value"]) for row in csv.DictReader(handle)}
    assert counts == manifest.measures
    assert counts == {
        "documents": 4,
        "characters": sum(map(len, PAGES)),
        "units": 1,
        "candidates": 6,
        "hyperlink": 1,
        "out_of_vocabulary": 1,
        "too_short": 1,
        "duplicate": 1,
        "accepted": 2,
        "accepted_words": 11,
        "accepted_counted_words": 10,
        "accepted_characters": 35,
    }
    with (manifest.folder / "samples.csv").open(newline="") as handle:
        samples = {(row["outcome"], row["reason"]): row["text"] for row in csv.DictReader(handle)}
    assert samples["rejected", "out_of_vocabulary"] == "the dog sat on a mat."
    assert samples["rejected", "too_short"] == "big."
    assert samples["rejected", "hyperlink"] == "cat http://x is."
    assert ("accepted", "") in samples


@pytest.mark.parametrize(("per_unit", "expected"), [(1, [0, 1, 2, 3]), (2, [0, 1, 2]), (None, [0])])
def test_equal_texts_count_once_in_a_save_unit(select: Select, per_unit: int | None, expected: list[int]) -> None:
    page = "The cat sat on a mat. The cat sat on a mat."
    files = {"a.json.gz": json_lines([page] * 3), "b.json.gz": json_lines([page])}
    manifest = select(files, WORDS, documents_per_unit=per_unit)
    assert [item["unit"] for item in items(manifest)] == expected
    assert manifest.measures["units"] == len(expected)
    assert manifest.measures["duplicate"] == 8 - len(expected)


def test_spans_are_selected_in_document_order(select: Select) -> None:
    page = " ".join(["cat"] * 30 + ["dog"] + ["cat"] * 60)
    changes = {"level": "spans", "window_words": 20, "stride_words": 10, "minimum_counted_words": 11}
    manifest = select({"p.json.gz": json_lines([page])}, WORDS, documents_per_unit=10, **changes)
    # The windows at 0, 10, 40, ... 70 lack `dog` and are equal; the tail at 80 has 11 words.
    assert [item["n_words"] for item in items(manifest)] == [20, 11]
    assert (manifest.measures["out_of_vocabulary"], manifest.measures["too_short"]) == (2, 1)
    assert manifest.measures["duplicate"] == 5


@pytest.mark.parametrize(
    "changes",
    [
        {"documents_per_unit": 7},
        {"documents_per_unit": None},
        {"level": "spans", "window_words": 9, "stride_words": 3, "documents_per_unit": 5},
        {"level": "windows", "window_words": 5, "stride_words": 2, "windows_per_text": 3},
        {"level": "windows", "window_words": 5, "stride_words": 2, "documents_per_text": None, "windows_per_text": 40},
    ],
)
def test_bytes_depend_neither_on_the_number_of_workers_nor_on_the_grouping_of_files(
    select: Select, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]
) -> None:
    files = {f"{index}.json.gz": json_lines(numbered_pages(12)) for index in range(4)}
    one = select(files, WORDS, **changes)
    rows = items(one)
    monkeypatch.setattr(stage, "GROUP_BYTES", 1)
    two = select(files, WORDS, folder="two", workers=2, **changes)
    three = select(files, WORDS, folder="three", workers=1, **changes)
    assert bytes_of(two) == bytes_of(three)
    assert rows == items(two)
    assert one.measures == two.measures


def test_a_killed_job_goes_on_and_gives_the_same_bytes(select: Select, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "GROUP_BYTES", 1)
    files = {f"{index}.json.gz": json_lines(numbered_pages(5)) for index in range(4)}
    expected = bytes_of(select(files, WORDS, folder="whole"))
    done: list[str] = []
    work = selection_parts.select_part

    def killed_at_the_third(task: Any, path: Path) -> dict[str, Any]:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.extend(task.files)
        return work(task, path)

    monkeypatch.setattr(stage, "select_part", killed_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        select(files, WORDS)

    def only_the_rest(task: Any, path: Path) -> dict[str, Any]:
        assert task.files[0] not in done
        return work(task, path)

    monkeypatch.setattr(stage, "select_part", only_the_rest)
    assert bytes_of(select(files, WORDS)) == expected


def test_a_part_depends_on_settings_vocabulary_sentence_model_and_files(
    select: Select, register: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def recorded(tasks: Any, work: Any, given: list[Any], folder: Path, workers: int) -> None:
        keys.extend(given)
        raise KeyboardInterrupt

    keys: list[Any] = []
    monkeypatch.setattr(stage, "make_parts", recorded)
    models = [register(name, {"parameters": name.encode()}) for name in ("first", "other")]
    page = "The cat sat on a mat."
    for text, words, changes in (
        (page, WORDS, {}),
        (page, WORDS[1:], {}),
        (page, WORDS, {"lower_case": False}),
        (page, WORDS, {"model": models[0]}),
        (page, WORDS, {"model": models[1]}),
        (page.upper(), WORDS, {}),
    ):
        # Each call reads the manifests as a new process does.
        stage.opened.cache_clear()
        stage.opened_texts.cache_clear()
        with pytest.raises(KeyboardInterrupt):
            select({"p.json.gz": json_lines([text])}, words, **changes)
    assert len({json.dumps(key, default=str) for key in keys}) == 6


def test_shards_hold_so_many_texts_at_most_and_leave_nothing_of_an_earlier_run(select: Select) -> None:
    files = {"p.json.gz": json_lines(numbered_pages(10))}
    first = select(files, WORDS, rows_per_shard=3)
    assert len(first.files(".parquet")) == 7
    second = select(files, WORDS, rows_per_shard=100)
    assert items(first.__class__(**{**first.__dict__, "outputs": second.outputs})) == items(second)
    assert [path.name for path in second.folder.glob("*.parquet")] == ["items-00000-of-00001.parquet"]
    assert not list(second.folder.glob(".*"))


def test_an_empty_selection_has_one_shard_without_rows(select: Select) -> None:
    manifest = select({"p.json.gz": json_lines(["Nothing fits."])}, WORDS)
    assert (items(manifest), manifest.measures["accepted"]) == ([], 0)


def test_lone_surrogates_in_accepted_text_become_replacement_characters(select: Select) -> None:
    line = b'{"text": "The cat \\ud800 sat on a mat."}\n'
    manifest = select({"p.jsonl": line}, WORDS)
    assert texts(manifest) == ["the cat \ufffd sat on a mat."]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("p.json.gz", json_lines(["a cat is big. " * 3000])[:-20], r"p\.json\.gz: damaged after byte"),
        ("p.json", b'{"title": "a cat"}\n', r"p\.json: line 1: there is no field 'text'; there are: title"),
    ],
)
def test_damaged_input_is_one_error_and_leaves_no_output(
    select: Select, tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    with pytest.raises(SourceError, match=message):
        select({name: content}, WORDS)
    assert not [path for path in (tmp_path / "out").iterdir() if path.name != ".parts"]
    assert not list((tmp_path / "out" / ".parts").iterdir())


def test_a_source_without_matching_files_and_wrong_settings_are_told(select: Select) -> None:
    with pytest.raises(SourceError, match="no file matches"):
        select({"p.txt": "x"}, WORDS, options=RawTextOptions("json_lines", ("*.json",)))
    with pytest.raises(ConfigError, match="sentence_model"):
        select({"p.json.gz": json_lines(PAGES)}, WORDS, sentence_model="punkt")


DOCUMENTS = {
    # Punkt would join these lines, and would split the second line at its first full stop.
    "books/one.txt/000": "The cat sat\non a mat. A cat sat on a mat\n\nThe dog sat on a mat.",
    "speech/7": "The cat is big!\nBig.\nThe cat sat",
}


@pytest.fixture
def select_from_corpus(tmp_path: Path, vocabulary_of: Callable[[Iterable[str]], Path]) -> Select:
    """Return a function that selects from a corpus `pair` of the documents."""

    def run_selection(workers: int = 1, **changes: Any) -> Manifest:
        folder = tmp_path / "pair"
        with stage_run(folder / "manifest.json", {}) as run, CorpusWriter(run, ["books", "speech"], 1) as corpus:
            for name, text in DOCUMENTS.items():
                split = "dev" if name.startswith("speech") else "train"
                corpus.write(document_row(name, name.partition("/")[0], split, text))
        settings = SelectionSettings(name="lines", **{"level": "sentences", "minimum_counted_words": 3, **changes})
        output = tmp_path / f"out{workers}" / "manifest.json"
        with stage_run(output, {}) as run:
            select_text(settings, folder / "manifest.json", vocabulary_of(WORDS), run, workers=workers)
        return read_manifest(output)

    return run_selection


def test_a_sentence_is_a_line_and_carries_the_source_of_its_document(select_from_corpus: Select) -> None:
    manifest = select_from_corpus()
    found = [(item["source"], item["document"], item["text"]) for item in items(manifest)]
    assert found == [
        ("speech", "speech/7", "the cat is big!"),
        ("speech", "speech/7", "the cat sat"),
        ("books", "books/one.txt/000", "on a mat. a cat sat on a mat"),
    ]
    counts = {name: manifest.measures[name] for name in ("documents", "duplicate", "too_short", "out_of_vocabulary")}
    assert counts == {"documents": 2, "duplicate": 1, "too_short": 1, "out_of_vocabulary": 1}


def test_windows_are_drawn_from_documents_of_a_corpus_too(select_from_corpus: Select) -> None:
    manifest = select_from_corpus(
        level="windows", window_words=2, stride_words=2, documents_per_text=None, windows_per_text=100
    )
    assert {item["source"] for item in items(manifest)} == {"books", "speech"}
    assert manifest.measures["accepted"] == manifest.measures["candidates"]


def test_the_number_of_workers_changes_nothing(select_from_corpus: Select) -> None:
    assert items(select_from_corpus()) == items(select_from_corpus(workers=2))


def test_real_transcripts_are_selected_as_they_are_said(
    real_data: Path,
    tmp_path: Path,
    repository: Path,
    register: Callable[..., Path],
    build: Callable[..., Path],
) -> None:
    (block, *_) = Project(repository / "config").corpus("real_small").sources
    reading = {
        "name": "aochildes",
        "reader": "plain_text",
        "options": {**plain(block.options), "files": ["*Warren.csv"]},
    }
    with stage_run(tmp_path / "speech/manifest.json", {}) as run:
        transcripts = {"aochildes": register("aochildes", real_data / "aochildes.zip")}
        convert_corpus(typed(ConvertSettings, {"sources": [reading]}), transcripts, run)
    released = register("released", real_data / "aochildes_word_frequency.csv")
    vocabulary = build(tmp_path / "vocabulary", released, kind="word_list") / "manifest.json"
    settings = SelectionSettings(name="speech", level="sentences", minimum_counted_words=3)
    with stage_run(tmp_path / "out/manifest.json", {}) as run:
        select_text(settings, tmp_path / "speech/manifest.json", vocabulary, run)
    manifest = read_manifest(tmp_path / "out/manifest.json")
    assert {item["source"] for item in items(manifest)} == {"aochildes"}
    assert "what color is it?" in {item["text"] for item in items(manifest)}
    # The list was made from this child's words; rejected sentences contain names and other words that the list lacks.
    known = 1 - manifest.measures["out_of_vocabulary"] / manifest.measures["candidates"]
    assert 0.6 < known < 1
