"""Selections from the documents of a corpus: lines are sentences, sources are those of the documents."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hatchery.artifacts.manifests import Manifest, read_manifest, stage_run
from hatchery.corpora.corpus_writer import CorpusWriter, document_row
from hatchery.corpora.settings import ConvertSettings
from hatchery.corpora.stages.convert_corpus import convert_corpus
from hatchery.errors import ConfigError
from hatchery.experiment.project import Project
from hatchery.experiment.raw_inputs import raw_inputs
from hatchery.typed import build as typed
from hatchery.typed import plain
from hatchery.vocabulary.settings import SelectionSettings
from hatchery.vocabulary.stages.select_text import select_text
from hatchery.workflow.jobs import Jobs

WORDS = ["the", "cat", "sat", "on", "a", "mat", "mr", "is", "big"]
DOCUMENTS = {
    # Punkt would join these lines, and would cut the second one after its first mark.
    "books/one.txt/000": "The cat sat\non a mat. A cat sat on a mat\n\nThe dog sat on a mat.",
    "speech/7": "The cat is big!\nBig.\nThe cat sat",
}
Select = Callable[..., Manifest]


@pytest.fixture
def select(tmp_path: Path, vocabulary_of: Callable[[Iterable[str]], Path]) -> Select:
    """Selects from a corpus `pair` of the documents."""

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


def items(manifest: Manifest) -> list[dict[str, Any]]:
    return pa.concat_tables([pq.read_table(path) for path in manifest.files(".parquet")]).to_pylist()


def test_a_sentence_is_a_line_and_carries_the_source_of_its_document(select: Select) -> None:
    manifest = select()
    found = [(item["source"], item["document"], item["text"]) for item in items(manifest)]
    assert found == [
        ("speech", "speech/7", "the cat is big!"),
        ("speech", "speech/7", "the cat sat"),
        ("books", "books/one.txt/000", "on a mat. a cat sat on a mat"),
    ]
    counts = {name: manifest.measures[name] for name in ("documents", "duplicate", "too_short", "out_of_vocabulary")}
    assert counts == {"documents": 2, "duplicate": 1, "too_short": 1, "out_of_vocabulary": 1}


def test_windows_are_drawn_from_documents_of_a_corpus_too(select: Select) -> None:
    manifest = select(level="windows", window_words=2, stride_words=2, documents_per_text=None, windows_per_text=100)
    assert {item["source"] for item in items(manifest)} == {"books", "speech"}
    assert manifest.measures["accepted"] == manifest.measures["candidates"]


def test_the_number_of_workers_changes_nothing(select: Select) -> None:
    assert items(select()) == items(select(workers=2))


def test_a_corpus_of_a_selection_is_planned_and_its_raw_inputs_are_those_of_both(repository: Path) -> None:
    project = Project(repository / "config")
    inputs = Jobs(project).data.selection_inputs("real_small_sentences")
    assert inputs["source"] == "results/corpora/real_small/manifest.json"
    names = {source["name"] for source in raw_inputs(project, "real_scaling")}
    assert {"aochildes", "nltk_brown", "aochildes_released"} <= names


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("corpus: demo\noptions: {format: text}\n", "options: cannot be set beside `corpus`"),
        ("corpus: demo\nsentence_model: nltk_punkt\n", "sentence_model: cannot be set beside `corpus`"),
        ("corpus: dmeo\n", "corpus: got 'dmeo', no such corpus; .*'demo'"),
    ],
)
def test_a_selection_of_both_kinds_is_refused(configuration: Path, text: str, message: str) -> None:
    (configuration / "selections/mine.yaml").write_text(f"vocabulary: demo\nlevel: sentences\n{text}", encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        Project(configuration).check("selection", "mine")


def test_a_corpus_that_is_selected_from_itself_is_told(configuration: Path) -> None:
    path = configuration / "selections/real_small_sentences.yaml"
    path.write_text(path.read_text().replace("corpus: real_small", "corpus: real_scaling"), encoding="utf-8")
    with pytest.raises(ConfigError, match="made from itself: real_scaling -> real_scaling"):
        Project(configuration).check("corpus", "real_scaling")


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
    # Its child's words are in the list that was made from it; what fails is names and words that the list lacks.
    known = 1 - manifest.measures["out_of_vocabulary"] / manifest.measures["candidates"]
    assert 0.6 < known < 1
