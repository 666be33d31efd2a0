"""The terms on which a raw input may be used, as cards of corpora and of exported models state them."""

from dataclasses import dataclass

from hatchery.settings.base import Settings


@dataclass(frozen=True)
class SourceTerms(Settings):
    """What a reader of a card must know before using a raw input."""

    name: str
    """Name of the raw input in the configuration; several sources of a corpus may come from one."""
    licence: str = ""
    """Name of the licence, empty where none is known."""
    terms: str = ""
    """What the source may be used for."""
    obtain: str = ""
    """Where the source comes from."""
