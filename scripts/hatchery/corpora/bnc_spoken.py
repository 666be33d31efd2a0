"""The body of a spoken BNC text: divisions and turns with the names of their speakers.

Source: docs/papers/ltg-bert.md, "Elements of the BNC". Pauses, noises and what could not be heard outside sentences
leave no trace; a turn is kept when it has a letter or digit after cleaning, and the letters of `[UNK]` count. The
published converter stops with an error at a `<head>`; both readings name the division by one in first place as in
written texts, and after that `as_published` leaves it out, as in written texts, and `corrected` keeps it.
"""

from lxml import etree

from hatchery.corpora.bnc_header import Speakers
from hatchery.corpora.bnc_page import Page, children_after_name
from hatchery.corpora.bnc_parser import line_of, unexpected
from hatchery.errors import SourceError

_UNHEARD = frozenset({"event", "pause", "shift", "trunc", "unclear", "vocal", "align", "gap"})


class SpokenBody:
    """Writes the turns of one spoken text on a page."""

    def __init__(self, page: Page, speakers: Speakers) -> None:
        self._page = page
        self._speakers = speakers

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
        name = self._speakers.name(who)
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
