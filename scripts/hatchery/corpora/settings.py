"""Settings of the stages that convert, sample and group text: sources, splits, samples, sequences."""

import dataclasses
from collections import Counter
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from annotated_types import MinLen

from hatchery.settings.base import (
    Count,
    Natural,
    Positive,
    Range,
    ReadingName,
    RefusedError,
    Settings,
)
from hatchery.settings.fields import Unique

SplitName = Literal["train", "dev", "test"]
Splits = Annotated[tuple[SplitName, ...], MinLen(1), Unique()]
ENGLISH = "english"
"""The language of the sentence model that comes with Hatchery."""


@dataclass(frozen=True)
class SplitSettings(Settings):
    """Documents are drawn for development and test by a seeded hash, unless the source says the split."""

    development_fraction: Annotated[float, Range(ge=0, lt=1)] = 0.02
    """Share of the documents that is for development."""
    test_fraction: Annotated[float, Range(ge=0, lt=1)] = 0.0
    """Share of the documents that is for the test; the rest is for training."""
    seed: Natural = 0
    """Seed of the hash."""
    development_documents: Natural | None = None
    """Exactly so many development documents instead of a fraction; null takes the fraction."""

    def __post_init__(self) -> None:
        held_out = self.development_fraction + self.test_fraction
        if held_out >= 1:
            raise RefusedError("", f"development_fraction + test_fraction is {held_out:g}, expected less than 1")


@dataclass(frozen=True, kw_only=True)
class Sharded(Settings):
    """Keys of all corpora."""

    documents_per_shard: Count = 10_000
    """Documents of one Parquet file."""


@dataclass(frozen=True)
class SourceSettings(Settings):
    """One source of a corpus and how it is read."""

    name: str
    """Name of the source in the corpus; `source` of the stage says where its manifest lies."""
    reader: str
    """Name of the reader."""
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Options of that reader."""


@dataclass(frozen=True, kw_only=True)
class ConversionKeys(Sharded):
    """Keys of a corpus that is converted, except its sources."""

    duplicates: Literal["keep", "drop_documents", "drop_lines"] = "keep"
    """What becomes of text that stands in the corpus before. keep counts it; drop_documents leaves out documents, of
    several with the same text all but the first; drop_lines also leaves out lines of 100 characters or more."""
    split: SplitSettings = dataclasses.field(default_factory=SplitSettings)
    """Documents are drawn for development and test by a seeded hash, unless the source says the split."""
    sentence_reading: ReadingName = "corrected"
    """as_published cuts sentences where NLTK's Punkt cuts, corrected only at white space."""


@dataclass(frozen=True, kw_only=True)
class ConvertSettings(ConversionKeys):
    """A corpus: its sources, splits and shard size."""

    sources: Annotated[tuple[SourceSettings, ...], MinLen(1)]
    """The sources, in the order of the documents."""
    sentence_model: str | None = None
    """Name of a source with Punkt parameters; null takes the model that comes with Hatchery."""
    languages: tuple[str, ...] | None = None
    """Languages of the user's own text; empty if they are unknown, null if the corpus has no text of the user."""

    def __post_init__(self) -> None:
        refuse_repeated_names(self.sources)


def refuse_repeated_names(sources: Any) -> None:
    """Refuse sources of which two have one name."""
    for name, count in Counter(source.name for source in sources).items():
        if count > 1:
            raise RefusedError("sources", f"the name {name!r} is given {count} times, expected once")


@dataclass(frozen=True, kw_only=True)
class SampleKeys(Settings):
    """The drawing of documents from another corpus up to a number of characters."""

    size_of_splits: Splits = ("train", "dev", "test")
    """The splits of the corpus `size_of` that count."""
    seed: Natural = 0
    """Seed of the drawing."""


@dataclass(frozen=True, kw_only=True)
class SamplePart(Settings):
    """Sources that are drawn from together, and their number of bytes."""

    sources: Annotated[tuple[str, ...], MinLen(1), Unique()]
    """Names of sources of the corpus."""
    bytes: Count
    """The most bytes (UTF-8) that are drawn."""


@dataclass(frozen=True, kw_only=True)
class SampleSettings(SampleKeys, Sharded):
    """The amount of a sample, and the splits of its documents."""

    characters: Count | None = None
    """Number of characters to reach; null uses that of the corpus `size_of`."""
    parts: dict[str, SamplePart] | None = None
    """Instead of a number of characters, the number of bytes of some of the sources; other sources are left out."""
    split: SplitSettings | None = None
    """New splits for the drawn documents; null keeps their splits."""


Amount = Natural | Annotated[float, Range(ge=0, lt=1)]


def number_of(amount: float, total: int) -> int:
    """Return a number of sequences: the amount itself, or a share of the total, rounded to the nearest integer."""
    return int(amount * total + 0.5) if isinstance(amount, float) else amount


@dataclass(frozen=True)
class SequenceLength(Settings):
    """How long a sequence may become, in subwords and in subwords per word."""

    tokens: Count = 128
    """Length of the model's input."""
    tokens_per_word: Positive = 1.2
    """Subwords of a word, as the study estimates them."""

    def holds(self, words: int) -> bool:
        """Return whether this number of words fits."""
        return words * self.tokens_per_word < self.tokens


@dataclass(frozen=True, kw_only=True)
class SequenceGroup(Settings):
    """One level: selections whose items are grouped together, separately from other levels."""

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
                raise RefusedError(f"quotas.{name}", "the group has no selection of this name")


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
