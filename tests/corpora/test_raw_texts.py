"""The raw formats of large corpora: texts by hand, and a message of one line for every kind of damage."""

import bz2
import gzip
import html
import io
import json
import lzma
import tracemalloc
from collections.abc import Callable
from typing import Any, get_args

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatchery.corpora import rows
from hatchery.corpora.raw_texts import (
    BY_SUFFIX,
    FORMATS,
    RawFormat,
    RawText,
    RawTextOptions,
    raw_text_files,
    raw_texts,
)
from hatchery.errors import HatcheryError, SourceError
from hatchery.raw.registration import RawSource

Sources = Callable[..., RawSource]
JSON = '{"text": "One.", "url": "u"}\n\n{"url": "v", "text": "Tw\\u00f6\\nlines"}\n{"text": null}\n'
DOCS = (
    '<doc id="12" url="https://x/?curid=12" title="Anarchism &amp; &quot;order&quot;">\n'
    'Anarchism &amp; "order"\n\nIt is 1 &lt; 2 &amp;amp; &amp;lt; so.\nSecond line.\n\n</doc>\n'
    '<doc id="13" url="https://x/?curid=13" title=""Heroes"">\n"Heroes"\n\n</doc>\n'
)
ARTICLES = (
    '{"id": "12", "revid": "5", "url": "u", "title": "Old &amp; new", "text": "One &lt; two.\\nThree."}\n'
    '{"id": "13", "url": "u", "title": "Empty", "text": ""}\n'
)
BOOKS = "_BOOK_TITLE_ : Andrew_Lang___Prince.txt\nA line .\n\nCHAPTER I\n_BOOK_TITLE_ : B.txt\nEnd .\n"


def parquet(columns: dict[str, Any], **options: Any) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer, **options)
    return buffer.getvalue()


# Format, content of a file, texts. The test that lists the formats fails if a format has no entry.
EXAMPLES: list[tuple[str, bytes, list[RawText]]] = [
    (
        "json_lines",
        JSON.encode(),
        [RawText("00000000", "One."), RawText("00000001", "Twö\nlines"), RawText("00000002", "")],
    ),
    (
        "parquet",
        parquet({"id": [1, 2, 3], "text": ["One.", None, "Two\n\nlines ü"]}, row_group_size=2),
        [RawText("00000000", "One."), RawText("00000001", ""), RawText("00000002", "Two\n\nlines ü")],
    ),
    (
        "wikiextractor",
        DOCS.encode(),
        [
            RawText("12", "It is 1 < 2 &amp; &lt; so.\nSecond line.", 'Anarchism & "order"'),
            RawText("13", "", '"Heroes"'),
        ],
    ),
    (
        "wikiextractor",
        ARTICLES.encode(),
        [RawText("12", "One < two.\nThree.", "Old & new"), RawText("13", "", "Empty")],
    ),
    (
        "sentences",
        b"usually , he would be here .\r\n\n  \nno .",
        [RawText("00000000", "usually , he would be here ."), RawText("00000003", "no .")],
    ),
    ("text", b"\xef\xbb\xbfTitle\r\n\r\nText\n", [RawText("", "Title\n\nText")]),
    (
        "cbt",
        BOOKS.encode(),
        [
            RawText("00000000", "A line .\n\nCHAPTER I", "Andrew Lang   Prince"),
            RawText("00000001", "End .", "B"),
        ],
    ),
]


def texts_of(source: RawSource, format_name: str, file: str = "a", **options: Any) -> list[RawText]:
    return list(raw_texts(source, file, RawTextOptions(format_name, **options)))


def test_a_parquet_text_may_be_a_field_of_an_object(source_of: Sources) -> None:
    pairs = [{"de": "Eins", "en": "One"}, None, {"de": "Zwei", "en": None}, {"de": "Drei", "en": "Three"}]
    content = parquet({"id": [1, 2, 3, 4], "translation": pairs})
    found = texts_of(source_of(a=content), "parquet", field="translation.en")
    assert [text.text for text in found] == ["One", "", "", "Three"]
    for field, complaint in (
        ("translation.fr", "there is no field 'fr', only: de, en"),
        ("id.en", "no field 'en', only: int64"),
    ):
        with pytest.raises(SourceError, match=rf"a: column '{field}': .*{complaint}"):
            texts_of(source_of(a=content), "parquet", field=field)


