"""Children's Stories Text Corpus: natural text with titles of their own and some indented lines.

Source: ELC-BERT's reference, section 1.6.
"""

from collections.abc import Iterable, Iterator

from hatchery.corpora.babylm.shared import collapse
from hatchery.corpora.cleaning import clean_minimal


def normalise(lines: Iterable[str]) -> Iterator[str]:
    """Indented lines marked with [TAB]; a block of one line (a title) joins the block after it."""
    block = 0
    for line in lines:
        text = collapse(line)
        if text:
            block += 1
            yield clean_minimal(f"[TAB] {text}" if line.startswith("    ") else text)
        else:
            if block > 1:
                yield ""
            block = 0
