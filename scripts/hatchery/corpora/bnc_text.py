"""The BNC XML Edition: one document per text, as Markdown with a title, headings and named speakers.

Source: LTG-BERT, Section 3.1, and its converter (docs/papers/ltg-bert.md, "Conversion of the BNC"). `as_published`
gives that converter's bytes, as far as the golden texts and that page show; what we only concluded from its rules
is marked "inferred". `corrected` keeps the rules and mends what they damage:

- titles: without a full stop emptied, with one cut; an empty one is a `#` that no later stage takes for an article
- second heads, heads of poems, a caption that begins the text: lost; now paragraphs
- stage directions in a paragraph of a speech: lost; now blocks like those beside it
- sentences of a head (inferred: also of a label or speaker): glued; now a space between
- `- x - iv. inner`: item marks pile up; now each stands once, before its item, behind the marks of a quote around it
- `Name::`, colons after nothing (inferred), headings of hash signs only; empty names of speakers (inferred)
- `Tom' s`, `and' tis`, `U. S. A.`, `... .`, `... ?`, contractions before comma and stop
- entities cut at their semicolon (`caf&eacute; s`)
- line breaks inside a word, which end the sentence (inferred)
- `'##### Chapter'`: the heading of a division inside an item, quote or speech has their marks around it

In both readings unnamed speakers get names drawn by the text's id (published: one generator over all files, in the
order of the file system), a `<head>` of a spoken text is read on (the published converter stops there with an error),
any other unknown element or `<u>` without `who` is an error with file and line, and what is left out by rule (notes,
references, stage directions between blocks, turns without a letter) is counted.
"""

import re
from collections.abc import Callable
from pathlib import PurePosixPath

from lxml import etree

from hatchery.corpora.bnc_blocks import WrittenBody
from hatchery.corpora.bnc_header import XML_ID, Speakers, first_names, name_drawer, title_of
from hatchery.corpora.bnc_page import Page
from hatchery.corpora.bnc_parser import parse
from hatchery.corpora.bnc_spoken import SpokenBody
from hatchery.corpora.documents import RawDocument, ReaderContext, Rejections
from hatchery.corpora.packed_files import where_in
from hatchery.errors import SourceError
from hatchery.raw.registration import RawSource
from hatchery.settings.base import ReadingName

_TEXT_ID = re.compile(r"[A-Za-z0-9_.-]{1,40}")


def text_id(root: etree._Element, file: str) -> str:
    """The id of a text in the BNC, such as `A00`; the file's name where the text does not say it."""
    stored = root.get(XML_ID)
    if stored is None:
        return PurePosixPath(file).stem
    if not _TEXT_ID.fullmatch(stored):
        raise SourceError(f"line 1: {stored[:40]!r} is no id of a BNC text")
    return stored


def convert_text(
    root: etree._Element,
    draw_name: Callable[[], str],
    rejections: Rejections,
    reading: ReadingName = "corrected",
    identifier: str = "",
) -> str:
    """A text as Markdown with a blank line behind every block, also the last one, as the published converter writes it.

    `draw_name` gives the name of an unnamed speaker, `identifier` stands in for a missing title. Raises SourceError
    that begins with the line when the header or the body is missing, or an element is not expected at its place.
    """
    if root.tag != "bncDoc" or not len(root) or root[0].tag != "teiHeader":
        raise SourceError("line 1: expected <bncDoc> with a <teiHeader> in first place")
    page = Page(reading, rejections)
    page.heading(1, title_of(root[0], page, identifier))
    speakers = Speakers(root[0], page, draw_name)
    written, spoken = root.find("wtext"), root.find("stext")
    if written is not None:
        WrittenBody(page).text(written)
    elif spoken is not None:
        SpokenBody(page, speakers).text(spoken)
    else:
        raise SourceError("line 1: expected <wtext> or <stext> after the header")
    return page.text()


def read_text(source: RawSource, file: str, context: ReaderContext) -> RawDocument:
    """The document of one file; blank lines at its end are dropped. Raises SourceError naming file and line."""
    where = where_in(source, file)
    root = parse(source.read_bytes(file), where)
    try:
        identifier = text_id(root, file)
        draw = name_drawer(identifier, first_names())
        text = convert_text(root, draw, context.rejections, context.options.reading, identifier)
    except SourceError as error:
        raise SourceError(f"{where}: {error}") from error
    return RawDocument(f"{context.name}/{identifier}", context.name, text.rstrip("\n"))
