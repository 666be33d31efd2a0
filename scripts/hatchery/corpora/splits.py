"""Which split a document belongs to: drawn from its own name, so neither order nor neighbours matter.

A document that appears, vanishes or moves leaves the split of every other document as it was.
"""

import hashlib
from dataclasses import dataclass

from hatchery.corpora.documents import Split
from hatchery.errors import ConfigError


@dataclass(frozen=True)
class SplitSettings:
    """Shares of the documents that go to development and test; the rest is for training."""

    development_fraction: float = 0.05
    test_fraction: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        for key in ("development_fraction", "test_fraction"):
            if not 0 <= getattr(self, key) <= 1:
                raise ConfigError(f"split.{key}: got {getattr(self, key)}, expected a number from 0 to 1")
        if self.development_fraction + self.test_fraction > 1:
            raise ConfigError("split: development_fraction and test_fraction together exceed 1")


def assign_split(doc_id: str, settings: SplitSettings) -> Split:
    """The split of the document: a uniform number from SHA-256 of seed and name, compared with the fractions."""
    hashed = hashlib.sha256(f"{settings.seed}\n{doc_id}".encode()).digest()
    point = int.from_bytes(hashed[:8], "big") / 2**64
    if point < settings.development_fraction:
        return "dev"
    return "test" if point < settings.development_fraction + settings.test_fraction else "train"
