"""For every reader, malicious or damaged input is reported in one line with its position, in linear time."""

import json
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import forked
import pyarrow.parquet as pq
import pytest
from stage_command import stage_command

from hatchery.artifacts.checksums import digest, sha256_file
from hatchery.corpora.documents import RawDocument, ReaderContext, Rejections
from hatchery.corpora.readers.bnc_xml import BncOptions, files, read
from hatchery.errors import SourceError
from hatchery.raw.registration import RawSource, register_source
from hatchery.settings.base import ReadingName

HEADER = "<teiHeader><fileDesc><sourceDesc><bibl><title>T</title></bibl></sourceDesc></fileDesc></teiHeader>"
SENTENCE = "<s><w>Hello</w></s>"
BOMB = (
    '<!DOCTYPE b [\n<!ENTITY a0 "' + "ha" * 500 + '">'
    + "".join(f'<!ENTITY a{level + 1} "{f"&a{level};" * 20}">' for level in range(9))
    + "]>\n"
)  # fmt: skip


def written(body: str, declaration: str = "") -> str:
    return f"{declaration}<bncDoc>{HEADER}\n<wtext>\n{body}\n</wtext></bncDoc>"


def spoken(body: str) -> str:
    return f"<bncDoc>{HEADER}\n<stext>\n{body}\n</stext></bncDoc>"


GOOD = written("<p><s><w>Hello </w><w>there</w><c>.</c></s></p>")
RAW_TEXT = {"format": "json_lines", "files": ["*.jsonl"]}


@dataclass(frozen=True)
class Finished:
    """Exit status and standard error of a command."""

    code: int
    stderr: str

    @property
    def error(self) -> str:
        """Return the error line, after checking that there is exactly one and no traceback."""
        assert self.code == 1, self.stderr
        assert "Traceback" not in self.stderr
        lines = [line for line in self.stderr.splitlines() if line.startswith("error: ")]
        assert len(lines) == 1, self.stderr
        assert self.stderr.splitlines()[-1] == lines[0]
        return lines[0]


Command = Callable[..., Finished]


