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
    conflict,
    omitted_at_default,
)
from hatchery.settings.fields import DataName, Unique

SplitName = Literal["train", "dev", "test"]
Splits = Annotated[tuple[SplitName, ...], MinLen(1), Unique()]
ENGLISH = "english"
"""The language of the sentence model that comes with Hatchery."""


@dataclass(frozen=True)
class SplitSettings(Settings):
    """Development and test documents. A seeded hash selects these documents unless the source has its own split."""

    development_fraction: Annotated[float, Range(ge=0, lt=1)] = 0.02
    """Share of the documents in the development split."""
    test_fraction: Annotated[float, Range(ge=0, lt=1)] = 0.0
    """Share of the documents in the test split; all other documents are in the training split."""
    seed: Natural = 0
    """Random seed of the hash that selects the documents."""
    development_documents: Natural | None = None
    """Number of development documents that the hash selects, instead of `development_fraction`. The number can be
    larger, because all documents with the text of the last selected document are selected, too. `null` uses
    `development_fraction`.
    """

    def __post_init__(self) -> None:
        held_out = self.development_fraction + self.test_fraction
        if held_out >= 1:
            raise RefusedError(
                "", f"the sum of development_fraction and test_fraction: got {held_out:g}, expected less than 1"
            )


@dataclass(frozen=True, kw_only=True)
class Sharded(Settings):
    """Key of every corpus: the size of its shards."""

    documents_per_shard: Count = 10_000
    """Number of documents in one Parquet file."""


@dataclass(frozen=True)
class SourceSettings(Settings):
    """One source of a corpus, and the reader of its files."""

    name: str
    """Name of the source in the corpus. Under this name, the stage's input `source` contains the path of the source's
    manifest.
    """
    reader: str
    """Name of the reader."""
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Options of the reader."""


@dataclass(frozen=True, kw_only=True)
class DecontaminationSettings(Settings):
    """Removal of training lines that share several consecutive words with evaluation data."""

    data: Annotated[tuple[DataName, ...], MinLen(1), Unique()]
    """Raw inputs with evaluation data, by their names under `data` in config.yaml. All strings of JSON files (.json,
    .jsonl), except for keys of objects, and all lines of other files are evaluation text."""
    words: Annotated[int, Range(ge=2)] = 13
    """Number of consecutive words that a removed line shares with an evaluation text; case and punctuation are ignored.
    Evaluation texts with fewer words have no effect.
    """


@dataclass(frozen=True, kw_only=True)
class NearDuplicatesSettings(Settings):
    """Removal of documents that share most of their word n-grams with an earlier document. Similarity is the Jaccard
    index of two documents: the number of n-grams that occur in both documents, divided by the number of n-grams that
    occur in at least one of the documents.
    """

    similarity: Annotated[float, Range(ge=0.5, le=0.95)] = 0.8
    """Similarity to an earlier document from which on a document is left out."""
    words: Count = 5
    """Number n of consecutive words in an n-gram; case and punctuation are ignored. Documents with fewer words are
    kept.
    """
    permutations: Annotated[int, Range(ge=32, le=1024)] = 128
    """Number of MinHash permutations. More permutations miss fewer near duplicates, and need more time and memory."""


@dataclass(frozen=True, kw_only=True)
class ConversionKeys(Sharded):
    """Keys of a corpus that is converted from raw sources, except for the key that lists the sources."""

    duplicates: Literal["keep", "drop_documents", "drop_lines"] = "keep"
    """Treatment of text that occurs earlier in the corpus. `keep` keeps and only counts this text. `drop_documents`
    keeps the first of several documents with the same text. `drop_lines` also drops repeated lines of 100 characters or
    more.
    """
    decontamination: DecontaminationSettings | None = omitted_at_default(None)
    """Removal of training lines that share several consecutive words with evaluation data; `null` keeps all lines."""
    near_duplicates: NearDuplicatesSettings | None = omitted_at_default(None)
    """Removal of documents that resemble an earlier document; `null` keeps all documents."""
    split: SplitSettings = dataclasses.field(default_factory=SplitSettings)
    """Development and test documents, selected by a seeded hash unless the source has its own split."""
    sentence_reading: ReadingName = "corrected"
    """Sentence boundaries. `as_published` uses all boundaries of NLTK's Punkt; `corrected` uses only the boundaries at
    white space.
    """


@dataclass(frozen=True, kw_only=True)
class ConvertSettings(ConversionKeys):
    """A corpus: its sources, splits and shard size."""

    sources: Annotated[tuple[SourceSettings, ...], MinLen(1)]
    """Sources, in the order in which the corpus contains their documents."""
    sentence_model: str | None = None
    """Name of a source with Punkt parameters; `null` uses the model that comes with Hatchery."""
    languages: tuple[str, ...] | None = None
    """Languages of the user's own text; empty if the languages are unknown. `null` if the corpus contains no text of
    the user, or if options set the sentence splitting of all this text.
    """

    def __post_init__(self) -> None:
        refuse_repeated_names(self.sources)


def refuse_repeated_names(sources: Any) -> None:
    """Raise RefusedError if two sources have the same name."""
    for name, count in Counter(source.name for source in sources).items():
        if count > 1:
            raise RefusedError("sources", f"got {count} sources called {name!r}, expected different names")


@dataclass(frozen=True, kw_only=True)
class SampleKeys(Settings):
    """Settings of a sample: documents drawn from another corpus, up to a number of characters or bytes."""

    size_of_splits: Splits = ("train", "dev", "test")
    """Splits of the corpus `size_of` whose characters are counted."""
    seed: Natural = 0
    """Random seed of the sample."""
    drawn_splits: Splits = omitted_at_default(("train", "dev", "test"))
    """Splits from which documents are drawn; all documents of other splits are kept. If the only drawn split is train,
    samples of several sizes have the same development text.
    """


@dataclass(frozen=True, kw_only=True)
class SamplePart(Settings):
    """One part of a sample: some sources of the corpus, and the number of bytes to draw from these sources."""

    sources: Annotated[tuple[str, ...], MinLen(1), Unique()]
    """Names of sources of the corpus; documents of these sources are drawn together."""
    bytes: Count
    """Maximum number of bytes (UTF-8) to draw."""


@dataclass(frozen=True, kw_only=True)
class SampleSettings(SampleKeys, Sharded):
    """Settings of a sample: its size, and the splits of its documents."""

    characters: Count | None = None
    """Number of characters to draw; `null` uses `parts` or the number of characters of the corpus `size_of`."""
    parts: dict[str, SamplePart] | None = None
    """Parts of the sample by name, with a number of bytes each, instead of a number of characters; sources in no part
    are left out."""
    split: SplitSettings | None = None
    """New splits for the drawn documents; `null` keeps the splits that the documents have in the corpus."""

    def __post_init__(self) -> None:
        if self.split is not None and self.drawn_splits != SampleKeys.drawn_splits:
            raise conflict("split", self.split, "`drawn_splits`", "documents of other splits keep their split")


Amount = Natural | Annotated[float, Range(ge=0, lt=1)]


def number_of(amount: float, total: int) -> int:
    """Return a number of sequences: `amount` itself if it is an integer, otherwise this share of `total`, rounded to
    the nearest integer.
    """
    return int(amount * total + 0.5) if isinstance(amount, float) else amount


@dataclass(frozen=True)
class SequenceLength(Settings):
    """Maximum length of a sequence: a number of tokens, and the mean number of tokens per word, which converts words to
    tokens.
    """

    tokens: Count = 128
    """Length of the model's input in tokens."""
    tokens_per_word: Positive = 1.2
    """Mean number of tokens (subwords) per word, as estimated in the reduced-vocabulary paper."""

    def holds(self, words: int) -> bool:
        """Return True if a sequence may have this number of words."""
        return words * self.tokens_per_word < self.tokens


