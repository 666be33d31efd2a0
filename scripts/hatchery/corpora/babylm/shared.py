"""The small steps that several normalisers share: white space, dashes, quotation marks, entities, markup, boundaries.

Source: docs/papers/elc-bert.md, "Treatment of the corpora". A normaliser is a function from the raw lines of a file to
output lines, in which an empty line ends a document.
"""

import re
from collections.abc import Iterable, Iterator

_CITATION = re.compile(r"\[\d+\]")
_PAIRS = {"(": ")", "[": "]", "{": "}"}
# Possessive, so that a hostile line of many `=` takes linear time. Without attributes, `a <b and c> d` is no tag.
_SUBTITLE_TAG = re.compile(r"</?(?:b|i|u|s|em|strong|font|span|br)(?:\s[^<>=]*+=[^<>]*+)?\s*/?>", re.IGNORECASE)


def collapse(line: str) -> str:
    """White space as single spaces, stripped."""
    return " ".join(line.split())


def without_dash(line: str) -> str:
    """The line without one leading dash, the sign of a new speaker in subtitles."""
    return line[2:] if line.startswith("- ") else line.removeprefix("-")


def quoted(line: str) -> str:
    """The line between double quotes, the sign of speech."""
    return f'"{line}"'


def quoted_speech(line: str) -> str:
    """The line between double quotes, unless it introduces speech, is quoted at an end, or is a noise in brackets.

    The published test looks at the first and the last character only: `(a) and (b)` counts as a noise.
    """
    if line.endswith(":") or line.startswith('"') or line.endswith('"') or _PAIRS.get(line[:1]) == line[-1:]:
        return line
    return quoted(line)


def upper_first(line: str) -> str:
    """The line with its first character in upper case."""
    return line[:1].upper() + line[1:]


def without_citations(line: str) -> str:
    """The line without citations such as [12]."""
    return _CITATION.sub("", line)


def without_subtitle_tags(line: str) -> str:
    """The line without the tags that subtitles use for type: `<i>`, `</i>`, `<font color="red">`."""
    return _SUBTITLE_TAG.sub("", line)


def unescape_once(line: str) -> str:
    """One level of the entities `&gt;`, `&lt;`, `&amp;`, in this order, so that `&amp;lt;` becomes `&lt;`."""
    return line.replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&")


def single_boundaries(lines: Iterable[str]) -> Iterator[str]:
    """The lines with one empty line for several in a row."""
    previous = None
    for line in lines:
        if line or previous != "":
            yield line
        previous = line
