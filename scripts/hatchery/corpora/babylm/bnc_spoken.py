"""BNC, the spoken part as BabyLM has it: one sentence per line, a blank line after each conversation.

Source: ELC-BERT's reference, section 1.6.

Corrected:
- ’ inside or before a word is an apostrophe, not a closing quote (`It's`, not `It' s`);
- `U.S.A.`, `....` and entities stay whole (not `U. S. A.`, `... .`, `&eacute; s`);
- a line with nothing left after cleaning vanishes, where the published script writes a pair of quotes (inferred).
"""

from collections.abc import Iterable, Iterator

from hatchery.corpora.babylm.shared import quoted, upper_first
from hatchery.corpora.babylm.treatment import Treatment


def normalise(lines: Iterable[str], treatment: Treatment) -> Iterator[str]:
    """A capital, full cleaning, quotation marks; lines of one mark and repeated lines go."""

    def turns() -> Iterator[str]:
        for line in map(str.strip, lines):
            if not line:
                yield ""
            elif line in (".", "!", "?"):
                treatment.leave_out("only a mark", line)
            else:
                text = treatment.full(upper_first(line))
                if treatment.keeps(text, line):
                    yield quoted(text)

    return treatment.without_repeats(turns())
