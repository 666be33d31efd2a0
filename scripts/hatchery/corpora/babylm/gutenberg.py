"""Standardized Project Gutenberg: hard-wrapped books.

Source: ELC-BERT's reference, section 1.6. Corrected: the last paragraph of a file is kept although no blank line
follows it.
"""

from collections.abc import Iterable, Iterator
from itertools import chain

from hatchery.corpora.babylm.shared import collapse
from hatchery.corpora.cleaning import clean_minimal


def normalise(lines: Iterable[str]) -> Iterator[str]:
    """Wrapped lines joined to paragraphs; a boundary at two blank lines after a paragraph of more than one line."""
    paragraph: list[str] = []
    lines_of_last = 0
    blanks = 0
    for line in chain((clean_minimal(collapse(line)) for line in lines), [""]):
        if line:
            paragraph.append(line)
            blanks = 0
            continue
        blanks += 1
        if paragraph:
            yield " ".join(paragraph)
            lines_of_last, paragraph = len(paragraph), []
        elif blanks == 2 and lines_of_last > 1:
            yield ""
