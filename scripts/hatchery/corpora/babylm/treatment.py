"""What every BabyLM normaliser gets beside its lines: which of the two readings is wanted, and where losses are told.

Source: docs/papers/elc-bert.md, "Cleaning of text" and "Treatment of the corpora". `as_published` gives the bytes of
the published scripts, with what they lose and garble, as far as the golden files and that page show; `corrected`
mends that. Where a docstring says "inferred", we concluded from the order of the steps what the scripts do, and nothing
else shows it. Every line of text that a normaliser leaves out is counted, in both readings.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hatchery.corpora.babylm.shared import collapse, without_subtitle_tags
from hatchery.corpora.cleaning import BABYLM_PUBLISHED_RULES, BABYLM_RULES, clean, clean_minimal
from hatchery.corpora.documents import Rejections


@dataclass(frozen=True)
class Treatment:
    """One of the two readings, and the account of what is left out."""

    corrected: bool
    """Whether the published losses are mended; what that means says the docstring of each corpus."""
    rejections: Rejections
    """Takes the lines that are left out, by reason."""

    def full(self, line: str) -> str:
        """The line after the full cleaning. As published, it can hold newlines, and ’ counts as a closing quote."""
        return collapse(clean(line, BABYLM_RULES)) if self.corrected else clean(line, BABYLM_PUBLISHED_RULES)

    def minimal(self, line: str) -> str:
        """The line after the minimal cleaning. As published, it can hold newlines and no-break spaces."""
        return collapse(clean_minimal(line)) if self.corrected else clean_minimal(line)

    def subtitle(self, line: str) -> str:
        """The line after the minimal cleaning and, corrected, without the tags that set its type."""
        text = self.minimal(line)
        if not self.corrected or "<" not in text:
            return text
        plain = without_subtitle_tags(text)
        # Again, because the cleaning leaves entities alone on a line that holds a `<`.
        return text if plain == text else self.minimal(plain)

    def keeps(self, text: str, line: str) -> bool:
        """Whether a raw line goes on that the cleaning has made `text`.

        Corrected, a line with nothing left vanishes; as published it is a boundary or a pair of quotes (inferred).
        """
        if text or not self.corrected:
            return True
        self.leave_out("nothing left after cleaning", line)
        return False

    def leave_out(self, reason: str, line: str) -> None:
        """Count a line that does not appear in the output."""
        self.rejections.count(reason, sample=line)

    def without_repeats(self, lines: Iterable[str], across_boundaries: bool = False) -> Iterator[str]:
        """The lines without those equal to the line before, which a boundary forgets unless `across_boundaries`."""
        previous = ""
        for line in lines:
            if not line:
                previous = previous if across_boundaries else ""
            elif line == previous:
                self.leave_out("repeated line", line)
                continue
            else:
                previous = line
            yield line
