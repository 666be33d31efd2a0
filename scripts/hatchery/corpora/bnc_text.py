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
references, stage directions between blocks, turns without a letter) is counted. The list of first names is our own (the
published one is missing).
"""

import random
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path, PurePosixPath

from lxml import etree

from hatchery.corpora.bnc_blocks import SpokenBody, WrittenBody
from hatchery.corpora.bnc_page import Page
from hatchery.corpora.bnc_parser import line_of, parse
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
        SpokenBody(page, speakers.name).text(spoken)
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


XML_ID = "{http://www.w3.org/XML/1998/namespace}id"
_STATEMENT = re.compile(r"\s*\bSample containing about\b.*", re.DOTALL)


def usable_names(lines: Sequence[str]) -> tuple[str, ...]:
    """The purely alphabetic names among `lines`, with a capital."""
    stripped = [line.strip() for line in lines]
    return tuple(name[0].upper() + name[1:] for name in stripped if name.isalpha())


@cache
def first_names() -> tuple[str, ...]:
    """The names for unnamed speakers, one per line in `first_names.txt`."""
    return usable_names((Path(__file__).parent / "first_names.txt").read_text(encoding="utf-8").splitlines())


def name_drawer(seed: str, names: Sequence[str]) -> Callable[[], str]:
    """Draws names, with replacement; the draws depend on `seed` and `names` only."""
    rng = random.Random(seed)
    return lambda: rng.choice(names)


def title_of(header: etree._Element, page: Page, text_id: str = "") -> str:
    """The title without the statement about the sample. Raises SourceError when the header has none.

    Mended: the statement is found by its words, so that a title without a full stop is not emptied nor one with a stop
    cut; where no title has a word, `text_id` stands in, because a text without one is not recognised as an article.
    """
    source = header.find("fileDesc/sourceDesc")
    children = [] if source is None else list(source)
    own = None
    if len(children) == 1 and children[0].tag == "bibl" and len(children[0]) and children[0][0].tag == "title":
        own = children[0][0].text or ""
    statement = header.find("fileDesc/titleStmt")
    has_statement = statement is not None and len(statement) and statement[0].tag == "title"
    if own is None and not has_statement:
        raise SourceError(f"{line_of(header)}: the header has no title")
    stated = (statement[0].text or "") if has_statement else ""
    if not page.corrected:
        return _finished(".".join(stated.split(".")[:-1]) if own is None else own, page)
    return _finished(own or "", page) or _finished(_STATEMENT.sub("", stated), page) or text_id


def _finished(title: str, page: Page) -> str:
    return page.clean(title.strip().removesuffix("."))


class Speakers:
    """Names by the value of `@who`. `draw` gives a random first name; who is unlisted gets one at the first turn."""

    def __init__(self, header: etree._Element, page: Page, draw: Callable[[], str]) -> None:
        self._draw = draw
        self._page = page
        self._names: dict[str, str] = {}
        for person in header.iterfind("profileDesc/particDesc/person"):
            identifier = person.get(XML_ID)
            if identifier is None:
                raise SourceError(f"{line_of(person)}: <person> has no `xml:id`")
            self._names[identifier] = self._name(person)

    def _name(self, person: etree._Element) -> str:
        stored = person.findtext("persName")
        if stored is None or (self._page.corrected and not stored.strip()):
            return self._draw()
        name = self._page.clean(" ".join(word[0].upper() + word[1:] for word in stored.split()))
        return "[UNK]" if "unknown" in name.lower() else name

    def name(self, who: str) -> str:
        """The name of a speaker, remembered for the rest of the text."""
        if who not in self._names:
            self._names[who] = self._draw()
        return self._names[who]
