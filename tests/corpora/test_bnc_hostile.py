"""Damaged and hostile BNC texts: one SourceError of one line that names the file and the line, in both readings."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hatchery.corpora.documents import RawDocument, ReaderContext, Rejections
from hatchery.corpora.readers.bnc_xml import BncOptions, files, read
from hatchery.errors import SourceError
from hatchery.raw.registration import RawSource
from hatchery.settings.base import ReadingName

HEADER = "<teiHeader><fileDesc><sourceDesc><bibl><title>T</title></bibl></sourceDesc></fileDesc></teiHeader>"
Make = Callable[..., RawSource]


def written(body: str, declaration: str = "") -> str:
    return f"{declaration}<bncDoc>{HEADER}\n<wtext>\n{body}\n</wtext></bncDoc>"


def spoken(body: str) -> str:
    return f"<bncDoc>{HEADER}\n<stext>\n{body}\n</stext></bncDoc>"


def documents(source: RawSource, reading: ReadingName = "corrected") -> Iterator[RawDocument]:
    options = BncOptions(reading=reading)
    settings = ReaderContext("bnc", options, Rejections(), lambda text: [text])
    for file in files(source, options):
        yield from read(source, file, settings)


def error_of(source: RawSource, reading: ReadingName = "corrected") -> str:
    with pytest.raises(SourceError) as caught:
        list(documents(source, reading))
    message = str(caught.value)
    assert "\n" not in message
    return message


PERSON = "</fileDesc>\n<profileDesc><particDesc><person/></particDesc></profileDesc>"
SENTENCE = "<s><w>Hello</w></s>"
BOMB = (
    '<!DOCTYPE b [\n<!ENTITY a0 "' + "ha" * 500 + '">'
    + "".join(f'<!ENTITY a{level + 1} "{f"&a{level};" * 20}">' for level in range(9))
    + "]>\n"
)  # fmt: skip
ENTITIES = {
    "bomb": BOMB,
    "internal": '<!DOCTYPE b [\n<!ENTITY a9 "ha">]>\n',
    "file": '<!DOCTYPE b [\n<!ENTITY a9 SYSTEM "file:///etc/hostname">]>\n',
    "parameter": '<!DOCTYPE b [\n<!ENTITY % a9 SYSTEM "http://example.invalid/x.dtd"> %a9;]>\n',
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("kind", ENTITIES)
@pytest.mark.parametrize("used", [True, False])
def test_declared_entities_are_refused_in_every_encoding(kind: str, encoding: str, used: bool, source_of: Make) -> None:
    name = "UTF-16" if encoding.startswith("utf-16") else encoding.upper()
    reference = "&a9;" if used and kind != "parameter" else ""
    text = written(f'<p type="{reference if kind == "bomb" else ""}"><s><w>{reference}</w></s></p>', ENTITIES[kind])
    declared = f'<?xml version="1.0" encoding="{name}"?>' + text
    message = error_of(source_of(A00__xml=declared.encode(encoding)))
    if encoding == "utf-32":
        # This libxml2 reads no UTF-32 at all; the entities need not be what the message is about.
        assert "A00.xml: line 1: " in message or "A00.xml: line 2: " in message
    else:
        assert "A00.xml: line 2: the text declares XML entities" in message


def test_entities_hidden_by_utf_7_are_refused(source_of: Make) -> None:
    hidden = '+ADwAIQ-DOCTYPE a +AFsAPAAh-ENTITY c "ha"+AD4AXQA+-'
    message = error_of(source_of(A00__xml=f'<?xml version="1.0" encoding="UTF-7"?>{hidden}<a>&c;</a>'))
    assert "A00.xml: line 1: " in message


def test_an_entity_that_nobody_declared_is_an_error(source_of: Make) -> None:
    message = error_of(source_of(A00__xml=written("<p><s><w>&c;</w></s></p>")))
    assert "A00.xml: line 3: not well-formed XML: Entity 'c' not defined" in message


def test_an_external_document_type_is_not_loaded(tmp_path: Path, source_of: Make) -> None:
    (tmp_path / "b.dtd").write_text('<!ENTITY secret "secret">')
    source = source_of(A00__xml=written("", f'<!DOCTYPE bncDoc SYSTEM "{tmp_path}/b.dtd">'))
    assert [document.text for document in documents(source)] == ["# T"]


def test_a_text_in_utf_16_is_read(source_of: Make) -> None:
    content = '<?xml version="1.0" encoding="UTF-16"?>' + written("<p><s><w>café</w></s></p>")
    assert [document.text for document in documents(source_of(A00__xml=content.encode("utf-16")))] == ["# T\n\ncafé"]


@pytest.mark.parametrize("missing", range(20, len(written(f"<p>{SENTENCE}</p>")), 23))
def test_a_truncated_text_is_an_error_with_file_and_line(missing: int, source_of: Make) -> None:
    whole = written(f"<p>{SENTENCE}</p>")
    source = source_of(A00__xml=whole, A01__xml=whole[:-missing])
    with pytest.raises(SourceError, match=r"A01\.xml: line [1-4]: not well-formed XML: ") as caught:
        list(documents(source))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"", b" \n\n", b"\xef\xbb\xbf", b"\xff\xfe", b"\0\0\0\0", b"not XML", b"\x1f\x8b\x08"]
)
def test_a_file_without_xml_is_an_error_with_file_and_line(content: bytes, source_of: Make) -> None:
    assert "A00.xml: line " in error_of(source_of(A00__xml=content))


@pytest.mark.parametrize(
    ("declared", "real", "line"),
    [
        ("UTF-8", "latin-1", 3),
        ("US-ASCII", "utf-8", 1),
        ("UTF-16", "utf-8", 1),
        ("klingon", "utf-8", 1),
        ("IBM037", "cp037", 1),
    ],
)  # fmt: skip
def test_another_encoding_than_the_declared_one_is_an_error(
    declared: str, real: str, line: int, source_of: Make
) -> None:
    text = f'<?xml version="1.0" encoding="{declared}"?>' + written("<p><s><w>café</w></s></p>")
    assert f"A00.xml: line {line}: not well-formed XML: " in error_of(source_of(A00__xml=text.encode(real)))


@pytest.mark.parametrize("tag", ["quote", "div", "lg", "list", "item", "hi", "u"])
def test_deep_nesting_is_an_error_and_never_exhausts_the_stack(tag: str, source_of: Make) -> None:
    for depth in (240, 300, 100_000):
        nested = f"<{tag}>" * depth + f"</{tag}>" * depth
        content = written(f"<p><s>{nested}</s></p>" if tag == "hi" else nested)
        try:
            list(documents(source_of(A00__xml=content)))
        except SourceError as error:
            assert "A00.xml: line 3: " in str(error)
        else:
            assert depth == 240


def test_lists_in_lists_up_to_the_limit_are_read(source_of: Make) -> None:
    nested = "<list><item>" * 120 + SENTENCE + "</item></list>" * 120
    for reading in ("as_published", "corrected"):
        [document] = documents(source_of(A00__xml=written(nested)), reading)  # type: ignore[arg-type]
        assert document.text == f"# T\n\n{'- ' * 120}Hello"


@pytest.mark.parametrize("body", ["<p><s><w>{}</w></s></p>", '<p n="{}"/>'])
def test_a_huge_text_node_is_an_error(body: str, source_of: Make) -> None:
    message = error_of(source_of(A00__xml=written(body.format("x" * 10_100_000))))
    assert "A00.xml: line 3: not well-formed XML: " in message


def test_control_characters_are_an_error(source_of: Make) -> None:
    assert "A00.xml: line 3: not well-formed XML" in error_of(source_of(A00__xml=written("<p>\0</p>")))


def test_comments_processing_instructions_and_cdata_leave_no_trace(source_of: Make) -> None:
    body = "<!-- <p> --><p><s><w>Hel<!-- x -->l<?php y ?><![CDATA[o &]]></w></s></p>"
    assert [document.text for document in documents(source_of(A00__xml=written(body)))] == ["# T\n\nHello &"]


@pytest.mark.parametrize("reading", ["as_published", "corrected"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (written("<foreign/>"), "line 3: element <foreign> is not expected in <wtext>"),
        (written("<div>\n<p>\n<figure/></p></div>"), "line 5: element <figure> is not expected in <p>"),
        (written("<p>\n<w>Loose</w></p>"), "line 4: element <w> is not expected in <p>"),
        (written("<s><w>Loose</w></s>"), "line 3: element <s> is not expected in <wtext>"),
        (written("<list>\n<p/></list>"), "line 4: element <p> is not expected in <list>"),
        (written("<sp><list/></sp>"), "line 3: element <list> is not expected in <sp>"),
        (written('<div level="7000000000"/>'), "line 3: level='7000000000' of a <div>, expected a number from 1 to 20"),
        (written('<div level="x"/>'), "line 3: level='x' of a <div>"),
        (spoken("<p/>"), "line 3: element <p> is not expected in <stext>"),
        (spoken('<u who="P1">\n<p/></u>'), "line 4: element <p> is not expected in <u>"),
        (spoken(f"<u>{SENTENCE}</u>"), "line 3: <u> has no `who`, expected the id of its speaker"),
        ("<html/>", "line 1: expected <bncDoc> with a <teiHeader> in first place"),
        ("<bncDoc/>", "line 1: expected <bncDoc>"),
        (f"<bncDoc><wtext/>{HEADER}</bncDoc>", "line 1: expected <bncDoc>"),
        (f"<bncDoc>{HEADER}</bncDoc>", "line 1: expected <wtext> or <stext> after the header"),
        ("<bncDoc>\n<teiHeader/><wtext/></bncDoc>", "line 2: the header has no title"),
        (f'<bncDoc xml:id="a/../b">{HEADER}<wtext/></bncDoc>', "line 1: not well-formed XML: xml:id"),
        (f'<bncDoc xml:id="{"x" * 41}">{HEADER}<wtext/></bncDoc>', f"line 1: '{'x' * 40}' is no id of a BNC text"),
        (
f"<bncDoc>{HEADER.replace('</fileDesc>', PERSON)}<wtext/></bncDoc>",
            "line 2: <person> has no `xml:id`",
        ),
    ],
)  # fmt: skip
def test_what_the_rules_do_not_know_is_an_error(
    content: str, message: str, reading: ReadingName, source_of: Make
) -> None:
    assert f"A00.xml: {message}" in error_of(source_of(A00__xml=content), reading)


@pytest.mark.parametrize(
    "body", ["<list><pb/><head><w>H</w></head></list>", "<sp><pb/><speaker><w>S</w></speaker></sp>"]
)
def test_a_head_or_speaker_in_second_place_is_an_error_as_published_only(body: str, source_of: Make) -> None:
    assert "line 3: element <" in error_of(source_of(A00__xml=written(body)), "as_published")
    assert list(documents(source_of(A00__xml=written(body)), "corrected"))
