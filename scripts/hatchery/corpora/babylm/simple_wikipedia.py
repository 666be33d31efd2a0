"""Simple English Wikipedia: articles of a title line and body lines, apart by blank lines.

Source: ELC-BERT's reference, section 1.6. Corrected: the last line of a file is kept, and a stub sentence removes the
title above it but not an earlier line of a longer article.
"""

from collections.abc import Iterable, Iterator
from itertools import chain

from hatchery.corpora.babylm.shared import collapse, unescape_once, without_citations
from hatchery.corpora.cleaning import clean_minimal

_STUBS = (
    "is a commune. It is",
    "is a commune found",
    "is a city in",
    "is a village in",
    "is a municipality in",
    "is a town in",
)


def _is_stub(line: str) -> bool:
    return len(line) < 128 and any(stub in line for stub in _STUBS)


def normalise(lines: Iterable[str]) -> Iterator[str]:
    """Citations and entities undone; one-sentence articles about places dropped with their titles."""
    article: list[str] = []
    for raw in chain(lines, [""]):
        line = clean_minimal(without_citations(collapse(raw)))
        if not line:
            if article:
                yield from (*article, "")
            article = []
        elif not _is_stub(line):
            article.append(unescape_once(unescape_once(line)))
        elif len(article) == 1:
            article = []