@pytest.fixture
def command() -> Command:
    def run(name: str, settings: dict[str, Any], output: Path, **given: Any) -> Finished:
        finished = forked.run(
            stage_command(name, settings, output, **given),
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        return Finished(finished.returncode, finished.stderr)

    return run


def convert(
    command: Command,
    manifest: Path,
    output: Path,
    reader: str = "bnc_xml",
    options: dict[str, Any] | None = None,
    workers: int = 1,
) -> Finished:
    settings = {"sources": [{"name": "raw", "reader": reader, "options": options or {}}]}
    return command("convert_corpus", settings, output / "manifest.json", source={"raw": manifest}, workers=workers)


def assert_nothing_half_written(output: Path) -> None:
    """Check that the folder contains only finished parts, each with its recorded size and readable to the end."""
    if not output.exists():
        return
    assert [path.name for path in output.iterdir() if path.name != ".parts"] == []
    parts = list((output / ".parts").iterdir()) if (output / ".parts").exists() else []
    assert not [path for path in parts if path.suffix == ".partial"]
    facts = {path.stem: json.loads(path.read_text()) for path in parts if path.suffix == ".json"}
    assert {path.name for path in parts if path.suffix != ".json"} == set(facts)
    for name, known in facts.items():
        assert known["sha256"] == digest([sha256_file(output / ".parts" / name), known["facts"]])
        assert pq.read_table(output / ".parts" / name).num_rows == known["facts"]["documents"]


def made_source(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        path = folder / "raw" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    register_source("raw", folder / "raw", folder / "raw.json")
    return folder / "raw.json"


BAD_FILES: dict[str, tuple[str, dict[str, Any], str, bytes, str]] = {
    "truncated XML": ("bnc_xml", {}, "B.xml", GOOD.encode()[:-30], "line 3: not well-formed XML"),
    "text in another encoding": ("plain_text", {}, "b.txt", b"Good.\ncaf\xe9\n", "byte 9 is not utf-8"),
    "JSON lines cut": ("raw_text", RAW_TEXT, "b.jsonl", b'{"text": "Good."}\n{"text": "Tru', "line 2"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_file_among_good_ones_is_told_by_file_and_place(case: str, command: Command, tmp_path: Path) -> None:
    reader, options, name, content, place = BAD_FILES[case]
    good = {"B.xml": GOOD.encode(), "b.txt": b"Good. Text.\n", "b.jsonl": b'{"text": "Good."}\n'}[name]
    manifest = made_source(tmp_path, {f"A{name}": good, name: content, f"C{name}": good})
    error = convert(command, manifest, tmp_path / "out", reader, options).error
    assert f"{name}: {place}" in error
    assert_nothing_half_written(tmp_path / "out")


def test_parts_that_were_finished_before_the_error_are_kept_whole(command: Command, tmp_path: Path) -> None:
    # With two processes, the large file is split into two pieces; the other file is a separate task.
    large = b"One sentence of many" * 840_000 + b"."
    manifest = made_source(tmp_path, {"a.txt": large, "b.txt": b"caf\xe9"})
    for workers, finished in ((1, 1), (2, 2)):
        output = tmp_path / f"out{workers}"
        assert "b.txt: byte 3 is not utf-8" in convert(command, manifest, output, "plain_text", workers=workers).error
        assert_nothing_half_written(output)
        assert len(list((output / ".parts").glob("*.json"))) == finished


def incompressible(megabytes: float, seed: int) -> bytes:
    words = random.Random(seed)
    return " ".join(f"{words.getrandbits(128):032x}." for _ in range(int(megabytes * 1e6 / 34))).encode()


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(("megabytes", "stage"), [(4, "while parts are written"), (0.8, "while shards are written")])
def test_a_full_disk_is_told_and_leaves_nothing_half_written(
    megabytes: float, stage: str, workers: int, command: Command, tmp_path: Path, small_disk: Path
) -> None:
    manifest = made_source(tmp_path, {f"{n}.txt": incompressible(megabytes / 2, n) for n in range(2)})
    error = convert(command, manifest, small_disk / "out", "plain_text", workers=workers).error
    assert "No space left on device" in error
    assert str(small_disk) in error
    assert_nothing_half_written(small_disk / "out")


Make = Callable[..., RawSource]


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
        # libxml2 does not read UTF-32, so the message may be about the encoding.
        assert "A00.xml: line 1: " in message or "A00.xml: line 2: " in message
    else:
        assert "A00.xml: line 2: the text declares XML entities" in message


def test_entities_hidden_by_utf_7_are_refused(source_of: Make) -> None:
    hidden = '+ADwAIQ-DOCTYPE a +AFsAPAAh-ENTITY c "ha"+AD4AXQA+-'
    message = error_of(source_of(A00__xml=f'<?xml version="1.0" encoding="UTF-7"?>{hidden}<a>&c;</a>'))
    assert "A00.xml: line 1: " in message


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


def test_comments_processing_instructions_and_cdata_leave_no_trace(source_of: Make) -> None:
    body = "<!-- <p> --><p><s><w>Hel<!-- x -->l<?php y ?><![CDATA[o &]]></w></s></p>"
    assert [document.text for document in documents(source_of(A00__xml=written(body)))] == ["# T\n\nHello &"]


@pytest.mark.parametrize("reading", ["as_published", "corrected"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (written("<foreign/>"), "line 3: element <foreign> is not expected in <wtext>"),
        (written("<p>\n<w>Loose</w></p>"), "line 4: element <w> is not expected in <p>"),
        (written('<div level="7000000000"/>'), "line 3: level='7000000000' of a <div>, expected a number from 1 to 20"),
        (spoken('<u who="P1">\n<p/></u>'), "line 4: element <p> is not expected in <u>"),
        (spoken(f"<u>{SENTENCE}</u>"), "line 3: <u> has no `who`, expected the id of its speaker"),
        ("<html/>", "line 1: expected <bncDoc> with <teiHeader> as its first child"),
        (f"<bncDoc>{HEADER}</bncDoc>", "line 1: expected <wtext> or <stext> after the header"),
        ("<bncDoc>\n<teiHeader/><wtext/></bncDoc>", "line 2: the header has no title"),
        (f'<bncDoc xml:id="a/../b">{HEADER}<wtext/></bncDoc>', "line 1: not well-formed XML: xml:id"),
        (f'<bncDoc xml:id="{"x" * 41}">{HEADER}<wtext/></bncDoc>',
            f"line 1: got the id '{'x' * 40}', expected the id of a BNC text"
        ),
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
