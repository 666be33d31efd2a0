"""AO-CHILDES: utterances of a child's surroundings, one per line, without any boundary.

Source: ELC-BERT's reference, section 1.6. Empty lines are skipped in both readings: the release has none, and the
published script stops at one with an error.

Corrected:
- ’ inside or before a word is an apostrophe, not a closing quote (`cat's`, not `cat' s`);
- `U.S.A.`, `....` and entities stay whole (not `U. S. A.`, `... .`, `&eacute; s`);
- an utterance with nothing left after cleaning vanishes, where the published script writes a pair of quotes (inferred).
"""

from collections.abc import Iterable, Iterator

from hatchery.corpora.babylm.shared import quoted, upper_first
from hatchery.corpora.babylm.treatment import Treatment


def normalise(lines: Iterable[str], treatment: Treatment) -> Iterator[str]:
    """A capital, full cleaning, quotation marks, no repeated lines."""

    def utterances() -> Iterator[str]:
        for line in map(str.strip, lines):
            if line:
                text = treatment.full(upper_first(line))
                if treatment.keeps(text, line):
                    yield quoted(text)

    return treatment.without_repeats(utterances())
