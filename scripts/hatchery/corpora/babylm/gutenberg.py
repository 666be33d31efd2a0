"""Standardized Project Gutenberg: hard-wrapped books.

Source: ELC-BERT's reference, section 1.6.

Corrected:
- the last paragraph of a file is kept although no blank line follows it; as published it is lost;
- a line with nothing left after cleaning vanishes; as published it counts as a blank line (inferred).
"""

from collections.abc import Iterable, Iterator

from hatchery.corpora.babylm.shared import collapse
from hatchery.corpora.babylm.treatment import Treatment


def normalise(lines: Iterable[str], treatment: Treatment) -> Iterator[str]:
    """Wrapped lines joined to paragraphs; a boundary at two blank lines after a paragraph of more than one line."""
    paragraph: list[str] = []
    lines_of_last = 0
    blanks = 0
    for raw in lines:
        line = collapse(raw)
        text = treatment.minimal(line)
        if text:
            paragraph.append(text)
            blanks = 0
        elif not line or treatment.keeps(text, line):
            blanks += 1
            if paragraph:
                yield " ".join(paragraph)
                lines_of_last, paragraph = len(paragraph), []
            elif blanks == 2 and lines_of_last > 1:
                yield ""
    if treatment.corrected and paragraph:
        yield " ".join(paragraph)
    else:
        for line in paragraph:
            treatment.leave_out("last paragraph of the file", line)
