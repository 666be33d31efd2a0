"""Children's Stories Text Corpus: natural text with titles of their own and some indented lines.

Source: ELC-BERT's reference, section 1.6. An indented line begins with the marker `[TAB] `, a special token of the
tokenizers, in both readings.

Corrected:
- a line with nothing left after cleaning vanishes; as published it is a boundary, or a marker without
  text (inferred).
"""

from collections.abc import Iterable, Iterator

from hatchery.corpora.babylm.shared import collapse
from hatchery.corpora.babylm.treatment import Treatment

_MARKER = "[TAB]"


def normalise(lines: Iterable[str], treatment: Treatment) -> Iterator[str]:
    """Indented lines marked with [TAB]; a block of one line (a title) joins the block after it."""
    block = 0
    for raw in lines:
        line = collapse(raw)
        if not line:
            if block > 1:
                yield ""
            block = 0
            continue
        # The indent is four spaces of the raw line; a tab or three spaces are none. Cleaned with its marker, as
        # published: what the cleaning does to white space depends on what stands before it.
        text = treatment.minimal(f"{_MARKER} {line}" if raw.startswith("    ") else line)
        if treatment.keeps(text.removeprefix(_MARKER), line):
            block += 1
            yield text
