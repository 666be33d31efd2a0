"""BNC, the spoken part as BabyLM has it: one sentence per line, a blank line after each conversation.

Source: ELC-BERT's reference, section 1.6. Corrected: ’ inside a word is an apostrophe, not a closing quote.
"""

from collections.abc import Iterable, Iterator

from hatchery.corpora.babylm.shared import quoted, upper_first, without_repeats
from hatchery.corpora.cleaning import BABYLM_RULES, clean


def normalise(lines: Iterable[str]) -> Iterator[str]:
    """Full cleaning, a capital, quotation marks; lines of one mark and repeated lines go."""

    def turns() -> Iterator[str]:
        for line in map(str.strip, lines):
            if line not in (".", "!", "?"):
                yield quoted(clean(upper_first(line), BABYLM_RULES)) if line else ""

    return without_repeats(turns(), across_boundaries=False)
