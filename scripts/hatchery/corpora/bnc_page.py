"""Conversion of a BNC text to Markdown: safe parsing, a list of text blocks, the title and the names of speakers.

The XML is untrusted input. The parser refuses entities in every encoding, loads no document type, fetches no file, and
keeps the limits of libxml2 on depth (256 elements) and on text nodes (10 million bytes). Comments and processing
instructions are dropped. Unreadable input raises one error with file and line.

Source of the rules: docs/papers/ltg-bert.md, "Elements of the BNC". A block (a paragraph, heading, list item or turn)
is text with a prefix, sentences (one per line) and a suffix. Elements that contain words and are left out are counted.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath

from lxml import etree

from hatchery.corpora.cleaning import BNC_PUBLISHED_RULES, BNC_RULES, clean
from hatchery.corpora.documents import Rejections
from hatchery.errors import SourceError
from hatchery.settings.base import ReadingName


def parse(content: bytes, where: str) -> etree._Element:
    """Return the root of an XML document.

    Raises SourceError with `where` and the line if the document is damaged or declares entities, and MemoryError if the
    document does not fit in memory.
    """
    if not content:
        raise SourceError(f"{where}: line 1: the file is empty, expected XML")
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
        if error.code == etree.ErrorTypes.ERR_NO_MEMORY:
            raise MemoryError from error
        if _entity_line(content):
            raise _refusal(content, where) from error
        message = " ".join((error.msg or "damaged").split())
        raise SourceError(f"{where}: line {error.lineno or 1}: not well-formed XML: {message}") from error
    except (LookupError, ValueError) as error:
        raise SourceError(f"{where}: line 1: cannot be read as XML: {error}") from error
    # Search the parsed tree for entity declarations: unlike a search of the bytes, this search is fast and works in any
    # encoding. The preceding parsing is safe, because it fetched no external file, and libxml2 limits the expansion of
    # entities.
    document_type = root.getroottree().docinfo.internalDTD
    if document_type is not None and next(document_type.iterentities(), None) is not None:
        raise _refusal(content, where)
    return root


def _entity_line(content: bytes) -> int:
    """Return the line of the first entity declaration, or 0 if there is no declaration."""
    # Zero bytes are removed before the search, because in UTF-16 and UTF-32 the text `<!ENTITY` has zero bytes between
    # its characters.
    narrow = content.replace(b"\0", b"") if b"\0" in content[:4] else content
    declared = narrow.find(b"<!ENTITY")
    return 1 + narrow.count(b"\n", 0, declared) if declared >= 0 else 0


def _refusal(content: bytes, where: str) -> SourceError:
    line = _entity_line(content) or 1
    return SourceError(f"{where}: line {line}: the text declares XML entities, which this reader refuses")


def line_of(element: etree._Element) -> str:
    """Return the position of an element for messages: "line 12". From line 65,535 on, the parser's numbers are
    approximate.
    """
    line = element.sourceline or 0
    return f"line {line}" if line < 65535 else f"about line {line}"


def unexpected(element: etree._Element) -> SourceError:
    """Return the error for an element that the rules of the conversion do not allow at its position."""
    parent = element.getparent()
    inside = "at the top" if parent is None else f"in <{parent.tag}>"
    return SourceError(f"{line_of(element)}: element <{element.tag}> is not expected {inside}")


_DEEPEST_DIVISION = 20
_BLANK_LINES = re.compile(r"\n{3,}")


def characters(element: etree._Element, between: str = "") -> str:
    """Return the characters of the words and punctuation marks below an element, with `[UNK] ` for each gap and unclear
    passage.

    Only the direct text of the elements `w` and `c` is read; `between` is added after every sentence inside the
    element.
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
    """Return whether the element is a paragraph of type `caption:...`."""
    return element.tag == "p" and element.get("type", "").startswith("caption:")


def is_heading(block: str) -> bool:
    """Return whether a text block is a heading."""
    return re.match(r"#+ ", block) is not None


