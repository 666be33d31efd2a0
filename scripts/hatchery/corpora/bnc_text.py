"""The BNC XML Edition: one document per text, as Markdown with a title, headings and named speakers.

Source: LTG-BERT, Section 3.1, and its converter (docs/papers/ltg-bert.md, "Conversion of the BNC" and "Elements of the
BNC"). The option `reading` has two values. `as_published` reproduces the converter's output byte by byte. This output
is known from these sections of the page and from the texts in `tests/golden`; behaviour that we concluded only from
the converter's rules is called "inferred". `corrected` fixes these errors of the converter:

- a title without a full stop is emptied, and a title with a full stop is truncated; an empty title is written as `#`,
  which no later stage recognises as an article
- second headings, headings of poems, and a caption at the beginning of a text are lost; `corrected` writes them as
  paragraphs
- stage directions in a paragraph of a speech are lost; `corrected` writes each direction as a separate block
- sentences of a heading (inferred: also of a label or speaker) are joined without a space
- the marks of nested list items accumulate (`- x - iv. inner`); `corrected` writes the mark of each item once, after
  the marks of a quote around the list
- `Name::`, colons without text before them (inferred), headings that consist of hash signs, and empty names of speakers
  (inferred) are written
- `Tom' s`, `and' tis`, `U. S. A.`, `... .`, `... ?` contain wrong spaces, as do contractions before a comma or full
  stop
- entities are split at their semicolon (`caf&eacute; s`)
- a line break inside a word ends the sentence (inferred)
- if an item, quote or speech contains a division, the marks of the item, quote or speech are written around the heading
  of the division (`'##### Chapter'`), and again without text at the end of the division (`>`, `-`, `BOB: ''`)

With both values of `reading`, the names of unnamed speakers are drawn at random, with the text's identifier as seed.
(The published converter instead draws the names of all files from one generator, in the order of the file system.) A
`<head>` in a spoken text is allowed; the published converter stops at this element with an error. An element that the
rules do not allow at its position, or a `<u>` without `who`, is an error with file and line. Elements that the rules
leave out (notes, references, stage directions between blocks, turns without a letter or digit) are counted. The first
names are our own list, because the published list is not available.

In spoken texts, pauses, noises and unclear passages outside sentences are dropped. A turn is kept if it contains a
letter or digit after cleaning, including the letters of `[UNK]`. In spoken texts, a `<head>` at the beginning of a
division is the heading of the division; any other `<head>` is kept only by `corrected`.
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
    """Return a BNC text as Markdown. As in the output of LTG-BERT's published converter, a blank line follows every
    block, including the last block.

    `draw_name` returns a name for an unnamed speaker; with `reading: corrected`, `identifier` replaces a title without
    words. Raises SourceError, which begins with the line number, if the header or the body is missing, or if an element
    is at a wrong position.
    """
    if root.tag != "bncDoc" or not len(root) or root[0].tag != "teiHeader":
        raise SourceError("line 1: expected <bncDoc> with <teiHeader> as its first child")
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
    """Return the document of one file; blank lines at the end of the document are removed. Raises SourceError, naming
    file and line, for a text that cannot be converted.
    """
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
    """Return the purely alphabetic names among `lines`, capitalised."""
    stripped = [line.strip() for line in lines]
    return tuple(name[0].upper() + name[1:] for name in stripped if name.isalpha())


@cache
def first_names() -> tuple[str, ...]:
    """Return the first names for unnamed speakers, one per line in `first_names.txt`."""
    return usable_names((Path(__file__).parent / "first_names.txt").read_text(encoding="utf-8").splitlines())


def name_drawer(seed: str, names: Sequence[str]) -> Callable[[], str]:
    """Return a function that draws names with replacement; the draws depend on `seed` and `names` only."""
    rng = random.Random(seed)
    return lambda: rng.choice(names)


# Elements of written texts whose content is left out if the elements are between text blocks.
_SILENT = frozenset({"note", "bibl", "pb", "gap"})


class WrittenBody:
    """Converts the body of one written text to text blocks, and adds these to a `Page`."""

    def __init__(self, page: Page) -> None:
        self._page = page

    def text(self, element: etree._Element) -> None:
        """Write the children of `wtext`. LTG-BERT's converter loses a caption that is the first child; with `reading:
        corrected`, this caption is written as a paragraph.
        """
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
        # If a list item or quotation contains a division, the published converter also writes the marks of the item or
        # quotation around the division's heading.
        around = ("", "") if self._page.corrected else (prefix, suffix)
        self._page.division_heading(division, "" if own is None else number, *around)
        for child in children_after_name(division):
            self._block(child, prefix, suffix, number)
        if not self._page.corrected and (prefix or suffix):
            # In the published converter's output, a division ends with a block that contains only the marks around the
            # division.
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
                # Unlike the published converter, write second and later heads, and heads of poems, as paragraphs.
                self._paragraph(element, prefix, suffix, number)
            case tag if tag in _SILENT or tag == "head":
                self._page.leave_out(element)
            case "stage" if not suffix.startswith("'"):
                self._page.leave_out(element, "stage direction outside a speech left out")
            case "stage" if self._page.corrected:
                # In a paragraph of a speech, a stage direction is a block with the speaker's name and without the
                # quotation marks.
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
        """Count a label or speaker as left out if its name occurs in no text block with the index `start` or a higher
        index.
        """
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
        """Insert the mark of a list item into the item's first block that is not a heading. The item's blocks begin at
        the index `start`. The mark follows the marks of quotes (`>`) with which `prefix` begins. Only used with
        `reading: corrected`.
        """
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


# Elements of spoken texts whose content is left out if the elements are outside sentences.
_UNHEARD = frozenset({"event", "pause", "shift", "trunc", "unclear", "vocal", "align", "gap"})


class SpokenBody:
    """Converts the turns of one spoken text to text blocks, which it adds to a `Page`."""

    def __init__(self, page: Page, name_of: Callable[[str], str]) -> None:
        self._page = page
        self._name_of = name_of

    def text(self, element: etree._Element) -> None:
        """Write the children of `stext`."""
        for child in element:
            self._block(child)

    def _block(self, element: etree._Element) -> None:
        match element.tag:
            case "u":
                self._utterance(element)
            case "div":
                # Unlike in written texts, the heading of a division does not include the number of the enclosing
                # division.
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
        # Draw the name before deciding whether the turn is dropped, so that a dropped turn does not shift the drawn
        # names.
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
