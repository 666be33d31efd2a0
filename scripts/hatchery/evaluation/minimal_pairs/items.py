"""Items of a suite: each item lists candidate texts, and a model should prefer the correct one.

An item has any number of candidates. The scored part of a candidate may follow a prefix, and candidates may have
different prefixes. A minimal pair has two candidates and no prefix.
"""

from dataclasses import dataclass

BY_PAIR = "_by_pair"
"""Suffix of the suite's name in the row of accuracies in which all pairs have equal weights."""


@dataclass(frozen=True, order=True)
class Candidate:
    """A text that a model may prefer: `completion` is scored, after the context `prefix`."""

    completion: str
    prefix: str = ""

    @property
    def text(self) -> str:
        """The text of prefix and completion."""
        return self.prefix + self.completion


@dataclass(frozen=True)
class Item:
    """An item of a suite: candidates of which the model should prefer the first."""

    paradigm: str
    phenomenon: str
    item_id: str
    candidates: tuple[Candidate, ...]
    field: str = ""
    preference: float | None = None
    """Fraction of people who prefer the first candidate; only for items without a correct answer."""
    place: int = 0
    """Index of the correct candidate in the file's row. `candidates` lists the correct candidate first, and the others
    in the row's order.
    """

    @property
    def identical(self) -> bool:
        """Return True if another candidate has the same text as the correct candidate, so that no model can distinguish
        them.

        BLiMP has seven pairs with identical sentences.
        """
        return self.candidates[0] in self.candidates[1:]

    @property
    def is_pair(self) -> bool:
        """True if the item is a minimal pair: two sentences without prefixes."""
        return len(self.candidates) == 2 and not any(candidate.prefix for candidate in self.candidates)


def minimal_pair(paradigm: str, phenomenon: str, pair_id: str, good: str, bad: str, field: str = "") -> Item:
    """Return an item of two sentences, the good one first."""
    return Item(paradigm, phenomenon, pair_id, (Candidate(good), Candidate(bad)), field)