class Page:
    """Collects the text blocks of one BNC text, converted as in LTG-BERT's published code or with Hatchery's
    corrections.
    """

    def __init__(self, reading: ReadingName, rejections: Rejections) -> None:
        self.corrected = reading == "corrected"
        self._rules = BNC_RULES if self.corrected else BNC_PUBLISHED_RULES
        self._rejections = rejections
        self.blocks: list[str] = []

    def clean(self, text: str) -> str:
        """Return the text, cleaned as in LTG-BERT's published code or, with `reading: corrected`, with Hatchery's
        corrections.
        """
        return clean(text, self._rules)

    def sentence(self, element: etree._Element) -> str:
        """Return the characters of a sentence (element `s`) before cleaning. With `reading: corrected`, a space
        replaces each line break inside a word.
        """
        text = characters(element)
        return text.replace("\n", " ") if self.corrected and "\n" in text else text

    def name(self, element: etree._Element) -> str:
        """Return the text of a head, caption, label or speaker, cleaned. With `reading: corrected`, the text is one
        line, and a space separates the sentences of the element.
        """
        if not self.corrected:
            return self.clean(characters(element))
        return self.clean(characters(element, " ").replace("\n", " "))

    def title_with_colon(self, element: etree._Element) -> str:
        """Return `Name: ` for a speaker or the head of a list. With `reading: corrected`, a name that ends in a colon
        gets no second colon, and an empty name gets no colon.
        """
        name = self.name(element)
        if not self.corrected:
            return f"{name}: "
        name = name.rstrip(" :")
        return f"{name}: " if name else ""

    def heading(self, level: int, name: str, prefix: str = "", suffix: str = "") -> None:
        """Add a heading line: `level` hash signs and a name. With `reading: corrected`, no heading is added for an
        empty name.
        """
        if name or not self.corrected:
            self.blocks.append(f"{prefix}{'#' * level} {name}{suffix}")

    def block(self, sentences: Sequence[str], prefix: str, suffix: str, keep: Callable[[str], bool] = bool) -> bool:
        """Clean the joined sentences, and add the cleaned text as a text block if `keep` returns True for this text.

        Return True if the block was added.
        """
        text = self.clean("\n".join([sentence for sentence in sentences if sentence])) if sentences else ""
        if kept := keep(text):
            self.blocks.append(f"{prefix}{text}{suffix}")
        return kept

    def leave_out(self, element: etree._Element, reason: str = "") -> None:
        """Count an element as left out, under a reason, if the element contains words."""
        if words := characters(element, " ").strip():
            self._rejections.count(reason or f"element <{element.tag}> left out", sample=words)

    def division_heading(self, division: etree._Element, number: str, prefix: str = "", suffix: str = "") -> None:
        """Add the heading of a `div`. If the first child is a head or caption, the heading is the text of this child;
        otherwise, it is the type of the `div` and `number`.
        """
        if len(division) and (division[0].tag == "head" or is_caption(division[0])):
            name = self.name(division[0])
        else:
            kind = division.get("type", "")
            name = f"{kind[:1].upper()}{kind[1:]} {number}".strip()
        self.heading(_level(division) + 1, name, prefix, suffix)

    def text(self) -> str:
        """Return the text of all blocks so far, with every line stripped and a blank line after every block."""
        text = "\n".join([line.strip() for line in "\n\n".join(self.blocks).split("\n")])
        if "\n\n\n" in text:
            text = _BLANK_LINES.sub("\n\n", text)
        return text.strip("\n") + "\n\n"


def children_after_name(division: etree._Element) -> Iterator[etree._Element]:
    """Yield the children of a division. A first child that is a head or caption is omitted, because it is the
    division's heading.
    """
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


XML_ID = "{http://www.w3.org/XML/1998/namespace}id"
_TEXT_ID = re.compile(r"[A-Za-z0-9_.-]{1,40}")


def text_id(root: etree._Element, file: str) -> str:
    """Return the id of a text in the BNC, such as `A00`; for a text without an id, return the file's name without
    suffix. Raises SourceError for an id of another form.
    """
    stored = root.get(XML_ID)
    if stored is None:
        return PurePosixPath(file).stem
    if not _TEXT_ID.fullmatch(stored):
        raise SourceError(f"line 1: got the id {stored[:40]!r}, expected the id of a BNC text, such as A00")
    return stored


_STATEMENT = re.compile(r"\s*\bSample containing about\b.*", re.DOTALL)


def title_of(header: etree._Element, page: Page, text_id: str = "") -> str:
    """Return the title of a text: the title of its source or, if the header lacks this title, the title in `titleStmt`.
    The BNC adds the statement "Sample containing about ..." to the title in `titleStmt`; this statement is removed.

    With `reading: corrected`, this statement is found by its words. LTG-BERT's published code instead removes the last
    full stop and the text after it. So a title in `titleStmt` becomes empty if it has no full stop, and is truncated if
    it has a full stop. If no title contains a word, the result is `text_id` with `reading: corrected`, because later
    stages recognise only texts with a title as articles. Raises SourceError if the header has no title.
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
    """The names of speakers by identifier. The attribute `who` of a turn contains the identifier of its speaker.

    `draw` returns a random first name for a speaker without a name. A speaker who is not listed in the header also gets
    a random first name, at the first turn.
    """

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
        """Return the name of a speaker; the speaker keeps this name for the whole text."""
        if who not in self._names:
            self._names[who] = self._draw()
        return self._names[who]
