"""The BNC reader: golden texts, titles, names, and the files that are read."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from hatchery.corpora.bnc_page import parse
from hatchery.corpora.bnc_text import convert_text, first_names, name_drawer, usable_names
from hatchery.corpora.documents import RawDocument, ReaderContext, Rejections
from hatchery.corpora.readers.bnc_xml import BncOptions, files, read
from hatchery.raw.obtain import register_settings
from hatchery.raw.registration import RawSource, open_source, register_source
from hatchery.settings.base import ReadingName

HEADER = "<teiHeader><fileDesc><sourceDesc><bibl><title>A title . </title></bibl></sourceDesc></fileDesc></teiHeader>"
SPOKEN = f'<bncDoc xml:id="%s">{HEADER}<stext><u who="P1"><s><w>Hello</w></s></u></stext></bncDoc>'


def reading_of(source: RawSource, rejections: Rejections | None = None, **options: str) -> list[RawDocument]:
    chosen = BncOptions(**options)  # type: ignore[arg-type]
    reading = ReaderContext("bnc", chosen, rejections or Rejections(), lambda text: [text])
    return [document for file in files(source, chosen) for document in read(source, file, reading)]


@pytest.mark.parametrize("text_id", [f"XA{number}" for number in range(1, 9)])
def test_published_reading_gives_the_golden_bytes(text_id: str, golden_directory: Path) -> None:
    folder = golden_directory / "bnc"
    names = usable_names((folder / "first-names.txt").read_text(encoding="utf-8").splitlines())
    assert len(names) == 20
    root = parse((folder / f"{text_id}.xml").read_bytes(), text_id)
    # Because the generator was seeded with "BNC" before every golden text.
    converted = convert_text(root, name_drawer("BNC", names), Rejections(), "as_published")
    assert converted.encode() == (folder / f"{text_id}.md").read_bytes()


@pytest.mark.parametrize("reading", ["as_published", "corrected"])
def test_a_stored_document_is_the_page_without_blank_lines_at_its_end(
    reading: ReadingName, source_of: Callable[..., RawSource]
) -> None:
    [document] = reading_of(source_of(B00__xml=SPOKEN % "B00"), reading=reading)
    root = parse((SPOKEN % "B00").encode(), "x")
    page = convert_text(root, name_drawer("B00", first_names()), Rejections(), reading)
    assert page == document.text + "\n\n"


def test_a_document_carries_the_id_of_its_text(source_of: Callable[..., RawSource]) -> None:
    [document] = reading_of(source_of(some_file__xml=SPOKEN % "KB7"))
    assert (document.doc_id, document.source, document.split) == ("bnc/KB7", "bnc", None)


def test_a_text_without_an_id_is_called_after_its_file(source_of: Callable[..., RawSource]) -> None:
    [document] = reading_of(source_of(KB8__xml=(SPOKEN % "x").replace(' xml:id="x"', "")))
    assert document.doc_id == "bnc/KB8"


def test_the_zip_and_the_unpacked_folder_give_the_same_documents(tmp_path: Path) -> None:
    members = {"download/Texts/A/A0/A00.xml": SPOKEN % "A00", "download/Texts/K/KB/KB0.xml": SPOKEN % "KB0"}
    beside = {
        "download/Doc/Reference.xml": "<TEI/>",
        "download/XML/corpus_parms.xml": "<x/>",
        "download/Texts/._A.xml": "",
    }
    with zipfile.ZipFile(tmp_path / "2554.zip", "w") as archive:
        for name, content in (members | beside).items():
            archive.writestr(name, content)
    for name, content in members.items():
        path = tmp_path / "unpacked" / name.removeprefix("download/Texts/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    documents = []
    for name in ("2554.zip", "unpacked"):
        settings = {"name": "bnc", "path": str(tmp_path / name)}
        register_settings(settings, tmp_path / f"{name}.json", tmp_path / "fetched")
        documents.append(reading_of(open_source(tmp_path / f"{name}.json")))
    assert documents[0] == documents[1]
    assert [document.doc_id for document in documents[0]] == ["bnc/A00", "bnc/KB0"]


def test_drawn_names_do_not_depend_on_the_other_texts(source_of: Callable[..., RawSource]) -> None:
    alone = reading_of(source_of(B00__xml=SPOKEN % "B00"))[0].text
    both = {d.doc_id: d.text for d in reading_of(source_of(A00__xml=SPOKEN % "A00", B00__xml=SPOKEN % "B00"))}
    assert both["bnc/B00"] == alone
    assert any(f"{name}: 'Hello'" in alone for name in first_names())


def header_page(header: str, reading: ReadingName, body: str = "<wtext/>", draw: str = "Drawn") -> str:
    root = parse(f"<bncDoc><teiHeader>{header}</teiHeader>{body}</bncDoc>".encode(), "x")
    return convert_text(root, lambda: draw, Rejections(), reading, "X00").rstrip("\n")


def described(source: str = "", statement: str = "") -> str:
    title = f"<titleStmt><title>{statement}</title></titleStmt>" if statement else ""
    return f"<fileDesc>{title}<sourceDesc>{source}</sourceDesc></fileDesc>"


@pytest.mark.parametrize(
    ("header", "published", "corrected"),
    [
        (described("<bibl><title> The box . </title><author/></bibl>"), "# The box", "# The box"),
        (described("<bibl/><bibl/>", "Vol. 2. Sample containing about 9 words"), "# Vol. 2", "# Vol. 2"),
        (
            described("<bibl><author/><title>A</title></bibl>", "End ,it. Sample containing about 3.5 words"),
            "# End, it. Sample containing about 3",
            "# End, it",
        ),
        (described("", "Small poems"), "#", "# Small poems"),
        (described("", "Poems. Sample containing about 9\nwords from a book"), "# Poems", "# Poems"),
        (described("", "The U.S. and I"), "# The U. S", "# The U.S. and I"),
        (described("<bibl><title/></bibl>"), "#", "# X00"),
        (described("<bibl><title/></bibl>", "Stated. Sample containing about 9 words"), "#", "# Stated"),
        (described("<bibl><title>[The harbour]. </title></bibl>"), "# [The harbour]", "# [The harbour]"),
    ],
)
def test_title(header: str, published: str, corrected: str) -> None:
    assert header_page(header, "as_published") == published
    assert header_page(header, "corrected") == corrected


@pytest.mark.parametrize(
    ("person", "published", "corrected"),
    [
        ("<persName>mary-jane o'neil</persName>", "Mary-jane O'neil", "Mary-jane O'neil"),
        ("<age>3</age><persName>  THE   chair </persName><persName>Bob</persName>", "THE Chair", "THE Chair"),
        ("<persName>an Unknown clerk</persName>", "[UNK]", "[UNK]"),
        ("<age>37</age>", "Drawn", "Drawn"),
        # Inferred: no published output shows an empty name.
        ("<persName> </persName>", "", "Drawn"),
    ],
)
def test_name_of_a_speaker(person: str, published: str, corrected: str) -> None:
    participants = f'<particDesc><person xml:id="P1">{person}</person></particDesc>'
    header = f"{described('<bibl><title>T</title></bibl>')}<profileDesc>{participants}</profileDesc>"
    body = '<stext><u who="P1"><s><w>Hello</w></s></u></stext>'
    assert header_page(header, "as_published", body) == f"# T\n\n{published}: 'Hello'"
    assert header_page(header, "corrected", body) == f"# T\n\n{corrected}: 'Hello'"


def test_names_are_drawn_for_the_header_first_and_then_at_first_utterances_also_of_dropped_turns() -> None:
    names = iter(["One", "Two", "Three"])
    root = parse(
        f"""<bncDoc><teiHeader>{described("<bibl><title>T</title></bibl>")}<profileDesc><particDesc>
        <person xml:id="P1"/></particDesc></profileDesc></teiHeader><stext><u who="P9"><s><c>?</c></s></u>
        <u who="P8"><s><w>Eight</w></s></u><u who="P9"><s><w>Nine</w></s></u><u who="P1"><s><w>One</w></s></u>
        </stext></bncDoc>""".encode(),
        "x",
    )
    page = convert_text(root, lambda: next(names), Rejections(), "as_published")
    assert page == "# T\n\nThree: 'Eight'\n\nTwo: 'Nine'\n\nOne: 'One'\n\n"


def test_names_that_are_not_purely_alphabetic_are_not_used() -> None:
    assert usable_names(["ann", "Anne-Marie", "D'arcy", "", " Bob "]) == ("Ann", "Bob")
    assert len(first_names()) > 50


@pytest.mark.parametrize("reading", ["as_published", "corrected"])
def test_embedded_texts_convert_with_all_their_features(
    reading: ReadingName, embedded_folder: Path, tmp_path: Path
) -> None:
    register_source("bnc", embedded_folder / "bnc", tmp_path / "bnc.json")
    rejections = Rejections()
    documents = reading_of(open_source(tmp_path / "bnc.json"), rejections, reading=reading)
    whole = "\n\n".join(document.text for document in documents)
    assert len(documents) >= 4
    assert not rejections.counts
    for mark in ("# ", "## ", "> ", "- ", "[UNK]", ": '"):
        assert f"\n{mark}" in f"\n{whole}" or mark in whole
    assert "\n\n\n" not in whole
