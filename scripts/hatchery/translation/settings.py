"""Settings of the search for a translation."""

from dataclasses import dataclass

from hatchery.settings.base import Count, Natural, Positive, Settings


@dataclass(frozen=True)
class SearchSettings(Settings):
    """How translations are searched for."""

    beam: Count = 5
    """Translations that are followed at once."""
    length_factor: Positive = 1.2
    """A translation has at most so many times the tokens of its source, and `extra_length` more."""
    extra_length: Natural = 10
    """So many tokens are added to that."""

    def longest(self, source_tokens: int) -> int:
        """Return the maximum number of tokens of a translation, including its end, for a source without its
        end token.
        """
        return max(1, int(self.length_factor * source_tokens) + self.extra_length)
