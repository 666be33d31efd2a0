"""Title and speakers of a BNC text, read from its header.

Source: LTG-BERT's reference, sections 1.2 and 1.3. Speakers without a name get a first name drawn from a list of our
own (the published one is missing), seeded by the text, so the result does not depend on the order of files.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path

from lxml import etree

from hatchery.corpora.cleaning import BNC_RULES, clean
from hatchery.errors import CorpusError

XML_ID = "{http://www.w3.org/XML/1998/namespace}id"


@cache
def first_names() -> tuple[str, ...]:
    """The names for unnamed speakers, one per line in `first_names.txt`; only purely alphabetic ones count."""
    lines = (Path(__file__).parent / "first_names.txt").read_text(encoding="utf-8").split()
    return tuple(name[0].upper() + name[1:] for name in lines if name.isalpha())


def title_of(header: etree._Element) -> str:
    """The title without the statement about the sample. Raises CorpusError when the header has none."""
    source = header.find("fileDesc/sourceDesc")
    children = [] if source is None else list(source)
    if len(children) == 1 and children[0].tag == "bibl" and len(children[0]) and children[0][0].tag == "title":
        title = children[0][0].text or ""
    else:
        statement = header.find("fileDesc/titleStmt")
        if statement is None or not len(statement) or statement[0].tag != "title":
            raise CorpusError("the header has no title")
        # The trailing statement "Sample containing about N words ..." follows the last full stop.
        title = ".".join((statement[0].text or "").split(".")[:-1])
    return clean(title.strip().removesuffix("."), BNC_RULES)


class Speakers:
    """Names by the value of `@who`. `draw` gives a random first name; who is unlisted gets one at the first turn."""

    def __init__(self, header: etree._Element, draw: Callable[[], str]) -> None:
        self._draw = draw
        self._names = {
            person.get(XML_ID, ""): self._name(person) for person in header.iterfind("profileDesc/particDesc/person")
        }

    def _name(self, person: etree._Element) -> str:
        stored = person.findtext("persName")
        if stored is None:
            return self._draw()
        name = clean(" ".join(word[0].upper() + word[1:] for word in stored.split()), BNC_RULES)
        return "[UNK]" if "unknown" in name.lower() else name

    def name(self, who: str) -> str:
        """The name of a speaker, remembered for the rest of the text."""
        if who not in self._names:
            self._names[who] = self._draw()
        return self._names[who]
