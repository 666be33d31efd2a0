"""A study's text: corpus sizes with printed sizes, and the tokenizers that a sweep compared."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hatchery.analysis.analyses.analysis import Findings, Study, analysis_called, settings_of
from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.manifests import stage_run
from hatchery.errors import ManifestError
from hatchery.sanitize import csv_text
from hatchery.tokenization.selection.table import Measures, SelectionRow, selection_csv

SELECTIONS = ("selection", "source", "level", "texts", "words", "counted_words")
STATISTICS = ("source", "split", "documents", "sentences", "words", "characters")


def written(folder: Path, files: Mapping[str, str], inputs: Mapping[str, Path] | None = None) -> Path:
    with stage_run(folder / "manifest.json", {"stage": "made"}, inputs or {}) as run:
        for name, text in files.items():
            write_text(folder / name, text)
            run.add_output(folder / name)
    return folder / "manifest.json"


def corpus(folder: Path, texts: int) -> tuple[Path, Path]:
    """Return manifests of a corpus (C4 sequences at two levels, Wikipedia sequences) and of its tokens."""
    selections = [
        ("c4_spans", "c4", "span", texts, 40 * texts, 39 * texts),
        ("c4_sentences", "c4", "sentence", 2 * texts, 20 * texts, 19 * texts),
        ("wikipedia_sentences", "wikipedia", "sentence", texts, 10 * texts, 9 * texts),
    ]
    documents = [(name, split, number, number, 9, 50) for name, *_ in selections for split, number in SPLIT_SIZES]
    files = {"selections.csv": csv_text(SELECTIONS, selections), "statistics.csv": csv_text(STATISTICS, documents)}
    made = written(folder / "corpus", files)
    tokens = [(split, name, 100 * number) for name, split, number, *_ in documents]
    counts = csv_text(("split", "source", "subwords"), tokens)
    return made, written(folder / "tokens", {"statistics.csv": counts}, {"corpus": made})


SPLIT_SIZES = (("train", 5), ("dev", 2), ("test", 1))


@pytest.fixture
def study(tmp_path: Path, repository: Path) -> Study:
    tables = {}
    for experiment, texts in (("one", 1000), ("two", 2000)):
        tables[f"corpus/{experiment}"], tables[f"tokens/{experiment}"] = corpus(tmp_path / experiment, texts)
    sizes = repository / "config/published/corpora/sizes.csv"
    return Study("both", tables=tables, files={"corpora/sizes": sizes})


def sizes_of(study: Study, **settings: Any) -> Findings:
    analysis = analysis_called("corpus_sizes")
    return analysis.run(settings_of("corpus_sizes", settings), study)


def lines(found: Findings, table: int) -> list[list[str]]:
    return [[getattr(cell, "text", cell) for cell in row.cells] for row in found.tables[table].rows]


def test_table_1_has_the_texts_and_tokens_of_every_corpus_beside_the_printed_ones(study: Study) -> None:
    found = sizes_of(study, published="reduced_vocabulary")
    selected = {tuple(line[:2]): line[2:] for line in lines(found, 0)}
    assert selected["c4", "span"] == ["3,000,000", "1,000", "2,000", "427,000,000", "800", "800"]
    assert selected["c4", "sentence"] == ["27,000,000", "2,000", "4,000", "428,000,000", "800", "800"]
    # Our corpora have no text from BookCorpus.
    assert selected["bookcorpus", "sentence"] == ["12,000,000", "-", "-", "190,000,000", "-", "-"]
    assert selected["all", "all"] == ["47,070,000", "4,000", "8,000", "1,125,000,000", "2,400", "2,400"]
    assert [line[0] for line in lines(found, 0)][-1] == "all"
    numbers = {tuple(row.values())[:5]: row["number"] for row in found.rows}
    assert numbers["selected", "printed", "c4", "span", "texts"] == 3_000_000
    assert numbers["selected", "two", "c4", "span", "tokens"] == 800
    assert numbers["sequences", "one", "(all)", "train", "documents"] == 15
    assert numbers["sequences", "one", "(all)", "dev", "tokens"] == 600
    assert "Printed sizes are shown with all digits" in found.notes[1]
    (_, note) = sizes_of(study, published="nobody").notes
    assert note == "The table of published sizes contains no sizes of the corpus 'nobody'."
    assert len(sizes_of(study).notes) == 1


def test_the_sequences_of_every_split_stand_beside_those_of_the_paper(study: Study) -> None:
    splits = {line[0]: line[1:] for line in lines(sizes_of(study, published="reduced_vocabulary"), 1)}
    assert list(splits) == ["train", "dev", "test", "all"]
    assert splits["train"] == ["9,081,490", "15", "15", "-", "1,500", "1,500"]
    assert splits["dev"][:2] == ["100,000", "6"]
    assert splits["all"][:2] == ["9,281,490", "24"]


def test_without_a_paper_our_corpora_stand_alone_and_one_can_be_chosen(study: Study) -> None:
    found = sizes_of(study, experiments=["two"])
    assert [column.heading for column in found.tables[0].columns][2:] == ["sentences or spans, two", "tokens, two"]
    assert {row["of"] for row in found.rows} == {"two"}
    assert [line[0] for line in lines(found, 0)] == ["c4", "c4", "wikipedia", "all", "all", "all"]


def test_a_corpus_that_nothing_was_selected_for_has_its_sequences_alone(tmp_path: Path) -> None:
    made = written(tmp_path / "c", {"statistics.csv": csv_text(STATISTICS, [("books", "train", 3, 3, 9, 50)])})
    tokens = written(
        tmp_path / "t",
        {"statistics.csv": csv_text(("split", "source", "subwords"), [("train", "books", 7)])},
        {"corpus": made},
    )
    found = sizes_of(Study("one", tables={"corpus/one": made, "tokens/one": tokens}))
    assert [table.caption for table in found.tables] == ["Sequences by split"]
    assert lines(found, 0) == [["train", "3", "7"], ["all", "3", "7"]]


def test_tokens_of_another_corpus_are_refused(study: Study) -> None:
    swapped = {**study.tables, "tokens/one": study.tables["tokens/two"]}
    with pytest.raises(ManifestError, match="the tokens were encoded from another corpus than"):
        sizes_of(Study("both", tables=swapped))


def sweep(folder: Path, published: Mapping[tuple[str, str], dict[str, str]]) -> Study:
    rows = [
        SelectionRow("byte_bpe", 18000, 18000, Measures(1.337, 0.3, 0.2868), "BPE"),
        SelectionRow("byte_bpe", 19000, 19000, Measures(1.321, 0.29, 0.2604), "BPE", True, True),
        SelectionRow("byte_bpe", None, None, Measures(1.32), "BPE"),
        SelectionRow("unigram", 9000, 9000, Measures(1.25, 0.1, 0.01), None, True),
    ]
    manifest = written(folder, {"selection.csv": selection_csv(rows, published)})
    return Study("one", tables={"tokenizer_sweep/mine": manifest})


def tokenizers(study: Study) -> Findings:
    analysis = analysis_called("tokenizer_sweep")
    return analysis.run(settings_of("tokenizer_sweep", {"sweep": "mine"}), study)


def test_table_6_has_every_size_with_ratio_and_esms_and_marks_the_choice(tmp_path: Path) -> None:
    printed = {
        ("BPE", "19000"): {"word_split_ratio": "1.32", "esms": "0.2604"},
        ("BPE", "pretrained"): {"esms": "0.1547"},
    }
    found = tokenizers(sweep(tmp_path, printed))
    assert [column.heading for column in found.tables[0].columns] == [
        *("tokenizer", "entries", "word-split ratio", "word-split ratio, printed", "ESMS", "ESMS, printed"),
        "ESMS by definition",
    ]
    assert lines(found, 0) == [
        ["byte bpe", "18,000", "1.34", "-", "0.2868", "-", "0.3000"],
        ["byte bpe", "19,000", "1.32", "1.32", "0.2604", "0.2604", "0.2900"],
        ["byte bpe", "pre-trained", "1.32", "-", "-", "0.1547", "-"],
        ["unigram", "9,000", "1.25", "-", "0.0100", "-", "0.1000"],
    ]
    for column in (0, 1):
        assert [row.cells[column].bold for row in found.tables[0].rows] == [False, True, False, True]
    assert sum("The selected tokenizer" in note for note in found.notes) == 1
    assert "The selected tokenizer: byte bpe with 19,000 entries." in found.notes[0]


def test_a_sweep_without_printed_values_has_no_columns_for_them(tmp_path: Path) -> None:
    assert len(tokenizers(sweep(tmp_path, {})).tables[0].columns) == 5
