"""Raw files in blocks, lines and pieces: the documents do not depend on the division."""

import csv
import gzip
import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hatchery.corpora import parquet_files, raw_files, text_files
from hatchery.corpora.documents import RawDocument, ReaderContext, Rejections
from hatchery.corpora.raw_files import Cut, Piece, cut_text, pieces_of
from hatchery.corpora.readers import READERS
from hatchery.corpora.text_files import Lines
from hatchery.errors import CorpusError, SourceError
from hatchery.raw.registration import RawSource, open_source, register_source
from hatchery.typed import build

TEXTS = st.lists(
    st.sampled_from([b"ab. ", b"word ", b"\n", b"\r\n", b"\r", b"\n \t\n", b"\n\n", "é".encode(), b"x" * 30, b" "])
).map(b"".join)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit documents to 10 to 40 bytes, so that short texts trigger every rule."""
    for name, value in (("SHORTEST", 10), ("LONGEST", 40), ("_LINES_UNTIL", 60), ("_SPACES_UNTIL", 80), ("_SEEN", 84)):
        monkeypatch.setattr(raw_files, name, value)


def in_blocks(text: bytes, size: int) -> list[bytes]:
    return [text[start : start + size] for start in range(0, len(text), size)]


@given(TEXTS, st.integers(1, 50))
def test_documents_do_not_depend_on_the_blocks_and_lose_white_space_only(text: bytes, size: int) -> None:
    cuts = list(cut_text([text]))
    assert list(cut_text(in_blocks(text, size))) == cuts
    assert b"".join(cut.content for cut in cuts).split() == text.split() or any(len(c.content) >= 80 for c in cuts)
    assert all(text[offset : offset + len(content)] == content for offset, content in cuts)
    assert b"".join(b"".join(cut.content.split()) for cut in cuts) == b"".join(text.split())


@example(b"\n\n\n\n \t\n\n \t\n\nab. ", 1, 1)
@given(TEXTS, st.integers(1, 200), st.integers(1, 50))
def test_pieces_hold_together_the_documents_of_the_whole(text: bytes, piece_bytes: int, size: int) -> None:
    found: list[Cut] = []
    for piece in pieces_of(in_blocks(text, size), piece_bytes):
        assert piece.first == len(found)
        found += cut_text(in_blocks(text[piece.start : piece.end], size), piece.start)
        assert piece.first + piece.count == len(found)
    assert found == list(cut_text([text]))


@pytest.mark.parametrize(
    ("text", "documents"),
    [
        (b"one two three\nfour\n\nfive\n", [b"one two three\nfour\n\n", b"five\n"]),
        (b"short\n\nstill the first\r\n \r\nnext", [b"short\n\nstill the first\r\n \r\n", b"next"]),
        (b"line\n" * 12, [b"line\n" * 9, b"line\n" * 3]),
        (b"word " * 16, [b"word " * 13, b"word " * 3]),
        ("é".encode() * 50, ["é".encode() * 40, "é".encode() * 10]),
        (b"\n" * 200, [b""]),
        (b"", [b""]),
    ],
)
def test_blank_lines_end_a_document_then_line_ends_then_spaces_then_characters(
    text: bytes, documents: list[bytes]
) -> None:
    assert [cut.content for cut in cut_text([text])] == documents


PIECE = 300
WORDS = ("plain", 'a "quoted" one', "two\nlines", "a, comma", "\u00e9t\u00e9", "x\r\ny", "", "   ", "long " * 30)
ROWS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=40)


def table(texts: list[str], ends: str = "\n", delimiter: str = ",") -> bytes:
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator=ends, delimiter=delimiter)
    writer.writerow(["book", "text", "role"])
    for index, text in enumerate(texts):
        writer.writerow([f"b{index // 4 * 2 + index % 2}", text, "M" if index % 4 else "C"])
    return "\ufeff".encode() + stream.getvalue().encode()


def wide_table(texts: list[str]) -> bytes:
    return table(texts).decode("utf-8-sig").encode("utf-16")


def parquet(texts: list[str]) -> bytes:
    sink = io.BytesIO()
    columns = {
        "nested": [{"text": 1}] * len(texts),
        "text": texts,
        "role": ["M" if index % 4 else "C" for index in range(len(texts))],
    }
    pq.write_table(pa.table(columns), sink, row_group_size=7)
    return sink.getvalue()


def lines(texts: list[str]) -> bytes:
    return b"".join(json.dumps({"book": f"b{i // 3}", "text": text}).encode() + b"\n" for i, text in enumerate(texts))


def articles(texts: list[str]) -> bytes:
    return "".join(f'<doc id="{i}" url="u" title="T{i}">\nT{i}\n\n{t}\n</doc>\n' for i, t in enumerate(texts)).encode()


def books(texts: list[str]) -> bytes:
    return "".join(f"_BOOK_TITLE_ : B_{index}.txt\n{text}\n" for index, text in enumerate(texts)).encode()


def paragraphs(texts: list[str]) -> bytes:
    return "\n\n".join(texts).encode()


def row_names(texts: list[str]) -> bytes:
    """A table as R's `write.table` writes it: no header above the row names, and backslashes before inner quotes."""
    escaped = (text.replace('"', '\\"') for text in texts)
    rows = (f'"{index}","b","{text}"\n' for index, text in enumerate(escaped))
    return ('sep=,\n\n"book","text"\n' + "".join(rows)).encode()


