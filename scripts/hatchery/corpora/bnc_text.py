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
- `'##### Chapter'`: the heading of a division inside an item, quote or speech has their marks around it, and at its end
  they stand alone (`>`, `-`, `BOB: ''`)

In both readings unnamed speakers get names drawn by the text's id (published: one generator over all files, in the
order of the file system), a `<head>` of a spoken text is read on (the published converter stops there with an error),
any other unknown element or `<u>` without `who` is an error with file and line, and what is left out by rule (notes,
references, stage directions between blocks, turns without a letter) is counted. The list of first names is our own (the
published one is missing).

Each element of the body has one method; an element that the rules do not know at its place ends the reading with an
error that names it and its line. In spoken texts pauses, noises and what could not be heard outside sentences leave no
trace; a turn is kept when it has a letter or digit after cleaning, and the letters of `[UNK]` count. A `<head>` there
names the division in first place, and only `corrected` keeps a later one.
"""

import random
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from lxml import etree

from hatchery.corpora.bnc_page import (
    Page,
    Speakers,
    children_after_name,
    is_caption,
    is_heading,
    line_of,
    parse,
    text_id,
    title_of,
    unexpected,
)
from hatchery.corpora.documents import RawDocument, ReaderContext, Rejections
from hatchery.corpora.raw_files import where_in
from hatchery.errors import SourceError
from hatchery.raw.registration import RawSource
from hatchery.settings.base import ReadingName


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


# Left out wherever blocks may stand.
_SILENT = frozenset({"note", "bibl", "pb", "gap"})


class WrittenBody:
    """Writes the blocks of one written text on a page."""

    def __init__(self, page: Page) -> None:
        self._page = page

    def text(self, element: etree._Element) -> None:
        """The children of `wtext`. Published, a caption in first place is lost; mended, it is a paragraph."""
        for index, child in enumerate(element):
            if index == 0 and is_caption(child) and not self._page.corrected:
                self._page.leave_out(child, "caption in first place left out")
            else:
                self._block(child, "", "", "")

    def _division(self, division: etree._Element, prefix: str, suffix: str, parent: str) -> None:
        own = division.get("n")
        if self._page.corrected:
            own = own or None
        number = parent if own is None else f"{parent}.{own}" if parent else own
        # As published, what stands around a division (the mark of an item, quotation marks) stands around its heading.
        around = ("", "") if self._page.corrected else (prefix, suffix)
        self._page.division_heading(division, "" if own is None else number, *around)
        for child in children_after_name(division):
            self._block(child, prefix, suffix, number)
        if not self._page.corrected and (prefix or suffix):
            # Published, a division ends with an empty block, of which only these are left.
            self._page.blocks.append(f"{prefix}{suffix}")

    def _block(self, element: etree._Element, prefix: str, suffix: str, number: str) -> None:
        match element.tag:
            case "p" | "lg" | "l":
                self._paragraph(element, prefix, suffix, number)
            case "quote":
                self._paragraph(element, "> " + prefix, suffix, number)
            case "list":
                self._list(element, prefix, suffix, number)
            case "sp":
                self._speech(element, prefix, suffix, number)
            case "div":
                self._division(element, prefix, suffix, number)
            case "head" if self._page.corrected:
                # Second and later heads, and the heads of poems, are lost in the published reading.
                self._paragraph(element, prefix, suffix, number)
            case tag if tag in _SILENT or tag == "head":
                self._page.leave_out(element)
            case "stage" if not suffix.startswith("'"):
                self._page.leave_out(element, "stage direction outside a speech left out")
            case "stage" if self._page.corrected:
                # In a paragraph of a speech: a block with the name and without the quotation marks.
                self._paragraph(element, prefix.removesuffix("'"), suffix.removeprefix("'"), number)
            case "stage":
                self._page.leave_out(element, "stage direction in a paragraph of a speech left out")
            case _:
                raise unexpected(element)

    def _paragraph(self, element: etree._Element, prefix: str, suffix: str, number: str) -> None:
        sentences: list[str] = []
        for child in element:
            if child.tag == "s":
                sentences.append(self._page.sentence(child))
                continue
            self._page.block(sentences, prefix, suffix)
            sentences = []
            self._block(child, prefix, suffix, number)
        self._page.block(sentences, prefix, suffix)

    def _list(self, element: etree._Element, prefix: str, suffix: str, number: str) -> None:
        label: etree._Element | None = None
        for index, child in enumerate(element):
            match child.tag:
                case "head" if index == 0 or self._page.corrected:
                    if title := self._page.title_with_colon(child):
                        self._page.blocks.append(f"{prefix}{title}{suffix}")
                case "label":
                    self._count_unused(label, len(self._page.blocks))
                    label = child
                case "item":
                    self._item(child, label, prefix, suffix, number)
                    label = None
                case tag if tag in _SILENT:
                    self._page.leave_out(child)
                case _:
                    raise unexpected(child)
        self._count_unused(label, len(self._page.blocks))

    def _count_unused(self, name: etree._Element | None, start: int) -> None:
        """Count a label or speaker that none of the blocks from number `start` on shows."""
        if name is not None and not any(self._page.name(name) in block for block in self._page.blocks[start:]):
            self._page.leave_out(name, f"<{name.tag}> without text behind it left out")

    def _item(self, item: etree._Element, label: etree._Element | None, prefix: str, suffix: str, number: str) -> None:
        name = "" if label is None else self._page.name(label)
        mark = f"- {name} " if name else "- "
        start = len(self._page.blocks)
        if self._page.corrected:
            self._paragraph(item, prefix, suffix, number)
            self._mark_first_block(mark, prefix, start)
        else:
            self._paragraph(item, mark + prefix, suffix, number)
        self._count_unused(label, start)

    def _mark_first_block(self, mark: str, prefix: str, start: int) -> None:
        """Mended: the mark of an item stands once, on its first block, behind the marks of quotes around the list."""
        for index, block in enumerate(self._page.blocks[start:], start):
            if not is_heading(block):
                quoted = len(prefix) - len(prefix.lstrip("> "))
                self._page.blocks[index] = block[:quoted] + mark + block[quoted:]
                return

    def _speech(self, element: etree._Element, prefix: str, suffix: str, number: str) -> None:
        speaker, name, start = None, "", len(self._page.blocks)
        for index, child in enumerate(element):
            match child.tag:
                case "speaker" if index == 0 or self._page.corrected:
                    self._count_unused(speaker, start)
                    speaker, name, start = child, self._page.title_with_colon(child), len(self._page.blocks)
                case "stage":
                    self._paragraph(child, f"{prefix}{name}", suffix, number)
                case "p" | "l":
                    self._paragraph(child, f"{prefix}{name}'", f"'{suffix}", number)
                case tag if tag in _SILENT:
                    self._page.leave_out(child)
                case _:
                    raise unexpected(child)
        self._count_unused(speaker, start)


_UNHEARD = frozenset({"event", "pause", "shift", "trunc", "unclear", "vocal", "align", "gap"})


class SpokenBody:
    """Writes the turns of one spoken text on a page."""

    def __init__(self, page: Page, name_of: Callable[[str], str]) -> None:
        self._page = page
        self._name_of = name_of

    def text(self, element: etree._Element) -> None:
        """The children of `stext`."""
        for child in element:
            self._block(child)

    def _block(self, element: etree._Element) -> None:
        match element.tag:
            case "u":
                self._utterance(element)
            case "div":
                # Without the number of the division around it, unlike in written texts.
                self._page.division_heading(element, element.get("n", ""))
                for child in children_after_name(element):
                    self._block(child)
            case "head" if self._page.corrected:
                self._page.block([self._page.name(element)], "", "")
            case tag if tag in _UNHEARD or tag == "head":
                self._page.leave_out(element)
            case _:
                raise unexpected(element)

    def _utterance(self, element: etree._Element) -> None:
        who = element.get("who")
        if who is None:
            raise SourceError(f"{line_of(element)}: <u> has no `who`, expected the id of its speaker")
        # The name is asked for before the turn is judged, so that a dropped turn does not shift the drawn names.
        name = self._name_of(who)
        sentences = []
        for child in element:
            if child.tag == "s":
                sentences.append(self._page.sentence(child))
            elif child.tag in _UNHEARD:
                self._page.leave_out(child)
            else:
                raise unexpected(child)
        if not self._page.block(sentences, f"{name}: '", "'", keep=lambda text: any(map(str.isalnum, text))):
            self._page.leave_out(element, "turn without a letter or digit left out")
