"""The reader of large corpora: from unprocessed texts to documents."""

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatchery.corpora.documents import RawDocument, ReaderContext, Rejections
from hatchery.corpora.prose import blocks_of, pieces
from hatchery.corpora.readers.raw_text import RawTextReaderOptions, files, read
from hatchery.errors import ConfigError
from hatchery.raw.registration import RawSource, open_source, register_source
from hatchery.typed import build

Sources = Callable[..., RawSource]


def split_at_marks(paragraph: str) -> list[str]:
    return re.split(r"(?<=[.!?]) (?=[A-Z])", paragraph)


def documents_of(source: RawSource, rejections: Rejections | None = None, **options: Any) -> list[RawDocument]:
    built = build(RawTextReaderOptions, options)
    reading = ReaderContext("mine", built, rejections or Rejections(), split_at_marks)
    return [document for file in files(source, built) for document in read(source, file, reading)]


def test_articles_become_documents_with_headings_and_redirects_are_counted(source_of: Sources) -> None:
    first = '<doc id="7" url="u" title="A &amp; B">\nA &amp; B\n\nOne. Two.\nThree.\n\n</doc>\n'
    source = source_of(**{"AA/wiki_00": first + '<doc id="8" url="u" title="Moved">\nMoved\n\n</doc>\n'})
    rejections = Rejections()
    found = documents_of(source, rejections, format="wikiextractor", files=["wiki_*"], paragraphs="line")
    assert found == [RawDocument("mine/AA/wiki_00/7", "mine", "# A & B\n\nOne.\nTwo.\n\nThree.")]
    assert rejections.counts == {"text without content": 1}
    assert rejections.samples == {"text without content": ["Moved"]}
    (untitled,) = documents_of(source, format="wikiextractor", files=["wiki_*"], paragraphs="line", titles=False)
    assert untitled.text == "One.\nTwo.\n\nThree."


def test_a_file_is_a_book_with_paragraphs_at_blank_lines(source_of: Sources) -> None:
    source = source_of(**{"epubtxt/story.epub.txt": "One sentence\nover lines. Two.\r\n\r\nThree.\n"})
    assert documents_of(source, format="text", files=["*.epub.txt"]) == [
        RawDocument("mine/epubtxt/story.epub.txt", "mine", "One sentence over lines.\nTwo.\n\nThree.")
    ]


def test_web_pages_are_documents_by_their_line_numbers_and_short_ones_are_counted(source_of: Sources) -> None:
    lines = '{"text": "One page. More.\\nLine."}\n{"text": "Tiny"}\n{"text": "Another page."}\n'
    rejections = Rejections()
    found = documents_of(source_of(c4__json=lines), rejections, format="json_lines", paragraphs="line", minimum_words=2)
    assert [(document.doc_id, document.text) for document in found] == [
        ("mine/c4.json/00000000", "One page.\nMore.\n\nLine."),
        ("mine/c4.json/00000002", "Another page."),
    ]
    assert rejections.counts == {"fewer than 2 words": 1}
    assert rejections.samples == {"fewer than 2 words": ["Tiny"]}


def test_texts_that_are_sentences_are_joined(source_of: Sources) -> None:
    buffer = io.BytesIO()
    pq.write_table(pa.table({"text": ["one . Two", "", "two", "three"]}), buffer)
    found = documents_of(
        source_of(books=buffer.getvalue()), format="parquet", texts_are_sentences=True, lines_per_document=3
    )
    assert [(document.doc_id, document.text) for document in found] == [
        ("mine/books/000000", "one . Two\ntwo"),
        ("mine/books/000001", "three"),
    ]
    with pytest.raises(
        ConfigError, match="lines_per_document: got null, expected the number of sentences in a document"
    ):
        RawTextReaderOptions("sentences", texts_are_sentences=True)


def test_books_can_be_cut(source_of: Sources) -> None:
    source = source_of(a="_BOOK_TITLE_ : The_Book.txt\nOne .\nTwo .\nThree .\n")
    found = documents_of(source, format="cbt", paragraphs="line", lines_per_document=2)
    assert [(document.doc_id, document.text) for document in found] == [
        ("mine/a/00000000/000000", "# The Book\n\nOne ."),
        ("mine/a/00000000/000001", "Two .\n\nThree ."),
    ]


def test_encodings_are_repaired_as_the_option_says(source_of: Sources) -> None:
    source = source_of(a='{"text": "caf\\u00c3\\u00a9 ,  here"}')
    assert documents_of(source, format="json_lines")[0].text == "café ,  here"
    assert documents_of(source, format="json_lines", cleaning="full")[0].text == "café, here"
    assert documents_of(source, format="json_lines", cleaning="none", capitalise=True)[0].text == "CafÃ© ,  here"


LINES = st.lists(st.text(st.characters(exclude_characters="\n")), max_size=20)


@given(LINES, st.booleans())
def test_paragraphs_hold_every_line_that_is_not_blank_once_in_order(lines: list[str], every_line: bool) -> None:
    blocks = list(blocks_of(lines, every_line))
    assert [line for block in blocks for line in block] == [line for line in lines if line.strip()]
    assert all(blocks)


@given(st.lists(st.lists(st.just(["s"]), max_size=3), max_size=20), st.one_of(st.none(), st.integers(1, 5)))
def test_pieces_hold_every_paragraph_once(lines: list[list[list[str]]], size: int | None) -> None:
    found = list(pieces(("k",), lines, size))
    assert sum(len(paragraphs) for _, paragraphs in found) == sum(len(line) for line in lines)
    assert len(found) == (1 if size is None else max(1, -(-len(lines) // size)))
    assert len({key for key, _ in found}) == len(found)


def test_embedded_web_pages_are_read(embedded_folder: Path, tmp_path: Path) -> None:
    register_source("c4", embedded_folder / "c4", tmp_path / "c4.json")
    found = documents_of(open_source(tmp_path / "c4.json"), format="json_lines", paragraphs="line")
    assert found
    assert all("\n\n" in document.text for document in found)
