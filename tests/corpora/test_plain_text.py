"""The user's text: the meaning of its lines, text files and tables."""

import bz2
import csv
import gzip
import html
import io
import lzma
import re
import textwrap
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hatchery.corpora.documents import RawDocument, ReaderContext, Rejections
from hatchery.corpora.plain_text_options import PlainTextOptions
from hatchery.corpora.prose import LineForm, recognised, tagged_sentence
from hatchery.corpora.readers.plain_text import files, form_of, is_cut, read
from hatchery.errors import HatcheryError, SourceError
from hatchery.raw.obtain import register_settings
from hatchery.raw.registration import RawSource, open_source, register_source
from hatchery.typed import build

Sources = Callable[..., RawSource]


def split_at_marks(paragraph: str) -> list[str]:
    return re.split(r"(?<=[.!?]) (?=[A-Z])", paragraph)


def documents_of(source: RawSource, rejections: Rejections | None = None, **options: Any) -> list[RawDocument]:
    built = build(PlainTextOptions, options)
    reading = ReaderContext("mine", built, rejections or Rejections(), split_at_marks)
    return [document for file in files(source, built) for document in read(source, file, reading)]


def texts_of(source: RawSource, **options: Any) -> list[str]:
    return [document.text for document in documents_of(source, **options)]


def test_wrapped_text_has_paragraphs_at_blank_lines(source_of: Sources) -> None:
    source = source_of(a__txt="One sentence\nover lines. Two.\n\n \nThree.\n")
    assert texts_of(source, sentences="punkt:english") == ["One sentence over lines.\nTwo.\n\nThree."]
    assert texts_of(source, sentences="none") == ["One sentence over lines. Two.\n\nThree."]
    assert texts_of(source, sentences="line") == ["One sentence\nover lines. Two.\n\nThree."]


def test_lines_can_be_paragraphs_and_documents_can_be_cut(source_of: Sources) -> None:
    source = source_of(a__txt="One. Two.\nThree.\n\nFour.\n")
    documents = documents_of(source, paragraphs="line", sentences="punkt:english", lines_per_document=2)
    assert [(d.doc_id, d.text) for d in documents] == [
        ("mine/a.txt/000000", "One.\nTwo.\n\nThree."),
        ("mine/a.txt/000001", "Four."),
    ]


def test_lines_that_are_kept_count_themselves_and_keep_their_paragraphs(source_of: Sources) -> None:
    source = source_of(a__txt="one. One\ntwo\n\nthree\nfour\nfive\n")
    documents = documents_of(source, lines_per_document=2)
    assert [document.text for document in documents] == ["one. One\ntwo", "three\nfour", "five"]
    assert [document.text for document in documents_of(source, lines_per_document=4)] == [
        "one. One\ntwo\n\nthree\nfour",
        "five",
    ]


def test_rows_of_a_transcript_are_kept_grouped_capitalised_and_marked(source_of: Sources) -> None:
    table = (
        "transcript,role,type,gloss\n7,Mother,question,where is it\n8,Mother,declarative,no\n"
        "7,Child,declarative,ball\n7,Mother,declarative,there !\n7,Mother,declarative,\n"
    )
    options = {
        "column": "gloss",
        "document_column": "transcript",
        "keep": {"role": ["Mother"]},
        "capitalise": True,
        "punctuation_column": "type",
        "cleaning": "full",
    }
    rejections = Rejections()
    found = documents_of(source_of(t__csv=table), rejections, **options)
    assert [(d.doc_id, d.text) for d in found] == [("mine/t.csv/7", "Where is it?\n\nThere!"), ("mine/t.csv/8", "No.")]
    assert rejections.counts == {"row not kept by the option `keep`": 1, "row without text": 1}


def test_json_lines_are_documents_also_when_compressed(source_of: Sources) -> None:
    lines = '{"text": "One. Two.", "url": "u"}\n\n{"text": "Three\\n\\nFour", "url": "v"}\n'
    source = source_of(a__jsonl=lines, b__json__gz=gzip.compress(lines.encode()))
    expected = ["One.\nTwo.", "Three\n\nFour"]
    assert texts_of(source, files=["*.jsonl", "*.json.gz"], sentences="punkt:english") == expected * 2


