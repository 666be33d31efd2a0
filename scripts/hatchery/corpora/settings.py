"""What the stages that convert and sample are told: sources, splits, samples."""

import dataclasses
from collections import Counter
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from annotated_types import MinLen

from hatchery.settings.base import Count, Natural, Range, ReadingName, RefusedError, Settings
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
    """What all corpora say."""

    documents_per_shard: Count = 10_000
    """Documents of one Parquet file."""


@dataclass(frozen=True)
class SourceSettings(Settings):
    """One source of a corpus and how it is read."""

    name: str
    """Name of the source in the corpus; the command's `--source NAME=path` says where its manifest lies."""
    reader: str
    """Name of the reader."""
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Options of that reader."""


@dataclass(frozen=True, kw_only=True)
class ConversionKeys(Sharded):
    """How a corpus is made of sources, beside the sources themselves."""

    split: SplitSettings = dataclasses.field(default_factory=SplitSettings)
    """Documents are drawn for development and test by a seeded hash, unless the source says the split."""
    sentence_reading: ReadingName = "corrected"
    """as_published cuts sentences where NLTK's Punkt cuts, corrected only at white space."""


@dataclass(frozen=True, kw_only=True)
class ConvertSettings(ConversionKeys):
    """A corpus: its sources, how documents are split, and how large a shard is."""

    sources: Annotated[tuple[SourceSettings, ...], MinLen(1)]
    """The sources, in the order of the documents."""
    sentence_model: str | None = None
    """Name of a source with Punkt parameters; null takes the model that comes with Hatchery."""
    languages: tuple[str, ...] = ()
    """Languages of the text, where text of one's own is read; empty where they are not known."""

    def __post_init__(self) -> None:
        refuse_repeated_names(self.sources)


def refuse_repeated_names(sources: Any) -> None:
    """Refuse sources of which two have one name."""
    for name, count in Counter(source.name for source in sources).items():
        if count > 1:
            raise RefusedError("sources", f"the name {name!r} is given {count} times, expected once")


@dataclass(frozen=True, kw_only=True)
class SampleKeys(Settings):
    """How documents of another corpus are drawn, until their characters are enough."""

    size_of_splits: Splits = ("train", "dev", "test")
    """The splits of the corpus `size_of` that count."""
    seed: Natural = 0
    """Seed of the drawing."""


@dataclass(frozen=True, kw_only=True)
class SampleSettings(SampleKeys, Sharded):
    """How much is drawn, and what becomes of the splits."""

    characters: Count | None = None
    """Number of characters to reach; null takes that of the corpus `size_of`."""
    split: SplitSettings | None = None
    """New splits for the drawn documents; null keeps those that they have."""
