"""QED: subtitles of educational videos, with escaped entities and timing debris.

Source: ELC-BERT's reference, section 1.6. The dash goes before the cleaning here and after it in OpenSubtitles. Lines
with escaped markup were to be dropped, but the cleaning decodes most of them before the test can see them. That a
boundary lets a repeated line through is our reading of "unless the previous was blank".

Corrected:
- a subtitle that is only a dash, or has nothing left after cleaning, vanishes; as published it ends the document;
- tags such as <i> go, and with them the entities that they keep from being decoded.
"""

from collections.abc import Iterable, Iterator

from hatchery.corpora.babylm.shared import collapse, quoted_speech, single_boundaries, unescape_once, without_dash
from hatchery.corpora.babylm.treatment import Treatment


def normalise(lines: Iterable[str], treatment: Treatment) -> Iterator[str]:
    """No dash, no entities, no timing lines, quotation marks around speech, no repeated lines."""

    def subtitles() -> Iterator[str]:
        for line in map(collapse, lines):
            text = treatment.subtitle(without_dash(line))
            if not text:
                if not line or treatment.keeps(text, line):
                    yield ""
                continue
            text, has_markup = _unescaped(text)
            if has_markup:
                treatment.leave_out("escaped markup", line)
            elif "->" in text:
                treatment.leave_out("timing of a subtitle", line)
            elif text.endswith(":") and not any(map(str.isalpha, text)):
                treatment.leave_out("label without a letter", line)
            else:
                yield quoted_speech(text)

    return treatment.without_repeats(single_boundaries(subtitles()))


def _unescaped(text: str) -> tuple[str, bool]:
    """The text after up to three levels of entities, and whether both `&lt` and `&gt` were met on the way."""
    for _ in range(3):
        if _has_markup(text):
            return text, True
        text = unescape_once(text)
    return text, _has_markup(text)


def _has_markup(text: str) -> bool:
    return "&lt" in text and "&gt" in text
