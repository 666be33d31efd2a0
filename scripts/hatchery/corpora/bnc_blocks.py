"""The body of a BNC text as Markdown: headings, paragraphs, quotes, lists, verse, plays and conversations.

Source: LTG-BERT's reference, sections 1.4 and 1.5. A block is prefix, cleaned sentences (one per line) and suffix; the
prefix stands once, on the first line. Elements that the rules skip or do not know are counted, never silently lost.
"""

import re
from collections.abc import Callable, Iterator

from lxml import etree

from hatchery.corpora.bnc_header import Speakers
from hatchery.corpora.cleaning import BNC_RULES, clean
from hatchery.corpora.documents import Rejections

_SILENT = frozenset({"note", "bibl", "pb", "gap", "head"})
_UNHEARD = frozenset({"event", "pause", "shift", "trunc", "unclear", "vocal", "align", "gap"})


def characters(element: etree._Element) -> str:
    """The characters of the words and marks below an element, `[UNK] ` for each gap and unclear passage."""
    if next(element.iter("gap", "unclear"), None) is None:
        return "".join(element.itertext("w", "c", with_tail=False))
    return "".join(_pieces(element))


def _pieces(element: etree._Element) -> Iterator[str]:
    for child in element:
        if child.tag in ("gap", "unclear"):
            yield "[UNK] "
        elif child.tag in ("w", "c"):
            yield child.text or ""
        else:
            yield from _pieces(child)


def _is_caption(element: etree._Element) -> bool:
    return element.tag == "p" and element.get("type", "").startswith("caption:")


class Body:
    """Collects the lines of one text."""

    def __init__(self, speakers: Speakers, rejections: Rejections) -> None:
        self._speakers = speakers
        self._rejections = rejections
        self._blocks: list[str] = []

    def text(self) -> str:
        """The blocks so far, every line stripped, one blank line between blocks."""
        lines = "\n\n".join(self._blocks).split("\n")
        return re.sub(r"\n{3,}", "\n\n", "\n".join(line.strip() for line in lines)).strip("\n")

    def heading(self, level: int, name: str) -> None:
        """A heading line with `level` hash signs."""
        self._blocks.append(f"{'#' * level} {name}")

    def written(self, element: etree._Element, number: str = "") -> None:
        """The children of `wtext` or of a division; a caption in first place has served as the division's name."""
        for index, child in enumerate(element):
            if index == 0 and _is_caption(child):
                continue
            if child.tag == "div":
                self._written_division(child, number)
            else:
                self._block(child, "", "")

    def spoken(self, element: etree._Element) -> None:
        """The children of `stext` or of a division of it."""
        for child in element:
            if child.tag == "div":
                self.heading(_level(child) + 1, _name(child, child.get("n", "")))
                self.spoken(child)
            elif child.tag == "u":
                self._utterance(child)
            elif child.tag != "head" and child.tag not in _UNHEARD:
                self._skip(child)

    def _written_division(self, division: etree._Element, parent: str) -> None:
        own = division.get("n", "")
        number = f"{parent}.{own}" if parent and own else own or parent
        self.heading(_level(division) + 1, _name(division, number if own else ""))
        self.written(division, number)

    def _skip(self, element: etree._Element) -> None:
        self._rejections.count(f"element <{element.tag}> in <{element.getparent().tag}> skipped")

    def _block(self, element: etree._Element, prefix: str, suffix: str) -> None:
        match element.tag:
            case "p" | "lg" | "l":
                self._paragraph(element, prefix, suffix)
            case "quote":
                self._paragraph(element, "> " + prefix, suffix)
            case "list":
                self._list(element, prefix, suffix)
            case "sp":
                self._speech(element, prefix, suffix)
            case tag if tag not in _SILENT:
                self._skip(element)

    def _paragraph(self, element: etree._Element, prefix: str, suffix: str) -> None:
        sentences: list[str] = []
        for child in element:
            if child.tag == "s":
                sentences.append(characters(child))
                continue
            self._emit(sentences, prefix, suffix)
            sentences = []
            self._block(child, prefix, suffix)
        self._emit(sentences, prefix, suffix)

    def _emit(self, sentences: list[str], prefix: str, suffix: str, keep: Callable[[str], bool] = bool) -> None:
        text = clean("\n".join(sentence for sentence in sentences if sentence), BNC_RULES)
        if keep(text):
            self._blocks.append(f"{prefix}{text}{suffix}")

    def _list(self, element: etree._Element, prefix: str, suffix: str) -> None:
        label = ""
        for index, child in enumerate(element):
            match child.tag:
                case "head" if index == 0:
                    self._blocks.append(f"{prefix}{clean(characters(child), BNC_RULES)}: {suffix}")
                case "label":
                    label = clean(characters(child), BNC_RULES) + " "
                case "item":
                    self._paragraph(child, f"- {label}{prefix}", suffix)
                    label = ""
                case tag if tag not in _SILENT:
                    self._skip(child)

    def _speech(self, element: etree._Element, prefix: str, suffix: str) -> None:
        speaker = ""
        for index, child in enumerate(element):
            match child.tag:
                case "speaker" if index == 0:
                    speaker = clean(characters(child), BNC_RULES) + ": "
                case "stage":
                    self._paragraph(child, speaker + prefix, suffix)
                case "p" | "l" | "lg":
                    self._paragraph(child, f"{speaker}'{prefix}", f"'{suffix}")
                case tag if tag not in _SILENT:
                    self._skip(child)

    def _utterance(self, element: etree._Element) -> None:
        # The name is asked for before the turn is judged, so that a dropped turn does not shift the drawn names.
        name = self._speakers.name(element.get("who", ""))
        sentences = []
        for child in element:
            if child.tag == "s":
                sentences.append(characters(child))
            elif child.tag not in _UNHEARD:
                self._skip(child)
        self._emit(sentences, f"{name}: '", "'", keep=lambda text: any(map(str.isalnum, text)))


def _level(division: etree._Element) -> int:
    level = division.get("level", "1")
    return int(level) if level.isdecimal() else 1


def _name(division: etree._Element, number: str) -> str:
    if len(division) and (division[0].tag == "head" or _is_caption(division[0])):
        return clean(characters(division[0]), BNC_RULES)
    kind = division.get("type", "")
    return f"{kind[:1].upper()}{kind[1:]} {number}".strip()