def test_every_registered_format_has_an_example_and_can_be_asked_for() -> None:
    assert {name for name, _, _ in EXAMPLES} == set(FORMATS)
    assert set(get_args(RawFormat)) == {*FORMATS, BY_SUFFIX}


@pytest.mark.parametrize(("name", "content", "expected"), EXAMPLES)
def test_texts_are_read_as_they_stand(name: str, content: bytes, expected: list[RawText], source_of: Sources) -> None:
    assert texts_of(source_of(a=content), name) == expected


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "parquet"])
def test_every_text_format_is_read_compressed(name: str, source_of: Sources) -> None:
    content, expected = next((content, texts) for example, content, texts in EXAMPLES if example == name)
    packed = {"gz": gzip.compress(content), "bz2": bz2.compress(content), "xz": lzma.compress(content)}
    packed["zst"] = pa.compress(content, "zstd", asbytes=True)
    for suffix, packed_content in packed.items():
        assert texts_of(source_of(**{f"a__{suffix}": packed_content}), name, f"a.{suffix}") == expected


LEAK = """    &lt;ns&gt;0&lt;/ns&gt;
    &lt;revision&gt;
      &lt;parentid&gt;12&lt;/parentid&gt;
      &lt;timestamp&gt;2022-01-02T03:04:05Z&lt;/timestamp&gt;
      &lt;contributor&gt;
        &lt;username&gt;A &amp;lt;b&amp;gt; c&lt;/username&gt;
      &lt;/contributor&gt;
      &lt;minor /&gt;
      &lt;comment&gt;/* Early life */ fixed&lt;/comment&gt;
      &lt;model&gt;wikitext&lt;/model&gt;
      &lt;format&gt;text/x-wiki&lt;/format&gt;
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"{LEAK}The text.\n&lt;ns&gt;0&lt;/ns&gt;\nEnd.", "The text.\n<ns>0</ns>\nEnd."),
        (LEAK, ""),
        (html.unescape(LEAK) + "The text.", "The text."),
        # An article about this markup keeps the markup, and so does a line that only begins with an element.
        ("It is\n&lt;ns&gt;0&lt;/ns&gt;", "It is\n<ns>0</ns>"),
        ("&lt;ns&gt; is an element.", "<ns> is an element."),
        ("&lt;revision&gt; of a page", "<revision> of a page"),
    ],
)
def test_markup_that_wikiextractor_copies_from_an_empty_page_is_no_text(
    body: str, expected: str, source_of: Sources
) -> None:
    block = f'<doc id="1" url="u" title="A">\nA\n\n{body}\n</doc>\n'
    (found,) = texts_of(source_of(a=block.encode()), "wikiextractor")
    assert (found.text, found.title) == (expected, "A")
    article = json.dumps({"id": "1", "title": "A", "text": body})
    assert texts_of(source_of(a=article.encode()), "wikiextractor")[0].text == expected


DAMAGED: list[tuple[str, bytes, dict[str, Any], str]] = [
    ("json_lines", b'{"text": "fine"}\n{"text": "cut', {}, r"a: line 2: not a JSON object: Unterminated string"),
    ("json_lines", b"[1]\n", {}, r"a, item 1: not a JSON object: got int"),
    (
        "json_lines",
        b'{"text": "a"}\n{"url": "u", "id": 1}\n',
        {},
        r"line 2: there is no field 'text'; there are: id, u",
    ),
    ("json_lines", b'{"text": 5}\n', {}, r"a: line 1: field 'text': expected text, got int"),
    ("json_lines", b'{"text": "caf\xe9"}\n', {}, r"a: byte 13 is not utf-8 .*`options: {encoding: cp1252}`"),
    ("parquet", parquet({"text": ["x"] * 500})[:-20], {}, r"a: not readable as Parquet after row 0"),
    ("parquet", parquet({"content": ["x"], "id": [1]}), {}, r"a: there is no column 'text'; there are: content, id"),
    ("parquet", parquet({"text": [["x"]]}), {}, r"a: column 'text': expected text, got list"),
    ("wikiextractor", b'<doc id="1" title="A">\ntext\n', {}, r"a: line 1: <doc> is not closed before the end"),
    (
        "wikiextractor",
        b'<doc id="1" title="A">\nx\n<doc id="2" title="B">\ny\n</doc>\n',
        {},
        r"a: line 3: <doc> of line 1 is not closed before the next <doc>",
    ),
    ("wikiextractor", b"stray text\n", {}, r'a: line 1: expected <doc id="\.\.\." .*, got \'stray text\''),
    ("wikiextractor", b'<doc title="A">\n</doc>\n', {}, r"a: line 1: expected <doc id="),
    ("wikiextractor", b'{"id": "1", "title": "t", "text": "cut', {}, r"a: line 1: not a WikiExtractor article"),
    ("wikiextractor", b'{"id": "1", "title": "t"}\n', {}, r"a: line 1: there is no field 'text'; there are: id, title"),
    ("wikiextractor", b'{"id": "1", "title": "t", "text": 3}\n', {}, r"a: line 1: not a WikiExtractor article"),
    ("cbt", b"\nA line before .\n", {}, r"a: line 2: expected a line _BOOK_TITLE_ before the text, got 'A line"),
]


@pytest.mark.parametrize(("name", "content", "options", "message"), DAMAGED)
def test_damaged_input_is_one_line_with_its_place(
    name: str, content: bytes, options: dict[str, Any], message: str, source_of: Sources
) -> None:
    with pytest.raises(HatcheryError, match=message) as caught:
        texts_of(source_of(a=content), name, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("suffix", ["gz", "bz2", "xz", "zst"])
@pytest.mark.parametrize("name", [name for name in FORMATS if name != "parquet"])
def test_a_truncated_compressed_file_is_an_error(name: str, suffix: str, source_of: Sources) -> None:
    line = {"json_lines": '{"text": "%d"}', "wikiextractor": '{"id": "%d", "title": "", "text": "x"}'}.get(name, "l %d")
    content = "_BOOK_TITLE_ : A\n" * (name == "cbt") + "".join(line % number + "\n" for number in range(30_000))
    compress: dict[str, Callable[[bytes], bytes]] = {
        "gz": gzip.compress,
        "bz2": bz2.compress,
        "xz": lzma.compress,
        "zst": lambda data: pa.compress(data, "zstd", asbytes=True),
    }
    packed = compress[suffix](content.encode())
    with pytest.raises(SourceError, match=rf"a\.{suffix}: damaged after byte \d+"):
        texts_of(source_of(**{f"a__{suffix}": packed[: len(packed) // 2]}), name, f"a.{suffix}")


def test_texts_before_the_damage_are_streamed_before_the_error(source_of: Sources) -> None:
    stream = raw_texts(source_of(a='{"text": "first"}\n{'), "a", RawTextOptions("json_lines"))
    assert next(stream).text == "first"
    with pytest.raises(SourceError, match="line 2"):
        next(stream)


def test_a_corrupted_parquet_page_names_the_row(source_of: Sources) -> None:
    texts = [f"{number} " * 50 for number in range(4000)]
    content = bytearray(parquet({"text": texts}, row_group_size=1000, compression="zstd", use_dictionary=False))
    middle = len(content) * 6 // 10
    content[middle : middle + 200] = bytes(200)
    with pytest.raises(SourceError, match=r"a: not readable as Parquet after row [1-9]\d*"):
        texts_of(source_of(a=bytes(content)), "parquet")


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_parquet_text_may_be_stored_in_any_text_type(kind: pa.DataType, source_of: Sources) -> None:
    content = parquet({"body": pa.array(["a", "b", None]).cast(kind)})
    assert [text.text for text in texts_of(source_of(a=content), "parquet", field="body")] == ["a", "b", ""]


@given(st.lists(st.text(), max_size=6), st.booleans())
def test_json_lines_give_back_any_text(texts: list[str], ascii_only: bool) -> None:
    # GPT-BERT's corpora are JSON lines that are plain strings.
    rows: list[object] = [text if number % 2 else {"text": text} for number, text in enumerate(texts)]
    lines = "".join(json.dumps(row, ensure_ascii=ascii_only) + "\n" for row in rows)

    class Source(RawSource):
        def open(self, name: str) -> io.BytesIO:  # type: ignore[override]
            return io.BytesIO(lines.encode())

    source = Source(None, "x", "file", None, {"a": (0, "")})  # type: ignore[arg-type]
    assert [text.text for text in raw_texts(source, "a", RawTextOptions("json_lines"))] == texts


def test_half_surrogates_become_the_replacement_character(source_of: Sources) -> None:
    line = '{"text": "half \\ud83d, whole \\ud83d\\ude00, \\uDE00 end"}'
    assert texts_of(source_of(a=line), "json_lines")[0].text == "half �, whole 😀, � end"
    (row,) = rows.json_rows(rows.json_lines(source_of(a='{"text": ["\\ud83d", {"b": "\\uDE00 end"}]}'), "a"))
    assert row[1] == {"text": ["�", {"b": "� end"}]}


def test_a_line_without_end_is_refused_before_it_fills_memory(
    source_of: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "RECORD_BYTES", 3 << 20)
    with pytest.raises(SourceError, match=r"a: a line is longer than 3,145,728 bytes"):
        texts_of(source_of(a='{"text": "' + "x" * (5 << 20) + '"}'), "json_lines")


def test_lines_longer_than_a_block_are_whole(source_of: Sources) -> None:
    long = "word " * (1 << 19)
    content = f'{{"text": "{long}"}}\n{{"text": "short"}}\n{{"text": "{long}"}}'
    assert [text.text for text in texts_of(source_of(a=content), "json_lines")] == [long, "short", long]


def test_files_are_chosen_by_patterns_and_folders_kept(source_of: Sources) -> None:
    source = source_of(**{"AA/wiki_00": "", "AB/wiki_00": "", "AA/wiki_01": "", "notes__txt": ""})
    options = RawTextOptions("wikiextractor", files=("wiki_*",), exclude=("AA/wiki_01",))
    assert raw_text_files(source, options) == ["AA/wiki_00", "AB/wiki_00"]
    with pytest.raises(SourceError, match="no file matches nothing"):
        raw_text_files(source, RawTextOptions("text", files=("nothing",)))


@pytest.mark.parametrize("name", ["json_lines", "parquet", "wikiextractor", "sentences", "cbt"])
def test_memory_stays_flat_as_a_file_grows(name: str, source_of: Sources) -> None:
    words = "a sentence of some length that says nothing new at all . " * 4

    def content(count: int) -> bytes:
        match name:
            case "parquet":
                return parquet({"text": [f"{i} {words}" for i in range(count)]}, compression="none")
            case "json_lines":
                return "".join(f'{{"text": "{i} {words}"}}\n' for i in range(count)).encode()
            case "wikiextractor":
                return "".join(f'<doc id="{i}" title="t">\nt\n\n{words}\n</doc>\n' for i in range(count)).encode()
            case "cbt":
                return "".join(f"_BOOK_TITLE_ : {i}.txt\n{words}\n" for i in range(count)).encode()
        return "".join(f"{i} {words}\n" for i in range(count)).encode()

    def peak_bytes(count: int) -> int:
        source = source_of(a=content(count))
        arrow_before = pa.default_memory_pool().bytes_allocated()
        tracemalloc.start()
        arrow_peak = texts = 0
        for text in raw_texts(source, "a", RawTextOptions(name)):
            texts += bool(text.text)
            arrow_peak = max(arrow_peak, pa.default_memory_pool().bytes_allocated() - arrow_before)
        peak = tracemalloc.get_traced_memory()[1] + arrow_peak
        tracemalloc.stop()
        assert texts == count
        return peak

    # One row group contains all rows of the Parquet file, and both files are longer than the blocks in which files are
    # read.
    assert peak_bytes(45_000) < 1.3 * peak_bytes(15_000)


def test_the_suffix_tells_the_format_where_it_is_asked(source_of: Callable[..., RawSource]) -> None:
    source = source_of(
        **{
            "c4-train.00000-of-00001.json": '{"text": "web page"}\n',
            "wiki_00": '<doc id="1" url="u" title="T">\nT\n\nan article\n</doc>\n',
            "books.txt": "a book",
        }
    )
    options = RawTextOptions(format=BY_SUFFIX)
    found = {
        file: [text.text.strip() for text in raw_texts(source, file, options)]
        for file in raw_text_files(source, options)
        if not file.endswith(".txt")
    }
    assert found == {"c4-train.00000-of-00001.json": ["web page"], "wiki_00": ["an article"]}
    with pytest.raises(SourceError, match=r"books\.txt: the suffix of the file name does not determine the format"):
        list(raw_texts(source, "books.txt", options))
