"""Switchboard Dialog Act Corpus: one utterance per line.

Source: ELC-BERT's reference, section 1.6. The dash goes before the cleaning; boundaries are not collapsed.

Corrected:
- a repeated line is one of the same conversation; as published the first line of a conversation is lost when it equals
  the last of the one before;
- an utterance that is only a dash, or has nothing left after cleaning, vanishes; as published it is a boundary.
"""

from collections.abc import Iterable, Iterator

from hatchery.corpora.babylm.shared import collapse, quoted, without_dash
from hatchery.corpora.babylm.treatment import Treatment


def normalise(lines: Iterable[str], treatment: Treatment) -> Iterator[str]:
    """No leading dash, quotation marks, no repeated lines."""

    def utterances() -> Iterator[str]:
        for line in map(collapse, lines):
            text = treatment.minimal(without_dash(line))
            if not line or treatment.keeps(text, line):
                yield quoted(text) if text else ""

    return treatment.without_repeats(utterances(), across_boundaries=not treatment.corrected)
