"""Licence and terms of raw inputs, which the cards of corpora and exported models show."""

from dataclasses import dataclass

from hatchery.settings.base import Settings


@dataclass(frozen=True)
class SourceTerms(Settings):
    """Licence, terms and origin of a raw input, which users of a corpus or a model must know."""

    name: str
    """Name of the raw input in the configuration; several sources of a corpus may have the same raw input."""
    licence: str = ""
    """Name of the licence; empty if unknown."""
    terms: str = ""
    """Permitted uses of the raw input."""
    obtain: str = ""
    """Instructions to obtain the raw input."""
