"""What the lines of a text are: sentences or utterances of their own, paragraphs, or pieces of wrapped paragraphs.

The beginning of a file is looked at. A text is wrapped where many lines reach a common margin in the middle of a
sentence: there is no final mark, the first word of the next line would not have fitted, and it begins no name or
sentence with a capital. Where most of the text stands in lines longer than a sentence, these are paragraphs. In doubt
lines stay as they are.

The numbers below were measured. Of the lines of captions, dialogue, lists of titles, ads and treebanks at most 0.07
break off at a margin, of those of transcripts without marks, which are short, 0.22, and of wrapped prose in five
languages, at widths from 55 to 120, 0.32 and more. Half of the text of speeches with a paragraph per line (121 of 124
of them) is in lines of more than 200 characters, and of the others in none but a tenth of 2,000 short film reviews.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from hatchery.corpora.readers.plain_text import PlainTextOptions

SEEN_CHARACTERS = 1 << 20
# Of the lines that have a next one in their paragraph, at least this share breaks off at the margin.
_WRAPPED_SHARE = 0.25
# Nobody wraps prose at less; utterances without marks are shorter.
_NARROWEST = 50
# With shares of the lines' 95th percentile, single long lines (addresses, rows of tables) do not move the margin.
_PERCENTILE, _MARGIN = 0.95, 0.8
# A sentence is seldom as long.
_LONGEST_SENTENCE = 200

_FINAL_MARKS = tuple(".!?…:;。！？؟।")
_CLOSING = "\"'”’»«›‹“)]}*_ "
# Items of lists, headings, quotations and rows of tables, as Markdown has them, begin a line of their own.
_BEGINS_LINE = re.compile(r"(?:[-*+•–—>]|#{1,6}|\d{1,3}[.)])\s|\|")


@dataclass(frozen=True)
class LineForm:
    """What lines are, and so what becomes of them."""

    kind: Literal["lines", "paragraphs", "wrapped"]
    margin: float | None = None
    """How long a wrapped line is at least with the first word of the next; None joins all lines up to a blank one."""
    cut: bool = False
    """Whether paragraphs are cut into sentences."""

    @property
    def description(self) -> str:
        """In words, for what is said about a corpus."""
        words = {
            "lines": "lines kept as they are",
            "paragraphs": "every line a paragraph",
            "wrapped": "wrapped lines joined to paragraphs",
        }[self.kind]
        if self.kind == "lines":
            return words
        kept = "not cut into sentences (sentences: punkt:<language> does)"
        return f"{words}, {'cut into sentences as English' if self.cut else kept}"

    def units(self, block: list[str]) -> list[str]:
        """The lines of a block, without white space at their ends, joined where they are wrapped."""
        if self.kind != "wrapped":
            return block
        if self.margin is None:
            return [" ".join(block)]
        lines = [line.strip() for line in block]
        found = lines[:1]
        for line, following in pairwise(lines):
            if _reaches(line, following, self.margin) and not _BEGINS_LINE.match(following):
                found[-1] += f" {following}"
            else:
                found.append(following)
        return found


def form_of(options: "PlainTextOptions", english: bool, beginning: Callable[[], Iterable[str]]) -> LineForm:
    """What the options say, or else what the `beginning` of a file looks like; `english` is what its corpus says."""
    if options.sentences is None:
        form = recognised(beginning())
        if options.paragraphs == "line":
            return LineForm("paragraphs", cut=english and form.kind == "paragraphs")
        return replace(form, cut=english and form.kind != "lines")
    if options.paragraphs == "line":
        return LineForm("paragraphs", cut=options.sentences.startswith("punkt:"))
    if options.sentences == "line":
        return LineForm("lines")
    return LineForm("wrapped", cut=options.sentences.startswith("punkt:"))


def recognised(lines: Iterable[str]) -> LineForm:
    """What the first SEEN_CHARACTERS characters of a text look like."""
    seen = [line.strip() for line in _beginning(lines)]
    lengths = sorted(len(line) for line in seen if line)
    if not lengths:
        return LineForm("lines")
    width = lengths[int(_PERCENTILE * len(lengths))]
    pairs = [(line, following) for line, following in pairwise(seen) if line and following]
    broken = sum(_breaks_off(line, following, _MARGIN * width) for line, following in pairs)
    if width >= _NARROWEST and broken > 0 and broken >= _WRAPPED_SHARE * len(pairs):
        return LineForm("wrapped", _MARGIN * width)
    in_long_lines = sum(length for length in lengths if length > _LONGEST_SENTENCE)
    return LineForm("paragraphs" if 2 * in_long_lines > sum(lengths) else "lines")


def _beginning(lines: Iterable[str]) -> Iterator[str]:
    seen = 0
    for line in lines:
        yield line
        seen += len(line) + 1
        if seen > SEEN_CHARACTERS:
            return


def _reaches(line: str, following: str, margin: float) -> bool:
    return len(line) + 1 + len(following.split(maxsplit=1)[0]) >= margin


def _breaks_off(line: str, following: str, margin: float) -> bool:
    """Whether a line that ends in the middle of a sentence had no room for the next word."""
    return (
        " " in line
        and _reaches(line, following, margin)
        and not line.rstrip(_CLOSING).endswith(_FINAL_MARKS)
        and not following[0].isupper()
    )
