"""Simple English Wikipedia: articles of a title line and body lines, apart by blank lines.

Source: ELC-BERT's reference, section 1.6. Articles of one sentence about a place are dropped: the sentence, and the
title that waits above it.

Corrected:
- the last line of a file is kept; as published it is lost;
- a stub sentence takes the title with it only when nothing else of the article is left; as published it takes whatever
  line is above it, also the title or a line of a longer article;
- an article that ends in a stub sentence still ends there; as published it fuses with the next one;
- a line with nothing left after cleaning vanishes; as published it is a boundary (inferred);
- entities are decoded to the last level, not to the second.
"""

from collections.abc import Iterable, Iterator
from itertools import chain

from hatchery.corpora.babylm.shared import collapse, unescape_once, without_citations
from hatchery.corpora.babylm.treatment import Treatment

_STUBS = (
    "is a commune. It is",
    "is a commune found",
    "is a city in",
    "is a village in",
    "is a municipality in",
    "is a town in",
)


def normalise(lines: Iterable[str], treatment: Treatment) -> Iterator[str]:
    """Citations and entities undone; one-sentence articles about places dropped with their titles."""
    held: str | None = None
    stub_below = False
    begun = False
    for raw in chain(lines, [""] if treatment.corrected else []):
        line = collapse(raw)
        text = treatment.minimal(without_citations(line))
        if not text:
            if line and not treatment.keeps(text, line):
                continue
            if held is not None and stub_below:
                treatment.leave_out("title of a stub", held)
            elif held is not None:
                yield held
            if (held is not None and not stub_below) or (begun and treatment.corrected):
                yield ""
            held, stub_below, begun = None, False, False
        elif _is_stub(text):
            treatment.leave_out("stub about a place", line)
            if treatment.corrected:
                stub_below = not begun
            elif held is not None:
                treatment.leave_out("line above a stub", held)
                held = None
        else:
            if held is not None:
                yield held
                begun = True
            held, stub_below = _unescaped(text, treatment.corrected), False
    if held is not None:
        treatment.leave_out("last line of the file", held)


def _is_stub(text: str) -> bool:
    return len(text) < 128 and any(stub in text for stub in _STUBS)


def _unescaped(text: str, to_the_last_level: bool) -> str:
    text = unescape_once(unescape_once(text))
    while to_the_last_level and (plain := unescape_once(text)) != text:
        text = plain
    return text
