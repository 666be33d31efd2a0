"""The BNC XML Edition: one document per text, as Markdown with a title, headings and named speakers.

Source: LTG-BERT's reference, section 1 (the converter of Samuel et al. 2023). The parser never loads a document type,
never opens another file or address, and refuses texts that declare entities.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lxml import etree

from hatchery.corpora.bnc_blocks import Body
from hatchery.corpora.bnc_header import Speakers, first_names, title_of
from hatchery.corpora.documents import RawDocument, Rejections
from hatchery.corpora.text_files import matching_names, where_in
from hatchery.errors import CorpusError, SourceError
from hatchery.storage.sources import RawSource


@dataclass(frozen=True)
class BncOptions:
    """Which texts are read."""

    files: str = "*.xml"
    """Shell pattern of the texts inside the source."""


def parse(content: bytes, where: str) -> etree._Element:
    """The root of an XML document. Raises SourceError naming `where` and the line when it is damaged or hostile."""
    if b"<!ENTITY" in content:
        raise SourceError(f"{where}: the text declares XML entities, which this reader refuses")
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(content, parser)
    except etree.XMLSyntaxError as error:
        raise SourceError(f"{where}: not well-formed XML at line {error.lineno}: {error.msg}") from error
    document_type = root.getroottree().docinfo.internalDTD
    if document_type is not None and next(document_type.iterentities(), None) is not None:
        raise SourceError(f"{where}: the text declares XML entities, which this reader refuses")
    return root


def convert_text(root: etree._Element, draw_name: Callable[[], str], rejections: Rejections) -> str:
    """A text as Markdown. `draw_name` gives the name of an unnamed speaker.

    Raises CorpusError when the header or the body is missing.
    """
    header = root.find("teiHeader")
    if root.tag != "bncDoc" or header is None or root[0] is not header:
        raise CorpusError("expected <bncDoc> with a <teiHeader> in first place")
    body = Body(Speakers(header, draw_name), rejections)
    body.heading(1, title_of(header))
    written, spoken = root.find("wtext"), root.find("stext")
    if written is not None:
        body.written(written)
    elif spoken is not None:
        body.spoken(spoken)
    else:
        raise CorpusError("expected <wtext> or <stext> after the header")
    return body.text()


def _name_drawer(seed: str) -> Callable[[], str]:
    """Draws names for one text; seeded by it, so that they do not depend on which other texts are there."""
    rng = random.Random(seed)
    return lambda: first_names()[int(rng.random() * len(first_names()))]


def read(source: RawSource, name: str, options: BncOptions, rejections: Rejections) -> Iterator[RawDocument]:
    """One document per text, in the order of the file names. `name` is the source's name in the corpus."""
    for file in matching_names(source, (options.files,)):
        where = where_in(source, file)
        root = parse(source.read_bytes(file), where)
        try:
            text = convert_text(root, _name_drawer(f"{name}/{file}"), rejections)
        except CorpusError as error:
            raise CorpusError(f"{where}: {error}") from error
        yield RawDocument(f"{name}/{file.removesuffix('.xml')}", name, text)
