"""What a corpus of sequences may be told: selections of text, how they are grouped, and how much is held out."""

import dataclasses
from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import MinLen

from hatchery.corpora.settings import Sharded
from hatchery.settings.base import Count, Natural, Positive, Range, ReadingName, RefusedError, Settings
from hatchery.settings.fields import Unique

Amount = Natural | Annotated[float, Range(ge=0, lt=1)]


@dataclass(frozen=True)
class SequenceLength(Settings):
    """How long a sequence may become, in subwords and in subwords per word."""

    tokens: Count = 128
    """Length of the model's input."""
    tokens_per_word: Positive = 1.2
    """Subwords of a word, as the study estimates them."""

    def holds(self, words: int) -> bool:
        """Whether so many words fit."""
        return words * self.tokens_per_word < self.tokens


@dataclass(frozen=True, kw_only=True)
class SequenceGroup(Settings):
    """One level: selections whose items are grouped together, apart from those of the other levels."""

    level: Literal["sentence", "span"]
    """What is grouped."""
    selections: Annotated[tuple[str, ...], MinLen(1), Unique()]
    """Names of the selections, in grouping order."""
    quotas: dict[str, Count] = dataclasses.field(default_factory=dict)
    """So many texts of a selection, drawn before grouping; all where a selection is not named."""
    maximum_sequences: Count | None = None
    """Grouping stops after so many sequences; null groups all."""
    development: Amount = 0
    """A number of development sequences, or with a decimal point their share."""
    test: Amount = 0
    """A number of test sequences, or with a decimal point their share."""
    set_aside: Amount = 0
    """Sequences used for nothing; a number or a share."""

    def __post_init__(self) -> None:
        for name in self.quotas:
            if name not in self.selections:
                raise RefusedError(f"quotas.{name}", "there is no such selection in the group")


@dataclass(frozen=True, kw_only=True)
class SequenceKeys(Settings):
    """Selections of text, grouped into sequences of a model's input length."""

    reading: ReadingName = "corrected"
    """as_published repeats the authors' grouping, slips included."""
    seed: Natural = 0
    """Draws quotas and held-out sequences."""
    length: SequenceLength = dataclasses.field(default_factory=SequenceLength)
    """How long a sequence may become."""
    groups: Annotated[tuple[SequenceGroup, ...], MinLen(1)]
    """The levels, in the order of the sequences."""

    def __post_init__(self) -> None:
        for what, names in (("selection", self.selections), ("level", [group.level for group in self.groups])):
            if len(set(names)) < len(names):
                raise RefusedError("groups", f"a {what} occurs twice among {', '.join(names)}")

    @property
    def selections(self) -> list[str]:
        """Names of all selections, in grouping order."""
        return [name for group in self.groups for name in group.selections]


@dataclass(frozen=True, kw_only=True)
class SequenceSettings(SequenceKeys, Sharded):
    """A corpus of sequences."""


def number_of(amount: float, total: int) -> int:
    """A number of sequences: itself, or a share of the total, rounded to the nearest."""
    return int(amount * total + 0.5) if isinstance(amount, float) else amount
