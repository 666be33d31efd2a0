"""Settings of beam search for translation."""

from dataclasses import dataclass

from hatchery.settings.base import Count, Natural, Positive, Settings


@dataclass(frozen=True)
class SearchSettings(Settings):
    """Settings of beam search for translation."""

    beam: Count = 5
    """Beam size: number of unfinished translations that are kept in each step."""
    length_factor: Positive = 1.2
    """Maximum number of tokens of a translation per source token, before `extra_length` is added."""
    extra_length: Natural = 10
    """Number of tokens added to the maximum length of a translation."""

    def longest(self, source_tokens: int) -> int:
        """Return the maximum number of tokens of a translation, including the end token.

        `source_tokens` is the number of tokens of the source without its end token.
        """
        return max(1, int(self.length_factor * source_tokens) + self.extra_length)
