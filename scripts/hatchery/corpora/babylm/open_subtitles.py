"""OpenSubtitles: one subtitle per line, films apart by blank lines.

Source: ELC-BERT's reference, section 1.6. The dash goes after the cleaning here and before it in QED.
"""

from collections.abc import Iterable, Iterator

from hatchery.corpora.babylm.shared import collapse, quoted_speech, without_dash, without_repeats
from hatchery.corpora.cleaning import clean_minimal


def normalise(lines: Iterable[str]) -> Iterator[str]:
    """No leading dash, quotation marks around speech, no repeated lines, no repeated boundaries."""

    def subtitles() -> Iterator[str]:
        blank = False
        for line in lines:
            text = without_dash(clean_minimal(collapse(line)))
            if text or not blank:
                yield quoted_speech(text) if text else ""
            blank = not text

    return without_repeats(subtitles(), across_boundaries=True)
