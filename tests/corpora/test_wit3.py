"""The files of WIT3: sentences between tags and segments of XML become pairs; what does not fit is one clear line."""

from collections.abc import Callable
from typing import Any

import pytest

from hatchery.corpora.documents import RawDocument, ReaderContext, Rejections
from hatchery.corpora.readers.wit3 import Wit3Options, beside, files, read
from hatchery.errors import ConfigError, SourceError
from hatchery.experiment.project import Project
from hatchery.raw.registration import RawSource
from hatchery.typed import build

Sources = Callable[..., RawSource]
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


def documents_of(source: RawSource, rejections: Rejections | None = None, **names: Any) -> list[RawDocument]:
    options = build(Wit3Options, {"files": names})
    context = ReaderContext("talks", options, rejections or Rejections(), lambda paragraph: [paragraph])
    return [document for file in files(source, options) for document in read(source, file, context)]


def test_sentences_titles_and_descriptions_are_pairs_and_what_a_talk_is_about_is_left_out(source_of: Sources) -> None:
    source, rejections = source_of(t__de=GERMAN, t__en=ENGLISH), Rejections()
    found = documents_of(source, rejections, any=["t.de", "t.en"])
    assert [document.text.split("\n") for document in found] == [
        ["Zwei Hunde", "Two dogs"],
        ["Ein Vortrag.", "A talk."],
        ["Ein Hund & mehr.", "A dog & more."],
        ["5 < 6.", "5 < 6."],
    ]
    assert {document.split for document in found} == {None}
    assert rejections.counts == {"a side without text": 1}


def test_segments_of_xml_are_the_sentences_of_a_held_out_file(source_of: Sources) -> None:
    source = source_of(
        dev__de__xml=XML.format(first="Ein &amp; zwei.", second="&quot;Ja&quot;"),
        dev__en__xml=XML.format(first="One &amp; two.", second="&quot;Yes&quot;"),
    )
    found = documents_of(source, test=["*.de.xml", "*.en.xml"])
    assert [document.text for document in found] == ["Ein & zwei.\nOne & two.", '"Ja"\n"Yes"']
    assert {document.split for document in found} == {"test"}


def test_a_language_that_goes_on_is_told_with_the_file_that_ended(source_of: Sources) -> None:
    source = source_of(t__de="Eins.\n", t__en="One.\nTwo.\n")
    with pytest.raises(SourceError, match=r"t\.de: ends after 1 sentences, but the other language goes on"):
        documents_of(source, train=["t.de", "t.en"])


def test_a_segment_over_two_lines_is_told_with_its_line(source_of: Sources) -> None:
    source = source_of(t__de__xml="<seg id='1'>Eins\n</seg>\n", t__en__xml="<seg id='1'>One</seg>\n")
    with pytest.raises(SourceError, match=r"t\.de\.xml: line 1: a segment that does not end in its line"):
        documents_of(source, test=["t.de.xml", "t.en.xml"])


@pytest.mark.parametrize("names", [["t.de"], ["t.de", "t.en", "t.fr"]])
def test_other_than_two_files_are_refused(names: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"files\.train: .*2"):
        build(Wit3Options, {"files": {"train": names}})


def test_the_corpus_of_iwslt14_reads_the_files_of_the_release(source_of: Sources, repository: Any) -> None:
    block = Project(repository / "config").corpus("iwslt14_de_en_wit3")
    options = block.sources[0].options
    names = ["train.tags.de-en.de", "train.tags.de-en.en"]
    held_out = [f"IWSLT14.TED.{part}.de-en.{side}.xml" for part in ("dev2010", "tst2012") for side in ("de", "en")]
    source = source_of(**{name.replace(".", "__"): "x\n" for name in (*names, *held_out)})
    assert files(source, options) == [names[0], *held_out[::2]]
    assert [beside(source, name, options) for name in files(source, options)] == [
        [names[1]],
        *([n] for n in held_out[1::2]),
    ]
