"""QED: subtitles of educational videos, with escaped entities and timing debris.

Source: ELC-BERT's reference, section 1.6.
"""

from collections.abc import Iterable, Iterator

from hatchery.corpora.babylm.shared import collapse, quoted_speech, unescape_once, without_dash, without_repeats
from hatchery.corpora.cleaning import clean_minimal


def _unescaped(line: str) -> str:
    """The line without entities, empty when it holds escaped markup."""
    for _ in range(3):
        if "&lt" in line and "&gt" in line:
            return ""
        line = unescape_once(line)
    return "" if "&lt" in line and "&gt" in line else line


def normalise(lines: Iterable[str]) -> Iterator[str]:
    """No dash, no entities, no timing lines, quotation marks around speech, no repeated lines."""

    def subtitles() -> Iterator[str]:
        blank = False
        for line in lines:
            text = clean_minimal(without_dash(collapse(line)))
            if not text:
                if not blank:
                    yield ""
                blank = True
                continue
            text = _unescaped(text)
            is_label = text.endswith(":") and not any(map(str.isalpha, text))
            if text and "->" not in text and not is_label:
                blank = False
                yield quoted_speech(text)

    return without_repeats(subtitles(), across_boundaries=True)