def test_tagged_text_becomes_words_with_sensible_spaces() -> None:
    line = "\t``/`` Well/uh ,/, Atlanta's/np$ (/( old/jj )/) and/or/cc 5/cd %/nn ''/'' ,/, he/pps said/vbd ?/. ?/."
    assert tagged_sentence(line) == '"Well, Atlanta\'s (old) and/or 5%", he said?'


def test_tagged_lines_are_sentences(source_of: Sources) -> None:
    source = source_of(a__txt="\tA/at dog/nn ./.\n\tMr./np X/np ran/vbd ./.\n\n\tEnd/nn ./.\n")
    assert texts_of(source, tagged=True) == ["A dog.\nMr. X ran.\n\nEnd."]


def test_files_are_chosen_and_short_documents_counted(source_of: Sources) -> None:
    source = source_of(a__txt="one two three", b__txt="one", README__txt="read me now")
    rejections = Rejections()
    found = documents_of(source, rejections, files="*.txt", exclude=["README*"], minimum_words=2)
    assert [d.doc_id for d in found] == ["mine/a.txt"]
    assert rejections.counts == {"fewer than 2 words": 1}


@pytest.mark.parametrize(
    ("files", "options", "message"),
    [
        ({"a__txt": gzip.compress(b"good text")}, {}, r"a\.txt: is compressed with gzip; add \.gz to the file name"),
        ({"a__txt": "good text".encode("utf-16")}, {}, r"a\.txt: is text in UTF-16; .* `encoding: utf-16`"),
        ({"a__txt": b"PK\x03\x04\0\0good text"}, {}, r"a\.txt: is a zip archive; unpack the archive, or add \.zip"),
        ({"a__jsonl": b"[" * 200_000}, {}, r"a\.jsonl: line 1: not a JSON object: nested too deeply$"),
        ({"a__txt": b"x"}, {"encoding": "klingon"}, "no encoding called 'klingon'"),
        (
            {"a__csv": "text\nfine\n"},
            {"column": "gloss"},
            r"a\.csv: line 2: there is no column 'gloss'; there are: t",
        ),
        ({"a__dat": "x"}, {}, r"no file matches \*\.txt.*; there are: a\.dat; set the option `files`$"),
        ({"a__zip": "x"}, {}, "set the option `files`, or unpack archives$"),
        ({"a__docx": "x", "b__zip": "x"}, {}, r"set the option `files`, or save documents as plain text \(\.txt\)$"),
        ({f"{n}__dat": "x" for n in "abcdefghijk"}, {}, r"there are: a\.dat, .*, h\.dat and 3 more"),
        ({"a__csv": "text,id,text\nx,1,y\n"}, {}, r"a\.csv: line 1: 2 columns are called 'text'"),
        ({"a__csv": "id;text\n1;x\n"}, {}, r"a\.csv: line 1: got one column, 'id;text', .*`delimiter`, perhaps to ';'"),
        ({"a__txt": "x"}, {"tagged": True, "punctuation_column": "t"}, "punctuation_column"),
    ],
)
def test_wrong_input_is_one_line_with_its_place(
    files: dict[str, bytes | str], options: dict[str, Any], message: str, source_of: Sources
) -> None:
    with pytest.raises(HatcheryError, match=message) as caught:
        documents_of(source_of(**files), **options)
    assert "\n" not in str(caught.value)


def test_rows_of_one_document_may_stand_apart_and_documents_keep_the_order_of_their_first_rows(
    source_of: Sources,
) -> None:
    rows = ["b,one", "a,two", "c,", "b,three", "c,four", "a,five", "d,"]
    source = source_of(t__csv="\n".join(["book,text", *rows]))
    found = documents_of(source, document_column="book")
    assert [(d.doc_id, d.text) for d in found] == [
        ("mine/t.csv/b", "one\n\nthree"),
        ("mine/t.csv/a", "two\n\nfive"),
        ("mine/t.csv/c", "four"),
    ]


