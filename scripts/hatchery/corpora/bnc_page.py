"""The Markdown page that a BNC text becomes: blocks of cleaned sentences, headings, and what was left out.

Source: docs/papers/ltg-bert.md, "Elements of the BNC". A block is prefix, sentences (one per line) and suffix; the
prefix stands once, on the first line. What is left out although it holds words is counted, never silently lost.
"""

import re
from collections.abc import Callable, Iterator, Sequence

from lxml import etree

from hatchery.corpora.bnc_parser import line_of
from hatchery.corpora.cleaning import BNC_PUBLISHED_RULES, BNC_RULES, clean
from hatchery.corpora.documents import Rejections
from hatchery.errors import SourceError
from hatchery.settings.base import ReadingName

_DEEPEST_DIVISION = 20
_BLANK_LINES = re.compile(r"\n{3,}")


def characters(element: etree._Element, between: str = "") -> str:
    """The characters of the words and marks below an element, `[UNK] ` for each gap and unclear passage.

    Only the direct text of `w` and `c` counts; `between` follows every sentence inside the element.
    """
    pieces = []
    for child in element:
        tag = child.tag
        if tag == "w" or tag == "c":
            if text := child.text:
                pieces.append(text)
        elif tag == "gap" or tag == "unclear":
            pieces.append("[UNK] ")
        else:
            pieces.append(characters(child, between))
            if tag == "s":
                pieces.append(between)
    return "".join(pieces)


def is_caption(element: etree._Element) -> bool:
    """Whether the element is a paragraph of type `caption:...`."""
    return element.tag == "p" and element.get("type", "").startswith("caption:")


def is_heading(block: str) -> bool:
    """Whether a block of a page is a heading."""
    return re.match(r"#+ ", block) is not None


class Page:
    """Collects the blocks of one text in one of the two readings."""

    def __init__(self, reading: ReadingName, rejections: Rejections) -> None:
        self.corrected = reading == "corrected"
        self._rules = BNC_RULES if self.corrected else BNC_PUBLISHED_RULES
        self._rejections = rejections
        self.blocks: list[str] = []

    def clean(self, text: str) -> str:
        """Text after the cleaning of this reading."""
        return clean(text, self._rules)

    def sentence(self, element: etree._Element) -> str:
        """The characters of one `s`, not yet cleaned. Mended: a line break inside a word is a space."""
        text = characters(element)
        return text.replace("\n", " ") if self.corrected and "\n" in text else text

    def name(self, element: etree._Element) -> str:
        """A head, caption, label or speaker in one line. Mended: its sentences have a space between them."""
        if not self.corrected:
            return self.clean(characters(element))
        return self.clean(characters(element, " ").replace("\n", " "))

    def title_with_colon(self, element: etree._Element) -> str:
        """`Name: ` for a speaker or the head of a list. Mended: no second colon, and no colon after nothing."""
        name = self.name(element)
        if not self.corrected:
            return f"{name}: "
        name = name.rstrip(" :")
        return f"{name}: " if name else ""

    def heading(self, level: int, name: str, prefix: str = "", suffix: str = "") -> None:
        """A heading line with `level` hash signs. Mended: none where there is no name."""
        if name or not self.corrected:
            self.blocks.append(f"{prefix}{'#' * level} {name}{suffix}")

    def block(self, sentences: Sequence[str], prefix: str, suffix: str, keep: Callable[[str], bool] = bool) -> bool:
        """Add the sentences, cleaned together, as one block if `keep` holds; returns whether it did."""
        text = self.clean("\n".join([sentence for sentence in sentences if sentence])) if sentences else ""
        if kept := keep(text):
            self.blocks.append(f"{prefix}{text}{suffix}")
        return kept

    def leave_out(self, element: etree._Element, reason: str = "") -> None:
        """Count an element that the rules leave out, if it holds words."""
        if words := characters(element, " ").strip():
            self._rejections.count(reason or f"element <{element.tag}> left out", sample=words)

    def division_heading(self, division: etree._Element, number: str, prefix: str = "", suffix: str = "") -> None:
        """The heading of a `div`: the text of its head or caption in first place, else its type and `number`."""
        if len(division) and (division[0].tag == "head" or is_caption(division[0])):
            name = self.name(division[0])
        else:
            kind = division.get("type", "")
            name = f"{kind[:1].upper()}{kind[1:]} {number}".strip()
        self.heading(_level(division) + 1, name, prefix, suffix)

    def text(self) -> str:
        """The blocks so far, every line stripped, a blank line behind every block."""
        text = "\n".join([line.strip() for line in "\n\n".join(self.blocks).split("\n")])
        if "\n\n\n" in text:
            text = _BLANK_LINES.sub("\n\n", text)
        return text.strip("\n") + "\n\n"


def children_after_name(division: etree._Element) -> Iterator[etree._Element]:
    """The children of a division but for the one in first place that served as its name."""
    for index, child in enumerate(division):
        if index or not (child.tag == "head" or is_caption(child)):
            yield child


def _level(division: etree._Element) -> int:
    level = division.get("level", "1")
    if not (level.isascii() and level.isdecimal() and len(level) < 3 and 1 <= int(level) <= _DEEPEST_DIVISION):
        raise SourceError(
            f"{line_of(division)}: level={level[:20]!r} of a <div>, expected a number from 1 to {_DEEPEST_DIVISION}"
        )
    return int(level)
