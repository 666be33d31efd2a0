"""AO-CHILDES: utterances of a child's surroundings, one per line, without any boundary.

Source: ELC-BERT's reference, section 1.6. Corrected: ’ inside a word is an apostrophe, not a closing quote.
"""

from collections.abc import Iterable, Iterator

from hatchery.corpora.babylm.shared import quoted, upper_first, without_repeats
from hatchery.corpora.cleaning import BABYLM_RULES, clean


def normalise(lines: Iterable[str]) -> Iterator[str]:
    """Full cleaning, a capital, quotation marks, no repeated lines."""
    stripped = (line.strip() for line in lines)
    return without_repeats((quoted(clean(upper_first(line), BABYLM_RULES)) for line in stripped if line), True)
