"""Switchboard Dialog Act Corpus: one utterance per line.

Source: ELC-BERT's reference, section 1.6.
"""

from collections.abc import Iterable, Iterator

from hatchery.corpora.babylm.shared import collapse, quoted, without_dash, without_repeats
from hatchery.corpora.cleaning import clean_minimal


def normalise(lines: Iterable[str]) -> Iterator[str]:
    """No leading dash, quotation marks, no repeated lines, also not across a boundary."""
    utterances = (clean_minimal(without_dash(collapse(line))) for line in lines)
    return without_repeats((quoted(line) if line else "" for line in utterances), across_boundaries=True)
