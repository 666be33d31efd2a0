"""The BabyLM normalisers: golden outputs, where they are corrected, and every corpus of the generator."""

import difflib
from collections.abc import Callable
from pathlib import Path

import pytest

from hatchery.corpora.babylm.reader import NORMALISERS, BabylmOptions, read
from hatchery.corpora.documents import Rejections
from hatchery.embedded import babylm as layouts
from hatchery.errors import ConfigError, SourceError
from hatchery.storage.sources import RawSource, open_source, register_source

# Lines that the corrected reading changes: what the published code made of them (-), and what we make (+).
CORRECTIONS = {
    "aochildes": {'-"What is that cat\' s name?"', '+"What is that cat\'s name?"'},
    "bnc_spoken": {"-\"It' s what I' d call daft.\"", "+\"It's what I'd call daft.\""},
    "cbt": {
        "-_BOOK_TITLE_: Ada_Fern___The_Lantern_Boat.txt.out",
        "-_BOOK_TITLE_: Ada_Fern___The_Second_Boat.txt.out",
        "+",
    },
    "gutenberg": {"+lost line at the end also lost"},
    "simple_wikipedia": {
        "+This line is waiting when the stub arrives.",
        '+"Curly" spaces nbsp',
        "+Final line that is lost",
        "+",
    },
    "wikipedia": {
        "-The tin bridge is a bridge over the river Ost.",
        "+The tin bridge is a bridge over the Ost.",
        "-It was built by Jane Mill, Carl & File:plan.png others.",
        "+It was built by Mill, Carl & others.",
        "-Text after A a picture. Two spaces.",
        "+Text after C a picture. Two spaces.",
        "-= Deep heading =",
        "+= = = = Deep heading = = = =",
        "-= = = A = B = = =",
        "+A = B",
        "-Two links and more.",
        "+Two x and more.",
        "-",
        "+",
    },
}


@pytest.mark.parametrize("corpus", sorted(NORMALISERS))
def test_normaliser_gives_the_golden_output_but_for_the_listed_corrections(corpus: str, golden_directory: Path) -> None:
    raw, published = (
        (golden_directory / "babylm" / f"{corpus}.{end}.txt").read_bytes().decode().removesuffix("\n").split("\n")
        for end in ("in", "out")
    )
    difference = difflib.unified_diff(published, list(NORMALISERS[corpus](raw)), lineterm="", n=0)
    changed = {line for line in difference if not line.startswith(("---", "+++", "@@"))}
    assert changed == CORRECTIONS.get(corpus, set())


@pytest.mark.parametrize("corpus", sorted(layouts.CORPORA))
def test_embedded_corpus_becomes_clean_documents_of_both_splits(
    corpus: str, embedded_folder: Path, tmp_path: Path
) -> None:
    register_source("babylm", embedded_folder / "babylm", tmp_path / "babylm.json")
    source = open_source(tmp_path / "babylm.json")
    documents = list(read(source, "x", BabylmOptions(corpus, lines_per_document=50), Rejections()))  # type: ignore[arg-type]
    assert {document.split for document in documents} == {"train", "dev"}
    assert len({document.doc_id for document in documents}) == len(documents)
    for document in documents:
        assert document.text
        assert "\n\n\n" not in document.text
        for rubbish in ("[[", "&amp;", "&gt;", "``", "''", "-->", "_BOOK_TITLE_", " n't", " .", "[1]"):
            assert rubbish not in document.text


def test_a_corpus_without_boundaries_is_cut(source_of: Callable[..., RawSource]) -> None:
    lines = "".join(f"line number {index} .\n" for index in range(25))
    options = BabylmOptions("aochildes", lines_per_document=10)
    documents = list(read(source_of(aochildes__train=lines), "x", options, Rejections()))
    assert [document.text.count("\n\n") + 1 for document in documents] == [10, 10, 5]


def test_sentences_of_a_line_form_one_paragraph(source_of: Callable[..., RawSource]) -> None:
    source = source_of(wikipedia__dev="= = = Dog = = =\n\nA dog barks. It runs.\n\nIt sleeps.\n")
    (document,) = read(source, "x", BabylmOptions("wikipedia"), Rejections())
    assert document.text == "Dog\n\nA dog barks.\nIt runs.\n\nIt sleeps."
    assert document.split == "dev"


def test_a_missing_corpus_is_an_error_that_names_it(source_of: Callable[..., RawSource]) -> None:
    with pytest.raises(SourceError, match=r"no file matches qed\.\*"):
        list(read(source_of(cbt__train="x\n"), "x", BabylmOptions("qed"), Rejections()))


def test_lines_per_document_must_be_positive() -> None:
    with pytest.raises(ConfigError, match="lines_per_document"):
        BabylmOptions("qed", lines_per_document=0)
