"""The terms of use of a raw input, for the cards of corpora and of exported models."""

from dataclasses import dataclass

from hatchery.settings.base import Settings


@dataclass(frozen=True)
class SourceTerms(Settings):
    """Facts that a reader of a card must know before using a raw input."""

    name: str
    """Name of the raw input in the configuration; several sources of a corpus may come from one."""
    licence: str = ""
    """Name of the licence, empty where none is known."""
    terms: str = ""
    """Permitted uses of the source."""
    obtain: str = ""
    """Origin of the source."""
