"""The small tables beside a corpus: a manifest vouches for each, a dataclass says what its columns are.

Unlike the tables of results, these may be empty: a corpus of which nothing was rejected has a header and no rows.
"""

from dataclasses import asdict, dataclass
from typing import Literal

from hatchery.artifacts.manifests import Manifest
from hatchery.artifacts.records import Record, read_records
from hatchery.corpora.corpus_writer import ASSUMED
from hatchery.corpora.documents import Split
from hatchery.errors import ManifestError
from hatchery.settings.base import Natural

MEASURES = ("documents", "sentences", "words", "characters")
STATISTICS = "statistics.csv"

Counts = dict[str, int]
"""Numbers by measure."""


@dataclass(frozen=True)
class _Sizes(Record):
    source: str
    split: Split
    documents: Natural
    sentences: Natural
    words: Natural
    characters: Natural


@dataclass(frozen=True)
class _Subwords(Record):
    split: Split
    source: str
    subwords: Natural


@dataclass(frozen=True)
class _Sample(Record):
    source: str
    outcome: Literal["accepted", "rejected"]
    reason: str
    text: str


@dataclass(frozen=True)
class Rejected(Record):
    """How often something of a source was left out for one reason."""

    source: str
    reason: str
    count: Natural


@dataclass(frozen=True)
class Assumed(Record):
    """How often a reader decided something by itself, such as what the lines of a file are."""

    source: str
    assumption: str
    count: Natural


@dataclass(frozen=True)
class RejectedText:
    """An example of what was left out."""

    source: str
    reason: str
    text: str


@dataclass(frozen=True)
class Selection(Record):
    """What a corpus of sequences took from one source at one level (sentence or span)."""

    selection: str
    source: str
    level: str
    texts: Natural
    words: Natural
    counted_words: Natural
    """Words that the filter compared with the vocabulary."""


def read_statistics(manifest: Manifest) -> dict[tuple[str, str], Counts]:
    """The counts of a corpus by (source, split), in the order of the table."""
    rows = read_records(manifest.file(STATISTICS), _Sizes, ("source", "split"))
    return {(row.source, row.split): {measure: asdict(row)[measure] for measure in MEASURES} for row in rows}


def read_token_statistics(tokens: Manifest, corpus: Manifest) -> dict[tuple[str, str], int]:
    """Subwords by (source, split) from the manifest of the stage `encode_corpus`.

    Raises ManifestError when the tokens were made from another corpus than `corpus`.
    """
    if tokens.inputs.get("corpus") != corpus.digest:
        raise ManifestError(f"{tokens.path}: these tokens were not made from the corpus {corpus.path}")
    rows = read_records(tokens.file(STATISTICS), _Subwords, may_be_empty=True)
    return {(row.source, row.split): row.subwords for row in rows}


def read_rejected(manifest: Manifest) -> list[Rejected]:
    """What was left out, in the order of the table."""
    return read_records(manifest.file("rejected.csv"), Rejected, may_be_empty=True)


def read_assumed(manifest: Manifest) -> list[Assumed]:
    """The table `assumed.csv` where the corpus has one, otherwise nothing."""
    return read_records(manifest.file(ASSUMED), Assumed) if manifest.listed(ASSUMED) else []


def read_rejected_texts(manifest: Manifest) -> list[RejectedText]:
    """Examples of what was left out, in the order of the table."""
    rows = read_records(manifest.file("samples.csv"), _Sample, may_be_empty=True)
    return [RejectedText(row.source, row.reason, row.text) for row in rows if row.outcome == "rejected"]


def read_selections(manifest: Manifest) -> list[Selection]:
    """The table `selections.csv` where the corpus has one, otherwise nothing."""
    if not manifest.listed("selections.csv"):
        return []
    return read_records(manifest.file("selections.csv"), Selection, may_be_empty=True)
