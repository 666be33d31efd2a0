"""The ten corpora of BabyLM 2023: a normaliser for each corpus, and the steps that several normalisers share.

Source: docs/papers/elc-bert.md, "Cleaning of text" and "Treatment of the corpora". A normaliser has two versions
(option `reading`). `as_published` reproduces the output of ELC-BERT's published scripts byte by byte, including their
errors. This output is known from these two sections and from the files in `tests/golden`; behaviour that we concluded
only from the order of the scripts' steps is called "inferred". `corrected` fixes the errors. Both versions count the
lines that they leave out, with one exception: `as_published` does not count lines of the English Wikipedia that are
empty after cleaning.

A normaliser is a function from the raw lines of a file to output lines, in which an empty line ends a document.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hatchery.corpora.cleaning import BABYLM_PUBLISHED_RULES, BABYLM_RULES, clean, clean_minimal
from hatchery.corpora.documents import Rejections

_PAIRS = {"(": ")", "[": "]", "{": "}"}
# This pattern matches formatting tags in subtitles: `<i>`, `</i>`, `<font color="red">`. With possessive quantifiers,
# the match takes linear time even for a line of many `=`. An attribute must follow a space, so `a <b and c> d` contains
# no tag.
_SUBTITLE_TAG = re.compile(r"</?(?:b|i|u|s|em|strong|font|span|br)(?:\s[^<>=]*+=[^<>]*+)?\s*/?>", re.IGNORECASE)


def collapse(line: str) -> str:
    """Return the line without white space at its ends, and with one space for each other run of white space."""
    return " ".join(line.split())


def without_dash(line: str) -> str:
    """Return the line without its leading dash, which marks a new speaker in subtitles."""
    return line[2:] if line.startswith("- ") else line.removeprefix("-")


def quoted_speech(line: str) -> str:
    """Return the line in double quotes. The line is unchanged if it ends with a colon (which introduces speech), has a
    quote at one end, or describes a noise in brackets.

    As in ELC-BERT's published script, only the first and the last character are tested for brackets, so `(a) and (b)`
    counts as a noise.
    """
    if line.endswith(":") or line.startswith('"') or line.endswith('"') or _PAIRS.get(line[:1]) == line[-1:]:
        return line
    return f'"{line}"'


def unescape_once(line: str) -> str:
    """Return the line with one level of the entities `&gt;`, `&lt;` and `&amp;` decoded, in this order, so that
    `&amp;lt;` becomes `&lt;`.
    """
    return line.replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&")


def single_boundaries(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines, with one empty line instead of several successive empty lines."""
    previous = None
    for line in lines:
        if line or previous != "":
            yield line
        previous = line


@dataclass(frozen=True)
class Treatment:
    """The cleaning functions of one version (ELC-BERT's published scripts or Hatchery's corrections), and counts of the
    lines that a normaliser leaves out.
    """

    corrected: bool
    """True with the option `reading: corrected`; the docstring of each corpus lists the fixed errors."""
    rejections: Rejections
    """Counts and examples of the lines that are left out, by reason."""

    def full(self, line: str) -> str:
        """Return the line after the full cleaning (`cleaning.clean`). With `reading: as_published`, the result can
        contain newlines, and the character ’ counts as a closing quote even inside a word.
        """
        return collapse(clean(line, BABYLM_RULES)) if self.corrected else clean(line, BABYLM_PUBLISHED_RULES)

    def minimal(self, line: str) -> str:
        """Return the line after the minimal cleaning (`cleaning.clean_minimal`). With `reading: as_published`, the
        result can contain newlines and no-break spaces.
        """
        return collapse(clean_minimal(line)) if self.corrected else clean_minimal(line)

    def subtitle(self, line: str) -> str:
        """Return the line after the minimal cleaning. With `reading: corrected`, formatting tags such as `<i>` are also
        removed.
        """
        text = self.minimal(line)
        if not self.corrected or "<" not in text:
            return text
        plain = _SUBTITLE_TAG.sub("", text)
        # Clean again after removing tags, because the cleaning decodes no entities in a line with a `<`.
        return text if plain == text else self.minimal(plain)

    def keeps(self, text: str, line: str) -> bool:
        """Return True if a raw line stays in the output. `text` is the line after cleaning.

        With `reading: corrected`, a line with an empty `text` is dropped and counted. With `reading: as_published`,
        this line stays, because ELC-BERT's published scripts write a document boundary or a pair of quotes for this
        line (inferred from the order of their steps).
        """
        if text or not self.corrected:
            return True
        self.leave_out("nothing left after cleaning", line)
        return False

    def leave_out(self, reason: str, line: str) -> None:
        """Count a line that the output omits, under a reason."""
        self.rejections.count(reason, sample=line)

    def without_repeats(self, lines: Iterable[str], across_boundaries: bool = False) -> Iterator[str]:
        """Yield the lines without lines that equal the previous line.

        If a document boundary separates two equal lines, the second line is also yielded, unless `across_boundaries` is
        True.
        """
        previous = ""
        for line in lines:
            if not line:
                previous = previous if across_boundaries else ""
            elif line == previous:
                self.leave_out("repeated line", line)
                continue
            else:
                previous = line
            yield line
