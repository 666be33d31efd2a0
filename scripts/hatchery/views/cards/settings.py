"""Settings of the card of a corpus."""

from dataclasses import dataclass

from hatchery.corpora.word_counting import BETWEEN_WHITE_SPACE, WordCounting
from hatchery.errors import ConfigError
from hatchery.raw.terms import SourceTerms
from hatchery.settings.base import Settings, omitted_at_default


@dataclass(frozen=True)
class CardSettings(Settings):
    """Settings of one corpus card."""

    corpus: str
    """Name of the corpus."""
    description: str = ""
    """One or two sentences about the corpus, as in its configuration."""
    languages: tuple[str, ...] = ()
    """ISO 639 codes of the languages of the corpus; empty if the configuration does not state them."""
    sources: tuple[SourceTerms, ...] = ()
    """Licence and origin of the raw inputs, in the order in which the card lists them."""
    counting: WordCounting = omitted_at_default(BETWEEN_WHITE_SPACE)
    """The rule by which budgets and tracks count the words of the corpus."""
    published_as: str = ""
    """Name of the corpus in the table of published sizes; empty if the table uses the name `corpus`."""
    samples_per_source: int = 3
    """Number of sample texts per source, and of examples of excluded text per source and reason."""
    sample_characters: int = 500
    """Maximum number of characters of a shown text; longer texts are truncated."""
    top_words: int = 20
    """Number of most frequent words listed per source."""
    max_types: int = 3_000_000
    """Maximum number of distinct words in memory, divided evenly among the sources. If a source reaches its share, only
    the words counted so far are reported."""

    def __post_init__(self) -> None:
        for name, low in (("samples_per_source", 0), ("sample_characters", 20), ("top_words", 0), ("max_types", 1)):
            value = getattr(self, name)
            if value < low:
                raise ConfigError(f"{name}: expected at least {low}, got {value}")
        names = [source.name for source in self.sources]
        if len(set(names)) < len(names):
            raise ConfigError(f"sources: got the names {', '.join(names)}, expected each name only once")
