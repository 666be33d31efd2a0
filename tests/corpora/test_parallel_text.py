"""Pairs of sentences: two files, tables, and WIT3 files."""

import gzip
import io
import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hatchery.corpora.documents import RawDocument, ReaderContext, Rejections
from hatchery.corpora.readers import parallel_text, wit3
from hatchery.corpora.readers.parallel_text import EMPTY_SIDE, ParallelTextOptions
from hatchery.corpora.readers.wit3 import Wit3Options
from hatchery.errors import ConfigError, HatcheryError, SourceError
from hatchery.experiment.project import Project
from hatchery.raw.registration import RawSource
from hatchery.typed import build

Sources = Callable[..., RawSource]
PAIRS = [("Ein Hund.", "A dog."), ('Er sagt "ja".', 'He says "yes".'), ("\u00dcber Nacht", "Overnight")]
TEXTS = [f"{german}\n{english}" for german, english in PAIRS]


def documents_of(source: RawSource, rejections: Rejections | None = None, **options: Any) -> list[RawDocument]:
    return read_all(parallel_text, source, build(ParallelTextOptions, options), rejections)


def read_all(reader: Any, source: RawSource, options: Any, rejections: Rejections | None = None) -> list[RawDocument]:
    context = ReaderContext("mine", options, rejections or Rejections(), lambda paragraph: [paragraph])
    return [document for file in reader.files(source, options) for document in reader.read(source, file, context)]


def side(index: int) -> bytes:
    return "".join(f"{pair[index]}\n" for pair in PAIRS).encode()


def parquet() -> bytes:
    sink = io.BytesIO()
    rows = [{"de": german, "en": english} for german, english in PAIRS]
    pq.write_table(pa.table({"id": [1, 2, 3], "translation": rows}), sink)
    return sink.getvalue()


