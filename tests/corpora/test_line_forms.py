"""What the lines of a text are: kept in doubt, joined where prose is wrapped, in whatever language."""

import csv
import gzip
import html
import io
import textwrap
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hatchery.corpora.line_forms import LineForm, form_of, recognised
from hatchery.corpora.readers.plain_text import PlainTextOptions

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


def test_paragraphs_are_cut_where_the_corpus_says_english_and_no_option_speaks() -> None:
    def form(english: bool = True, **options: object) -> LineForm:
        return form_of(PlainTextOptions(**options), english, lambda: wrapped(ENGLISH, 72))  # type: ignore[arg-type]

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
