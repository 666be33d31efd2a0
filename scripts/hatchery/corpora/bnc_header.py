"""Title and speakers of a BNC text, read from its header.

Source: docs/papers/ltg-bert.md, "Conversion of the BNC". Speakers without a name get a first name drawn from a list of
our own (the published one is missing), seeded by the text, so the result does not depend on the order of files.
"""

import random
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from lxml import etree

from hatchery.corpora.bnc_page import Page
from hatchery.corpora.bnc_parser import line_of
from hatchery.errors import SourceError

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
