"""Licence and terms of raw inputs, for the cards of corpora and exported models."""

from dataclasses import dataclass

from hatchery.settings.base import Settings


@dataclass(frozen=True)
class SourceTerms(Settings):
    """Licence, terms and origin of a raw input, which users of a corpus or model must know."""

    name: str
    """Name of the raw input in the configuration; several sources of a corpus may use one raw input."""
    licence: str = ""
    """Name of the licence; empty if unknown."""
    terms: str = ""
    """Permitted uses of the source."""
    obtain: str = ""
    """Instructions to obtain the source."""