def test_compressed_text_and_tables_are_read(source_of: Sources) -> None:
    source = source_of(a__txt__bz2=bz2.compress(b"One. Two."), b__csv__xz=lzma.compress(b"text\nThree.\n"))
    assert texts_of(source, files="*") == ["One. Two.", "Three."]


def test_quoted_cells_keep_their_lines_whatever_the_line_ends(source_of: Sources) -> None:
    source = source_of(t__csv=b'text,n\r\n"One.\r\n\r\nTwo, ""three"".",1\r\nFour.,2')
    assert texts_of(source) == ['One.\n\nTwo, "three".', "Four."]


def test_an_empty_file_is_counted_not_lost(source_of: Sources) -> None:
    for options in ({}, {"lines_per_document": 3}, {"minimum_words": 0}):
        rejections = Rejections()
        assert documents_of(source_of(a__txt="\n \n"), rejections, **options) == []
        assert rejections.counts == {"no words": 1}


@pytest.mark.parametrize("suffix", ["txt", "csv", "jsonl"])
def test_memory_stays_flat_as_a_file_grows(suffix: str, source_of: Sources) -> None:
    line = "a line of ten words or so that says nothing new at all" * 25
    rows = {"txt": line, "csv": f"k,{line}", "jsonl": f'{{"text": "{line}"}}'}[suffix]
    header = "book,text\n" if suffix == "csv" else ""

    def peak_bytes(lines: int) -> int:
        content = header + "".join(f"{rows.replace('k,', f'{i // 100},', 1)}\n" for i in range(lines))
        source = source_of(**{f"a__{suffix}": content})
        built = PlainTextOptions(
            paragraphs="line",
            cleaning="none",
            lines_per_document=100 if suffix == "txt" else None,
            document_column="book" if suffix == "csv" else None,
        )
        reading = ReaderContext("mine", built, Rejections(), split_at_marks)
        del content
        tracemalloc.start()
        documents = sum(1 for _ in read(source, f"a.{suffix}", reading))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert documents == (lines if suffix == "jsonl" else lines // 100)
        return peak

    # Because both files are longer than the blocks of one megabyte in which files are read.
    assert peak_bytes(4_800) < 1.3 * peak_bytes(1_600)


def test_tables_with_other_delimiters_are_read(source_of: Sources) -> None:
    source = source_of(a__csv='id;text\n1;"One, two; three."\n2;Four, five.', b__tsv="id\ttext\n3\tSix, seven.\n")
    assert texts_of(source, files="*.csv", delimiter=";") == ["One, two; three.", "Four, five."]
    assert texts_of(source, files="*.tsv") == ["Six, seven."]
    assert texts_of(source, files="*.tsv", format="csv", delimiter="\t") == ["Six, seven."]


def test_rows_with_more_fields_than_the_header_are_counted_not_cut_short(source_of: Sources) -> None:
    rejections = Rejections()
    source = source_of(t__csv='id,text\n1,"Quoted, with a comma."\n2,Bare, with a comma.\n3,Fine.\n')
    assert [d.text for d in documents_of(source, rejections)] == ["Quoted, with a comma.", "Fine."]
    assert rejections.counts == {"row with more fields than the header: quote texts with the delimiter": 1}
    assert list(rejections.samples.values()) == [["Bare"]]


def test_json_values_that_are_no_text_are_counted_not_turned_into_text(source_of: Sources) -> None:
    rejections = Rejections()
    values = ["[1, 2]", '{"a": "b"}', "7", "1.5", "true", "null", '"A text."']
    source = source_of(t__jsonl="".join(f'{{"id": 7, "text": {value}}}\n' for value in values))
    found = documents_of(source, rejections, keep={"id": ["7"]})
    assert [d.text for d in found] == ["A text."]
    assert rejections.counts == {
        "row whose text is a list": 1,
        "row whose text is an object": 1,
        "row whose text is a number": 2,
        "row whose text is true or false": 1,
        "row without text": 1,
    }


@pytest.mark.parametrize("folder", ["text", "c4", "childes"])
def test_embedded_sources_are_read(folder: str, embedded_folder: Path, tmp_path: Path) -> None:
    register_source(folder, embedded_folder / folder, tmp_path / "x.json")
    options = {"column": "gloss", "document_column": "transcript_id"} if folder == "childes" else {}
    options["files"] = "*"
    texts = texts_of(open_source(tmp_path / "x.json"), **options)
    assert len(texts) >= 6
    assert all("\n" in text for text in texts)


def test_real_zip_archives_are_read(real_data: Path, tmp_path: Path) -> None:
    path = str(real_data / "nltk" / "brown.zip")
    register_settings({"name": "brown", "path": path}, tmp_path / "brown.json", tmp_path / "fetched")
    source = open_source(tmp_path / "brown.json")
    (text,) = texts_of(source, files="brown/ca01", format="text", tagged=True)
    assert text.startswith("The Fulton County Grand Jury said Friday an investigation of Atlanta's recent primary")
    assert 1900 < len(text.split()) < 2100
    with pytest.raises(SourceError, match="no file matches"):
        texts_of(source, files="*.md")


ENGLISH = (
    "It was the first day of the year, and nobody in the house had slept. The dogs, which had been let out at six, "
    "came back wet and went to lie by the stove. Mr. Finch said that he would not have them there; his sister said "
    "nothing."
)
GERMAN = (
    "Es war am 3. Oktober, und niemand im Haus hatte geschlafen. Die Hunde, die man um sechs hinausgelassen hatte, "
    "kamen nass zurück und legten sich an den Ofen usw. und blieben dort. Herr Fink sagte, das gehe nicht."
)
ARABIC = "كان اليوم الأول من السنة ولم ينم أحد في البيت وعادت الكلاب مبللة واستلقت قرب الموقد ولم تقل أخته شيئا " * 3
SONNET = [
    "Shall I compare thee to a summer's day in a garden of ours?",
    "Thou art more lovely and more temperate than all of them,",
    "And rough winds do shake the darling buds of the month of May,",
    "Which summer's lease hath all too short a date for anyone here",
]


def wrapped(paragraph: str, width: int, paragraphs: int = 20) -> list[str]:
    return [line for _ in range(paragraphs) for line in (*textwrap.wrap(paragraph, width), "")]


@pytest.mark.parametrize("width", [55, 65, 72, 80, 100])
@pytest.mark.parametrize("paragraph", [ENGLISH, GERMAN, ARABIC])
def test_wrapped_prose_is_joined_to_its_paragraphs(paragraph: str, width: int) -> None:
    lines = wrapped(paragraph, width)
    form = recognised(lines)
    assert form.kind == "wrapped"
    assert form.units(lines[: lines.index("")]) == [" ".join(paragraph.split())]


@pytest.mark.parametrize(
    "lines",
    [
        ["you want the ball", "no", "where is it", "over there by the big red chair", "well put it down then"] * 50,
        ["A man in a hat.", "Two dogs run over the wet grass of a park in the evening.", "A woman."] * 50,
        ["house", "garden", "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefgh"] * 50,
        SONNET,
        [],
        ["", " "],
    ],
)
def test_other_lines_stay(lines: list[str]) -> None:
    form = recognised(lines)
    assert form.kind == "lines"
    assert form.units(lines) == lines


def test_lines_longer_than_sentences_are_paragraphs() -> None:
    assert recognised([ENGLISH, "", GERMAN, "", "A heading"]).kind == "paragraphs"


def test_lists_headings_tables_and_short_lines_of_wrapped_text_keep_their_lines() -> None:
    lines = [
        "# About the house",
        *textwrap.wrap(ENGLISH, 72),
        "- the first item, which is so long that it reaches nearly to the margin",
        "- the second item",
        "| a | b |",
        "2. the third",
    ]
    units = recognised(wrapped(ENGLISH, 72) + lines).units(lines)
    assert units == [lines[0], " ".join(ENGLISH.split()), *lines[-4:]]


def test_paragraphs_are_cut_where_the_corpus_says_english_and_no_option_speaks(
    source_of: Callable[..., RawSource],
) -> None:
    source = source_of(a__txt="\n".join(wrapped(ENGLISH, 72)))

    def form(english: bool = True, **options: object) -> LineForm:
        return form_of(source, "a.txt", PlainTextOptions(**options), english)  # type: ignore[arg-type]

    assert form().cut and form().kind == "wrapped"
    assert not form(english=False).cut
    assert form(english=False, sentences="punkt:german") == LineForm("wrapped", cut=True)
    assert form(sentences="none") == LineForm("wrapped")
    assert form(sentences="line") == LineForm("lines")
    assert form(sentences="line", paragraphs="line") == LineForm("paragraphs")
    assert "not cut into sentences" in form(english=False).description


def members(archive: Path, prefix: str, encoding: str) -> Iterator[tuple[str, list[str]]]:
    with zipfile.ZipFile(archive) as opened:
        for name in opened.namelist():
            if name.startswith(prefix) and name.endswith(".txt"):
                yield name, html.unescape(opened.read(name).decode(encoding)).split("\n")


def test_captions_treebanks_and_transcripts_keep_their_lines(real_data: Path) -> None:
    texts = {
        path.name: gzip.decompress(path.read_bytes()).decode().split("\n") for path in real_data.glob("multi30k/*.gz")
    }
    treebank = (real_data / "ud_english_ewt/en_ewt-ud-dev.conllu").read_text().split("\n")
    texts["ud"] = [line.removeprefix("# text = ") for line in treebank if line.startswith("# text = ")]
    with zipfile.ZipFile(real_data / "aochildes.zip") as archive:
        for name in archive.namelist():
            if name.endswith(".csv"):
                rows = csv.DictReader(io.StringIO(archive.read(name).decode()))
                texts[name] = [row["gloss"] for row in rows if row["gloss"].strip()]
    texts |= dict(members(real_data / "nltk/webtext.zip", "webtext/", "latin-1"))
    texts |= dict(members(real_data / "nltk/abc.zip", "abc/", "latin-1"))
    assert len(texts) > 30
    assert {name: recognised(lines).kind for name, lines in texts.items()} == dict.fromkeys(texts, "lines")


def test_wrapped_bibles_are_joined_and_those_with_a_verse_per_line_are_not(real_data: Path) -> None:
    found = {
        name.removeprefix("genesis/").removesuffix(".txt"): recognised(lines).kind
        for name, lines in members(real_data / "nltk/genesis.zip", "genesis/", "latin-1")
    }
    joined = ("english-kjv", "english-web", "finnish", "swedish")
    kept = ("french", "german", "lolcat", "portuguese")
    assert found == {**dict.fromkeys(joined, "wrapped"), **dict.fromkeys(kept, "lines")}


def test_speeches_with_a_paragraph_per_line_are_paragraphs(real_data: Path) -> None:
    kinds = [recognised(lines).kind for _, lines in members(real_data / "nltk/inaugural.zip", "inaugural/", "latin-1")]
    assert (kinds.count("paragraphs"), len(kinds)) == (58, 59)


@pytest.mark.parametrize(
    ("count", "size", "options", "cut"),
    [
        # With 20 files, a twentieth is one file.
        (19, 10, {}, True),
        (20, 10, {}, False),
        (20, 1 << 20, {}, False),
        (20, (1 << 20) + 1, {}, True),
        (None, 10, {}, False),
        (19, 1 << 21, {"cut_files": "never"}, False),
        (20, 10, {"cut_files": "always"}, True),
        (19, 1 << 21, {"lines_per_document": 5}, False),
        (19, 1 << 21, {"tagged": True}, False),
    ],
)
def test_few_files_and_long_ones_are_cut_into_documents_unless_an_option_says_otherwise(
    count: int | None, size: int, options: dict[str, Any], cut: bool
) -> None:
    source: Any = SimpleNamespace(size=lambda name: size)
    assert is_cut(source, "a.txt", PlainTextOptions(**options), count) is cut
