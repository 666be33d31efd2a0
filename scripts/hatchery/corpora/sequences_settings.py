"""What a corpus of sequences is made of: levels, selections, quotas, and how much is held out."""

from dataclasses import dataclass, field
from typing import Literal

from hatchery.corpora.grouping import GroupingReading, SequenceLength
from hatchery.errors import ConfigError
from hatchery.settings.fields import Settings

Amount = int | float


@dataclass(frozen=True)
class SequenceGroup(Settings):
    """One level: selections whose items are grouped together, apart from those of the other levels."""

    level: Literal["sentence", "span"]
    selections: tuple[str, ...]
    """Names of the selections, in grouping order; the command's `--selection NAME=path` says where they lie."""
    quotas: dict[str, int] = field(default_factory=dict)
    """So many items of a selection, drawn at random before grouping; all where a selection is not named."""
    maximum_sequences: int | None = None
    """Grouping stops after so many sequences."""
    development: Amount = 0
    """Number of development sequences, or (with a decimal point) their share."""
    test: Amount = 0
    """Number of test sequences, or their share."""
    set_aside: Amount = 0
    """Number of sequences that are used for nothing, or their share."""

    def __post_init__(self) -> None:
        for name, quota in self.quotas.items():
            if name not in self.selections:
                raise ConfigError(f"quotas.{name}: there is no such selection in the group")
            if quota < 1:
                raise ConfigError(f"quotas.{name}: got {quota}, expected 1 or more")
        if self.maximum_sequences is not None and self.maximum_sequences < 1:
            raise ConfigError(f"maximum_sequences: got {self.maximum_sequences}, expected 1 or more")
        for key in ("development", "test", "set_aside"):
            amount = getattr(self, key)
            if amount < 0 or (isinstance(amount, float) and amount >= 1):
                raise ConfigError(f"{key}: got {amount}, expected a number of sequences or a share below 1")


@dataclass(frozen=True)
class SequenceSettings(Settings):
    """A corpus of sequences."""

    groups: tuple[SequenceGroup, ...]
    reading: GroupingReading = "corrected"
    seed: int = 0
    length: SequenceLength = field(default_factory=SequenceLength)
    documents_per_shard: int = 100_000
    """Sequences per shard."""

    def __post_init__(self) -> None:
        names = self.selections
        if not names:
            raise ConfigError("groups: a corpus of sequences needs at least one selection")
        if len(set(names)) < len(names):
            raise ConfigError(f"groups: a selection occurs twice among {', '.join(names)}")
        levels = [group.level for group in self.groups]
        if len(set(levels)) < len(levels):
            raise ConfigError(f"groups: a level occurs twice among {', '.join(levels)}")
        if self.documents_per_shard < 1:
            raise ConfigError(f"documents_per_shard: got {self.documents_per_shard}, expected 1 or more")

    @property
    def selections(self) -> list[str]:
        """Names of all selections, in grouping order."""
        return [name for group in self.groups for name in group.selections]


def number_of(amount: Amount, total: int) -> int:
    """A number of sequences: itself, or a share of the total, rounded to the nearest."""
    return int(amount * total + 0.5) if isinstance(amount, float) else amount
