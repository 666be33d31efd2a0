"""What a model is asked of a suite: an item, and the texts of which it should prefer one.

An item has any number of candidates. Of each, what is scored may stand behind a prefix, which is given: one for all of
them, or one for each. A minimal pair has two and no prefix.
"""

from dataclasses import dataclass

BY_PAIR = "_by_pair"
"""Ends the name of a suite in the row of accuracies in which all pairs weigh the same."""


@dataclass(frozen=True, order=True)
class Candidate:
    """A text that a model may prefer: `completion` is scored, `prefix` is given."""

    completion: str
    prefix: str = ""

    @property
    def text(self) -> str:
        """All of it."""
        return self.prefix + self.completion


@dataclass(frozen=True)
class Item:
    """Candidates of which the model should prefer the first."""

    paradigm: str
    phenomenon: str
    item_id: str
    candidates: tuple[Candidate, ...]
    field: str = ""
    preference: float | None = None
    """Instead of a right answer, the share of people who prefer the first."""
    place: int = 0
    """Index of the right candidate in the row of the file, whose other candidates follow here in their order."""

    @property
    def identical(self) -> bool:
        """Whether another candidate is the same text as the right one: no model can tell the two apart.

        Seven pairs of BLiMP are such.
        """
        return self.candidates[0] in self.candidates[1:]

    @property
    def is_pair(self) -> bool:
        """Whether it is a minimal pair: two sentences, scored as they are."""
        return len(self.candidates) == 2 and not any(candidate.prefix for candidate in self.candidates)


def minimal_pair(paradigm: str, phenomenon: str, pair_id: str, good: str, bad: str, field: str = "") -> Item:
    """Two sentences of which the model should prefer the good one."""
    return Item(paradigm, phenomenon, pair_id, (Candidate(good), Candidate(bad)), field)