Content = Callable[[list[str]], bytes]
CASES: dict[str, tuple[str, str, Content, dict[str, Any]]] = {
    "CSV": ("plain_text", "a.csv", table, {}),
    "CSV, rows left out": ("plain_text", "a.csv", table, {"keep": {"role": ["M"]}}),
    "CSV, several rows a document": ("plain_text", "a.csv", table, {"lines_per_document": 3}),
    "CSV, books": ("plain_text", "a.csv", table, {"document_column": "book"}),
    "CSV, books cut": ("plain_text", "a.csv", table, {"document_column": "book", "lines_per_document": 2}),
    "CSV of Windows": ("plain_text", "a.csv", lambda texts: table(texts, "\r\n"), {}),
    "TSV": ("plain_text", "a.tsv", lambda texts: table(texts, delimiter="\t"), {}),
    "CSV of R": ("plain_text", "a.csv", row_names, {}),
    "CSV, compressed": ("plain_text", "a.csv.gz", lambda texts: gzip.compress(table(texts)), {}),
    "CSV, UTF-16": ("plain_text", "a.csv", wide_table, {"encoding": "utf-16"}),
    "JSON lines": ("plain_text", "a.jsonl", lines, {}),
    "JSON lines, books": ("plain_text", "a.jsonl", lines, {"document_column": "book"}),
    "own Parquet": ("plain_text", "a.parquet", parquet, {}),
    "own Parquet, rows left out": ("plain_text", "a.parquet", parquet, {"keep": {"role": ["M"]}}),
    "text": ("plain_text", "a.txt", paragraphs, {"lines_per_document": 3}),
    "text, lines": ("plain_text", "a.txt", paragraphs, {"lines_per_document": 2, "paragraphs": "line"}),
    "tagged text": ("plain_text", "a.txt", paragraphs, {"lines_per_document": 2, "tagged": True}),
    "raw JSON lines": ("raw_text", "a", lines, {"format": "json_lines"}),
    "raw JSON lines, cut": (
        "raw_text",
        "a",
        lines,
        {"format": "json_lines", "lines_per_document": 1, "paragraphs": "line"},
    ),
    "Parquet": ("raw_text", "a", parquet, {"format": "parquet"}),
    "Parquet, joined": (
        "raw_text",
        "a",
        parquet,
        {"format": "parquet", "texts_are_sentences": True, "lines_per_document": 5},
    ),
    "sentences": ("raw_text", "a", paragraphs, {"format": "sentences"}),
    "sentences, joined": (
        "raw_text",
        "a",
        paragraphs,
        {"format": "sentences", "texts_are_sentences": True, "lines_per_document": 4},
    ),
    "raw text": ("raw_text", "a", paragraphs, {"format": "text", "lines_per_document": 3}),
    "WikiExtractor": ("raw_text", "a", articles, {"format": "wikiextractor"}),
    "Children's Book Test": ("raw_text", "a", books, {"format": "cbt"}),
}


def read_in_pieces(
    source: RawSource, reader: str, file: str, options: dict[str, Any], pieces: list[Piece | None]
) -> tuple[list[RawDocument], Rejections]:
    rejections = Rejections()
    built: Any = build(READERS[reader].options, options)
    documents: list[RawDocument] = []
    for piece in pieces:
        reading = ReaderContext("mine", built, rejections, lambda text: [text], 100, piece)
        documents += READERS[reader].read(source, file, reading)
    return documents, rejections


def divided(source: RawSource, reader: str, file: str, options: dict[str, Any]) -> list[Piece]:
    divide = READERS[reader].divide
    assert divide is not None
    return list(divide(source, file, build(READERS[reader].options, options), 100))


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "PIECE_BYTES", PIECE)


def source_with(folder: Path, file: str, content: bytes) -> RawSource:
    folder.mkdir(exist_ok=True)
    (folder / file).write_bytes(content)
    register_source("raw", folder / file, folder.with_suffix(".json"))
    return open_source(folder.with_suffix(".json"))