JSON = "".join(json.dumps({"translation": {"de": german, "en": english}}) + "\n" for german, english in PAIRS)
BARE = "".join(f"{number}\t{german}\t{english}\n" for number, (german, english) in enumerate(PAIRS))
CSV = 'de,en\nEin Hund.,A dog.\n"Er sagt ""ja"".","He says ""yes""."\n\u00dcber Nacht,Overnight\n'
TSV = CSV.replace(",", "\t")
CASES: dict[str, tuple[dict[str, bytes | str], dict[str, Any]]] = {
    "two files": ({"t__de": side(0), "t__en": side(1)}, {"files": {"any": ["t.de", "t.en"]}}),
    "two compressed files": (
        {"t__de__gz": gzip.compress(side(0)), "t__en__gz": gzip.compress(side(1))},
        {"files": {"any": ["t.de.gz", "t.en.gz"]}},
    ),
    "a table without a header": ({"t__tsv": BARE}, {"files": {"any": ["t.tsv"]}, "columns": ["2", "3"]}),
    "a table": ({"t__csv": CSV}, {"files": {"any": ["t.csv"]}, "columns": ["de", "en"]}),
    "a table with tabs": ({"t__tsv": TSV}, {"files": {"any": ["t.tsv"]}, "columns": ["de", "en"]}),
    "JSON lines": (
        {"t__jsonl": JSON},
        {"files": {"any": ["t.jsonl"]}, "columns": ["translation.de", "translation.en"]},
    ),
    "Parquet": (
        {"t__parquet": parquet()},
        {"files": {"any": ["t.parquet"]}, "columns": ["translation.de", "translation.en"]},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_every_form_gives_the_same_pairs(source_of: Sources, case: str) -> None:
    contents, options = CASES[case]
    assert [document.text for document in documents_of(source_of(**contents), **options)] == TEXTS


def test_files_say_their_splits_and_the_partner_of_each_is_known(source_of: Sources) -> None:
    source = source_of(train__de=side(0), train__en=side(1), dev__de=side(0), dev__en=side(1))
    named = {"train": ["train.de", "train.en"], "dev": ["dev.de", "dev.en"]}
    documents = documents_of(source, files=named)
    assert [document.split for document in documents] == ["train"] * 3 + ["dev"] * 3
    assert documents[4].doc_id == "mine/dev.de/0000001"
    assert parallel_text.companions(source, "dev.de", build(ParallelTextOptions, {"files": named})) == ["dev.en"]


def test_files_are_paired_by_what_the_wildcards_stand_for(source_of: Sources) -> None:
    # If files were paired by the order of their names, the second files would be swapped.
    texts = {"de__a": "a\n", "de__b": "b\n", "en__b": "B\n", "en__a": "A\n", "x-de__c": "c\n"}
    documents = documents_of(source_of(**texts), files={"any": ["de.?", "en.[!x]"]})
    assert [document.text for document in documents] == ["a\nA", "b\nB"]


def test_white_space_of_any_kind_becomes_one_space_and_never_a_line(source_of: Sources) -> None:
    source = source_of(t__de=" Ein\tHund \u2028 bellt \r\n".encode(), t__en="A  dog\u00a0barks\r\n".encode())
    assert documents_of(source, files={"any": ["t.de", "t.en"]})[0].text == "Ein Hund bellt\nA dog barks"


def test_a_pair_with_an_empty_side_is_left_out_and_counted(source_of: Sources) -> None:
    rejections = Rejections()
    source = source_of(t__de="Ein Hund.\n\nEs regnet.\n", t__en="A dog.\nA cat.\n \n")
    documents = documents_of(source, rejections, files={"any": ["t.de", "t.en"]})
    assert [document.doc_id for document in documents] == ["mine/t.de/0000000"]
    assert rejections.counts == {EMPTY_SIDE: 2}


def test_a_missing_translation_is_told_with_both_files_and_the_line(source_of: Sources) -> None:
    source = source_of(t__de="Eins.\nZwei.\nDrei.\n", t__en="One.\nTwo.\n")
    with pytest.raises(SourceError, match=r"t\.en: ends after 2 lines, but .*t\.de continues; expected a translation"):
        documents_of(source, files={"any": ["t.de", "t.en"]})


@pytest.mark.parametrize(
    ("contents", "options", "message"),
    [
        ({"t__tsv": BARE}, {"files": {"any": ["t.tsv"]}}, "needs `columns`"),
        ({"t__tsv": BARE}, {"files": {"any": ["t.tsv"]}, "columns": ["2", "4"]}, "line 1: 3 columns between tabs"),
        (
            {"t__parquet": parquet()},
            {"files": {"any": ["t.parquet"]}, "columns": ["id", "translation.en"]},
            "row 1: 'id' holds a number, expected a text",
        ),
        (
            {"t__jsonl": '{"de": "x", "en": null}\n'},
            {"files": {"any": ["t.jsonl"]}, "columns": ["de", "en"]},
            "line 1: 'en' holds null, expected a text",
        ),
        (
            {"a__de": "x\n", "a__en": "x\n", "b__de": "x\n"},
            {"files": {"any": ["*.de", "*.en"]}},
            r"files\.any: b\.de has no partner among the files that \*\.en matches",
        ),
        (
            {"train__de": "x\n", "test__de": "x\n", "train__en": "x\n", "test__en": "x\n"},
            {"files": {"test": ["test.de", "test.en"], "train": ["*.de", "*.en"]}},
            r"test\.de is matched by files\.test: test\.de and by files\.train: \*\.de; expected every file in",
        ),
    ],
)
def test_what_does_not_fit_is_named(
    source_of: Sources, contents: dict[str, bytes | str], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(HatcheryError, match=message):
        documents_of(source_of(**contents), **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"files": {"any": ["a", "b", "c"]}}, "files.any: got 3 patterns"),
        ({"files": {"any": ["a"]}, "columns": ["0", "1"]}, "columns: got '0', expected numbers from 1"),
        (
            {"files": {"dev": ["a", "b"]}, "columns": ["1", "2"]},
            "columns: got columns, but files.dev names two text files",
        ),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build(ParallelTextOptions, options)


TALK = """<url>http://talks/{id}</url>
<keywords>{words}</keywords>
<speaker>A. Speaker</speaker>
<talkid>{id}</talkid>
<title>{title}</title>
<description>{about}</description>
{lines}
<reviewer></reviewer>
<translator href="http://x">T. Ranslator</translator>
"""
GERMAN = TALK.format(id=1, words="Kunst", title="Zwei  Hunde", about="Ein Vortrag.", lines="Ein Hund & mehr.\n\n5 < 6.")
ENGLISH = TALK.format(id=1, words="art", title="Two dogs", about="A talk.", lines="A dog & more.\nAlone.\n5 < 6.")
XML = """<?xml version="1.0" encoding="UTF-8"?>
<mteval><srcset setid="dev" srclang="x"><doc docid="1"><talkid>1</talkid>
<title>Not scored</title>
<seg id="1"> {first} </seg>
<seg id="2">{second}</seg>
</doc></srcset></mteval>
"""


def talks_of(source: RawSource, rejections: Rejections | None = None, **names: Any) -> list[RawDocument]:
    return read_all(wit3, source, build(Wit3Options, {"files": names}), rejections)


def test_sentences_titles_and_descriptions_are_pairs_and_what_a_talk_is_about_is_left_out(source_of: Sources) -> None:
    source, rejections = source_of(t__de=GERMAN, t__en=ENGLISH), Rejections()
    found = talks_of(source, rejections, any=["t.de", "t.en"])
    assert [document.text.split("\n") for document in found] == [
        ["Zwei Hunde", "Two dogs"],
        ["Ein Vortrag.", "A talk."],
        ["Ein Hund & mehr.", "A dog & more."],
        ["5 < 6.", "5 < 6."],
    ]
    assert {document.split for document in found} == {None}
    assert rejections.counts == {EMPTY_SIDE: 1}


def test_segments_of_xml_are_the_sentences_of_a_held_out_file(source_of: Sources) -> None:
    source = source_of(
        dev__de__xml=XML.format(first="Ein &amp; zwei.", second="&quot;Ja&quot;"),
        dev__en__xml=XML.format(first="One &amp; two.", second="&quot;Yes&quot;"),
    )
    found = talks_of(source, test=["*.de.xml", "*.en.xml"])
    assert [document.text for document in found] == ["Ein & zwei.\nOne & two.", '"Ja"\n"Yes"']
    assert {document.split for document in found} == {"test"}


def test_a_language_that_goes_on_is_told_with_the_file_that_ended(source_of: Sources) -> None:
    source = source_of(t__de="Eins.\n", t__en="One.\nTwo.\n")
    with pytest.raises(SourceError, match=r"t\.de: ends after 1 sentences, but the other language continues"):
        talks_of(source, train=["t.de", "t.en"])


def test_a_segment_over_two_lines_is_told_with_its_line(source_of: Sources) -> None:
    source = source_of(t__de__xml="<seg id='1'>Eins\n</seg>\n", t__en__xml="<seg id='1'>One</seg>\n")
    with pytest.raises(SourceError, match=r"t\.de\.xml: line 1: a <seg> element does not end in this line"):
        talks_of(source, test=["t.de.xml", "t.en.xml"])


def test_the_corpus_of_iwslt14_reads_the_files_of_the_release(source_of: Sources, repository: Any) -> None:
    block = Project(repository / "config").corpus("iwslt14_de_en_wit3")
    options = block.sources[0].options
    names = ["train.tags.de-en.de", "train.tags.de-en.en"]
    held_out = [f"IWSLT14.TED.{part}.de-en.{side}.xml" for part in ("dev2010", "tst2012") for side in ("de", "en")]
    source = source_of(**{name.replace(".", "__"): "x\n" for name in (*names, *held_out)})
    assert wit3.files(source, options) == [names[0], *held_out[::2]]
    assert [wit3.companions(source, name, options) for name in wit3.files(source, options)] == [
        [names[1]],
        *([n] for n in held_out[1::2]),
    ]
