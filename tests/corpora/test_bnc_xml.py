"""The BNC reader: golden texts byte for byte, hostile and damaged XML, names of unnamed speakers."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hatchery.corpora.bnc_header import first_names
from hatchery.corpora.bnc_xml import BncOptions, convert_text, parse, read
from hatchery.corpora.documents import Rejections
from hatchery.errors import CorpusError, SourceError
from hatchery.storage.sources import RawSource, open_source, register_source

HEADER = "<teiHeader><fileDesc><sourceDesc><bibl><title>A title . </title></bibl></sourceDesc></fileDesc></teiHeader>"


def text_of(body: str) -> tuple[str, Rejections]:
    rejections = Rejections()
    root = parse(f"<bncDoc>{HEADER}{body}</bncDoc>".encode(), "x.xml")
    return convert_text(root, lambda: "Ada", rejections), rejections


@pytest.mark.parametrize("text_id", [f"XA{number}" for number in range(1, 9)])
def test_golden_text(text_id: str, golden_directory: Path) -> None:
    folder = golden_directory / "bnc"
    speakers = json.loads((folder / "speakers.json").read_text(encoding="utf-8"))[text_id]
    # Both draw in the same order: header first, then unlisted speakers as they first speak.
    names = iter([speaker["name"] for speaker in speakers.values() if speaker["source"] == "random"])
    root = parse((folder / f"{text_id}.xml").read_bytes(), text_id)
    converted = convert_text(root, lambda: next(names), Rejections())
    # The published converter ends every block, also the last one, with a blank line.
    assert converted == (folder / f"{text_id}.md").read_text(encoding="utf-8").rstrip("\n")
    assert next(names, None) is None


def test_skipped_elements_are_counted() -> None:
    text, rejections = text_of("<wtext><stage><s><w>Enter</w></s></stage><p><s><w>Hello</w></s></p></wtext>")
    assert text == "# A title\n\nHello"
    assert rejections.counts == {"element <stage> in <wtext> skipped": 1}


@pytest.mark.parametrize(
    "declaration",
    [
        '<!DOCTYPE b [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;">]>',
        '<!DOCTYPE b [<!ENTITY c SYSTEM "file:///etc/hostname">]>',
        '<!DOCTYPE b [<!ENTITY % p SYSTEM "http://example.invalid/x.dtd"> %p;]>',
    ],
)
def test_declared_entities_are_refused(declaration: str) -> None:
    content = f"{declaration}<bncDoc>{HEADER}<wtext><p><s><w>&c;</w></s></p></wtext></bncDoc>"
    with pytest.raises(SourceError, match=r"^x\.xml: the text declares XML entities"):
        parse(content.encode(), "x.xml")


def test_entities_hidden_by_another_encoding_are_refused() -> None:
    content = '<?xml version="1.0" encoding="utf-16"?><!DOCTYPE b [<!ENTITY c "ha">]><bncDoc>&c;</bncDoc>'
    with pytest.raises(SourceError, match="declares XML entities"):
        parse(content.encode("utf-16"), "x.xml")


def test_an_external_document_type_is_not_loaded(tmp_path: Path) -> None:
    (tmp_path / "b.dtd").write_text('<!ENTITY secret "secret">')
    content = f'<!DOCTYPE bncDoc SYSTEM "{tmp_path}/b.dtd"><bncDoc>{HEADER}<wtext/></bncDoc>'
    assert convert_text(parse(content.encode(), "x.xml"), lambda: "", Rejections()) == "# A title"


def test_a_truncated_text_is_an_error_with_file_and_line(source_of: Callable[..., RawSource]) -> None:
    whole = f"<bncDoc>\n{HEADER}\n<wtext><p><s><w>Hello</w></s></p></wtext></bncDoc>"
    source = source_of(A00__xml=whole, A01__xml=whole[:-20])
    with pytest.raises(SourceError, match=r"A01\.xml: not well-formed XML at line 3") as caught:
        list(read(source, "bnc", BncOptions(), Rejections()))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", ["<html/>", f"<bncDoc>{HEADER}</bncDoc>", "<bncDoc><teiHeader/><wtext/></bncDoc>"])
def test_xml_that_is_no_bnc_text_is_an_error_naming_the_file(content: str, source_of: Callable[..., RawSource]) -> None:
    with pytest.raises(CorpusError, match=r"A00\.xml: "):
        list(read(source_of(A00__xml=content), "bnc", BncOptions(), Rejections()))


def test_drawn_names_do_not_depend_on_the_other_texts(source_of: Callable[..., RawSource]) -> None:
    spoken = f'<bncDoc>{HEADER}<stext><u who="P1"><s><w>Hello</w></s></u></stext></bncDoc>'
    alone = [d.text for d in read(source_of(B00__xml=spoken), "bnc", BncOptions(), Rejections())]
    both = {
        d.doc_id: d.text for d in read(source_of(A00__xml=spoken, B00__xml=spoken), "bnc", BncOptions(), Rejections())
    }
    assert both["bnc/B00"] == alone[0]
    assert any(f"{name}: 'Hello'" in alone[0] for name in first_names())


def test_embedded_texts_convert_with_all_their_features(embedded_folder: Path, tmp_path: Path) -> None:
    register_source("bnc", embedded_folder / "bnc", tmp_path / "bnc.json")
    rejections = Rejections()
    documents = list(read(open_source(tmp_path / "bnc.json"), "bnc", BncOptions(), rejections))
    whole = "\n\n".join(document.text for document in documents)
    assert len(documents) >= 4
    assert not rejections.counts
    for mark in ("# ", "## ", "> ", "- ", "[UNK]", ": '"):
        assert f"\n{mark}" in f"\n{whole}" or mark in whole
    assert "\n\n\n" not in whole
