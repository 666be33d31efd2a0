"""OpenSubtitles: one subtitle per line, films apart by blank lines.

Source: ELC-BERT's reference, section 1.6. The dash goes after the cleaning here and before it in QED. That a boundary
lets a repeated line through is our reading of "unless the previous output was already blank".

Corrected:
- a subtitle that is only a dash, or has nothing left after cleaning, vanishes; as published it ends the film;
- tags such as <i> go, and with them the entities that they keep from being decoded (`<i>Tea &amp; cake</i>`).
"""

from collections.abc import Iterable, Iterator

from hatchery.corpora.babylm.shared import collapse, quoted_speech, single_boundaries, without_dash
from hatchery.corpora.babylm.treatment import Treatment


def normalise(lines: Iterable[str], treatment: Treatment) -> Iterator[str]:
    """No leading dash, quotation marks around speech, no repeated lines, no repeated boundaries."""

    def subtitles() -> Iterator[str]:
        for line in map(collapse, lines):
            text = without_dash(treatment.subtitle(line))
            if not line or treatment.keeps(text, line):
                yield quoted_speech(text) if text else ""

    return treatment.without_repeats(single_boundaries(subtitles()))