@dataclass(frozen=True, kw_only=True)
class SequenceGroup(Settings):
    """Selections of sentences, or selections of spans. The texts of these selections are grouped together into
    sequences.
    """

    level: Literal["sentence", "span"]
    """Kind of the selected texts: sentences or spans."""
    selections: Annotated[tuple[str, ...], MinLen(1), Unique()]
    """Names of the text selections, in the order in which their texts are grouped into sequences."""
    quotas: dict[str, Count] = dataclasses.field(default_factory=dict)
    """Number of texts drawn from each selection before grouping; selections without a quota contribute all texts."""
    maximum_sequences: Count | None = None
    """Maximum number of sequences; `null` groups all texts."""
    development: Amount = 0
    """Number of development sequences or, with a decimal point, their share of the group's sequences."""
    test: Amount = 0
    """Number of test sequences or, with a decimal point, their share of the group's sequences."""
    set_aside: Amount = 0
    """Number of sequences that are not used or, with a decimal point, their share of the group's sequences."""

    def __post_init__(self) -> None:
        for name in self.quotas:
            if name not in self.selections:
                raise RefusedError(
                    f"quotas.{name}",
                    f"got the name {name!r}, expected a selection of the same group: {', '.join(self.selections)}",
                )


@dataclass(frozen=True, kw_only=True)
class SequenceKeys(Settings):
    """Grouping of selected texts into sequences of a model's input length."""

    reading: ReadingName = "corrected"
    """Version of the grouping. `as_published` reproduces the grouping of the reduced-vocabulary paper's code with its
    errors; `corrected` fixes these errors.
    """
    seed: Natural = 0
    """Random seed for drawing the texts of `quotas` and the held-out sequences. With the reading `as_published`, the
    seed also determines the order of the texts.
    """
    length: SequenceLength = dataclasses.field(default_factory=SequenceLength)
    """Maximum length of a sequence."""
    groups: Annotated[tuple[SequenceGroup, ...], MinLen(1)]
    """Groups of text selections. The corpus contains the sequences of the groups in this order."""

    def __post_init__(self) -> None:
        for what, names in (("selection", self.selections), ("level", [group.level for group in self.groups])):
            if len(set(names)) < len(names):
                raise RefusedError("groups", f"got the {what}s {', '.join(names)}, expected each {what} only once")

    @property
    def selections(self) -> list[str]:
        """Names of all text selections, in the order in which their texts are grouped into sequences."""
        return [name for group in self.groups for name in group.selections]


@dataclass(frozen=True, kw_only=True)
class SequenceSettings(SequenceKeys, Sharded):
    """A corpus of sequences."""
