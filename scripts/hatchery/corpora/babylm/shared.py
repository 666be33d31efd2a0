"""The small steps that several normalisers share: white space, dashes, quotation marks, entities, duplicates.

Source: ELC-BERT's reference, section 1.6. A normaliser is a function from the raw lines of a file to output lines, in
which an empty line ends a document.
"""

import re
from collections.abc import Iterator

_CITATION = re.compile(r"\[\d+\]")
_PAIRS = {"(": ")", "[": "]", "{": "}"}


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
    """The line between double quotes, unless it introduces speech, is quoted at an end, or is a noise in brackets."""
    if line.endswith(":") or line.startswith('"') or line.endswith('"') or _PAIRS.get(line[:1], "\0") == line[-1:]:
        return line
    return quoted(line)


def upper_first(line: str) -> str:
    """The line with its first character in upper case."""
    return line[:1].upper() + line[1:]


def without_citations(line: str) -> str:
    """The line without citations such as [12]."""
    return _CITATION.sub("", line)


def unescape_once(line: str) -> str:
    """One level of the entities `&gt;`, `&lt;`, `&amp;`, in this order."""
    return line.replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&")


def without_repeats(lines: Iterator[str], across_boundaries: bool) -> Iterator[str]:
    """The lines without those equal to the line emitted before; a boundary is forgotten or seen across."""
    previous = ""
    for line in lines:
        if not line:
            previous = previous if across_boundaries else ""
        elif line == previous:
            continue
        else:
            previous = line
        yield line