def test_a_name_with_a_line_end_hides_nothing_of_a_message(tmp_path: Path) -> None:
    source = source_with(tmp_path / "raw", "new\nline.txt", b"caf\xe9")
    with pytest.raises(
        SourceError, match=r"/new\ufffdline\.txt: byte 3 is not utf-8 .*save the file as UTF-8"
    ) as caught:
        read_in_pieces(source, "plain_text", "new\nline.txt", {}, [None])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("column", "texts"), [("text", ["w" * 50_000] * 12), ("a.text", [{"text": "w" * 50_000}] * 12)]
)
def test_of_a_row_group_of_long_texts_few_rows_are_in_memory(
    column: str, texts: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(pa.table({column.partition(".")[0]: texts}), tmp_path / "a.parquet", use_dictionary=False)
    monkeypatch.setattr(parquet_files, "_BATCH_BYTES", 200_000)
    sizes: list[int] = []
    real = pq.ParquetFile.iter_batches
    monkeypatch.setattr(
        pq.ParquetFile,
        "iter_batches",
        lambda self, size, *rest, **more: (sizes.append(size), real(self, size, *rest, **more))[1],
    )
    register_source("raw", tmp_path / "a.parquet", tmp_path / "raw.json")
    lines = text_files.Lines(open_source(tmp_path / "raw.json"), "a.parquet")
    assert [len(text) for _, text in parquet_files.texts_of_column(lines, column)] == [50_000] * 12
    # The first batch has one row, which shows whether the column is encrypted.
    assert sizes == [1, 3]


@pytest.mark.parametrize("name", CASES)
@given(texts=ROWS, block=st.integers(1, 200))
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_pieces_of_a_file_give_what_the_whole_file_gives(
    name: str, texts: list[str], block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raw_files, "_BLOCK_BYTES", block)
    reader, file, content, options = CASES[name]
    source = source_with(tmp_path / "raw", file, content(texts))
    pieces = divided(source, reader, file, options)
    assert read_in_pieces(source, reader, file, options, [*pieces]) == read_in_pieces(
        source, reader, file, options, [None]
    )
    assert [piece.first for piece in pieces] == [sum(p.count for p in pieces[:i]) for i in range(len(pieces))]


@pytest.mark.parametrize("name", CASES)
def test_a_large_file_of_every_format_is_divided(name: str, tmp_path: Path) -> None:
    reader, file, content, options = CASES[name]
    draw = random.Random(1)
    texts = [draw.choice([*WORDS[:4], "long " * 30]) for _ in range(400)]
    pieces = divided(source_with(tmp_path / "raw", file, content(texts)), reader, file, options)
    # Compressed files have few pieces.
    assert len(pieces) > (1 if file.endswith(".gz") or "encoding" in options else 10)


def test_a_table_whose_documents_never_end_is_one_piece(tmp_path: Path) -> None:
    rows = "".join(f"{'a' if index in (0, 499) else index},words of a row\n" for index in range(500))
    source = source_with(tmp_path / "raw", "a.csv", f"book,text\n{rows}".encode())
    assert len(divided(source, "plain_text", "a.csv", {"document_column": "book"})) == 1


def test_an_article_that_occurs_in_two_pieces_is_told(tmp_path: Path) -> None:
    source = source_with(tmp_path / "raw", "a", articles(["words " * 90] * 3) + articles(["again"]))
    with pytest.raises(CorpusError, match="'0' occurs twice"):
        divided(source, "raw_text", "a", {"format": "wikiextractor"})


def test_the_line_of_a_mistake_is_that_of_the_file_in_any_piece(tmp_path: Path) -> None:
    before = table(["two\nlines"] * 50)
    source = source_with(tmp_path / "raw", "a.csv", before + b'x,"never closed\n')
    with pytest.raises(SourceError, match=r"a\.csv: line 102: not a well-formed table"):
        divided(source, "plain_text", "a.csv", {})
    with pytest.raises(SourceError, match=r"a\.csv: line 102: not a well-formed table"):
        read_in_pieces(source, "plain_text", "a.csv", {}, [Piece(len(before), 10**6, 101, 50, 1)])


@given(st.text(alphabet="ab\r\né\ufeff", max_size=40), st.integers(1, 7))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_lines_are_those_of_the_whole_text_wherever_the_blocks_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, block: int
) -> None:
    monkeypatch.setattr(raw_files, "_BLOCK_BYTES", block)
    folder = tmp_path / "raw"
    folder.mkdir(exist_ok=True)
    (folder / "a.txt").write_bytes(text.encode())
    register_source("raw", folder, tmp_path / "raw.json")
    source = open_source(tmp_path / "raw.json")
    whole = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    assert list(Lines(source, "a.txt")) == (whole.removesuffix("\n").split("\n") if whole else [])


def test_a_wrong_byte_is_named_by_its_offset_in_any_block(
    source_of: Callable[..., RawSource], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raw_files, "_BLOCK_BYTES", 5)
    source = source_of(**{"a.txt": b"caf\xc3\xa9 abc\n" * 3 + b"\xff\n"})
    with pytest.raises(SourceError, match=r"a\.txt: byte 30 is not utf-8"):
        list(Lines(source, "a.txt"))


def test_a_character_cut_at_the_end_is_named(source_of: Callable[..., RawSource]) -> None:
    source = source_of(**{"a.txt": b"caf\xc3"})
    with pytest.raises(SourceError, match=r"a\.txt: byte 3 is not utf-8"):
        list(Lines(source, "a.txt"))
