"""The statistics tables of a corpus. The corpus's manifest lists the tables, and a dataclass defines the columns of
each table.

A table may have no rows: if no document was rejected, the table of rejected documents has only a header. As in Table 1
of the LTG-BERT paper, sizes are listed by source and split. They are compared with published sizes of the same corpus,
source, split and measure; differences are in percent of the published size.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from hatchery.artifacts.manifests import Manifest
from hatchery.artifacts.records import Record, read_records
from hatchery.corpora.corpus_writer import ASSUMED, LICENCES
from hatchery.corpora.documents import SPLITS, Split
from hatchery.corpora.duplicates import DUPLICATES
from hatchery.errors import ManifestError
from hatchery.settings.base import Natural, NonNegative

MEASURES = ("documents", "sentences", "words", "characters")
STATISTICS = "statistics.csv"

Counts = dict[str, int]
"""Numbers by measure, such as `documents` or `words`."""


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
    """Number of texts of a source that were rejected for one reason."""

    source: str
    reason: str
    count: Natural


@dataclass(frozen=True)
class Assumed(Record):
    """Number of automatic decisions of one kind that a corpus reader made, for example on the meaning of a file's
    lines.
    """

    source: str
    assumption: str
    count: Natural


@dataclass(frozen=True)
class Licensed(Record):
    """Numbers of documents, words and characters of a source under one licence. The licence is empty for documents
    without a licence.
    """

    source: str
    licence: str
    documents: Natural
    words: Natural
    characters: Natural


@dataclass(frozen=True)
class Repeated(Record):
    """Numbers of all documents, of repeated documents, of all long lines (at least 100 characters), and of repeated
    long lines in a source and split. A repeated document or line has a text that occurs earlier in the corpus.

    Rows of held-out splits also contain the numbers of documents and long lines whose text occurs in the training
    split.
    """

    source: str
    split: Split
    documents: Natural
    repeated_documents: Natural
    documents_in_training: Natural
    long_lines: Natural
    repeated_long_lines: Natural
    long_lines_in_training: Natural


@dataclass(frozen=True)
class RejectedText:
    """An example of rejected text."""

    source: str
    reason: str
    text: str


@dataclass(frozen=True)
class Selection(Record):
    """Numbers of texts and words that a selection took from one source at one level (sentence or span), in a corpus of
    sequences.
    """

    selection: str
    source: str
    level: str
    texts: Natural
    words: Natural
    counted_words: Natural
    """Number of words that the filter compared with the vocabulary."""


def read_statistics(manifest: Manifest) -> dict[tuple[str, str], Counts]:
    """Read the numbers of documents, sentences, words and characters of a corpus by (source, split), in the order of
    the rows of `statistics.csv`.
    """
    rows = read_records(manifest.file(STATISTICS), _Sizes, ("source", "split"))
    return {(row.source, row.split): {measure: asdict(row)[measure] for measure in MEASURES} for row in rows}


def read_token_statistics(tokens: Manifest, corpus: Manifest) -> dict[tuple[str, str], int]:
    """Read the number of subwords by (source, split) from the `statistics.csv` of the stage `encode_corpus`.

    Raises ManifestError if the tokens were not made from `corpus`.
    """
    if tokens.inputs.get("corpus") != corpus.digest:
        raise ManifestError(
            f"{tokens.path}: the tokens were encoded from another corpus than {corpus.path}; encode this corpus again"
        )
    rows = read_records(tokens.file(STATISTICS), _Subwords, may_be_empty=True)
    return {(row.source, row.split): row.subwords for row in rows}


def read_rejected(manifest: Manifest) -> list[Rejected]:
    """Read the numbers of rejected texts by source and reason, in the order of the rows of `rejected.csv`."""
    return read_records(manifest.file("rejected.csv"), Rejected, may_be_empty=True)


def read_assumed(manifest: Manifest) -> list[Assumed]:
    """Read the table `assumed.csv`; empty if the corpus has no such table."""
    return read_records(manifest.file(ASSUMED), Assumed) if manifest.listed(ASSUMED) else []


def read_licences(manifest: Manifest) -> list[Licensed]:
    """Read the table `licences.csv`; empty if the corpus has no such table."""
    return read_records(manifest.file(LICENCES), Licensed, may_be_empty=True) if manifest.listed(LICENCES) else []


def read_repeated(manifest: Manifest) -> list[Repeated]:
    """Read the table `duplicates.csv`; empty if the corpus has no such table."""
    return read_records(manifest.file(DUPLICATES), Repeated) if manifest.listed(DUPLICATES) else []


def read_rejected_texts(manifest: Manifest) -> list[RejectedText]:
    """Read the examples of rejected text, in the order of the rows of `samples.csv`."""
    rows = read_records(manifest.file("samples.csv"), _Sample, may_be_empty=True)
    return [RejectedText(row.source, row.reason, row.text) for row in rows if row.outcome == "rejected"]


def read_selections(manifest: Manifest) -> list[Selection]:
    """Read the table `selections.csv`; empty if the corpus has no such table."""
    if not manifest.listed("selections.csv"):
        return []
    return read_records(manifest.file("selections.csv"), Selection, may_be_empty=True)


ALL = "(all)"
_SCALES = {"count": 1.0, "": 1.0, "thousand": 1e3, "million": 1e6, "billion": 1e9}
_SPLIT_NAMES = {"development": "dev", "validation": "dev", "valid": "dev"}
_WHOLE = frozenset({"", "all", "total", ALL})

SizeTable = dict[tuple[str, str], Counts]
"""Corpus sizes by (source, split). `ALL` as a source or a split marks the sum."""


@dataclass(frozen=True)
class PublishedSize(Record):
    """A row of the table of published corpus sizes. `value` is None if a paper mentions a size without a number."""

    paper: str
    table: str
    corpus: str
    source: str
    split: str
    measure: str
    value: NonNegative | None
    unit: Literal["", "count", "thousand", "million", "billion"]
    note: str

    @property
    def size(self) -> float | None:
        """The published size multiplied by its unit, such as a million."""
        return None if self.value is None else round(self.value * _SCALES[self.unit], 6)


@dataclass(frozen=True)
class ComparedSize:
    """A published corpus size and our size. `ours` is None if our size was not measured."""

    table: str
    source: str
    split: str
    measure: str
    ours: float | None
    published: float | None
    note: str

    @property
    def difference_percent(self) -> float | None:
        """Our size minus the published size, in percent of the published size."""
        if self.ours is None or not self.published:
            return None
        return round(100 * (self.ours - self.published) / self.published, 1)


def size_table(
    counts: Mapping[tuple[str, str], Counts], subwords: Mapping[tuple[str, str], int] | None = None
) -> SizeTable:
    """Return the corpus sizes with their sums over sources and splits. A row without documents is omitted, unless it is
    the sum over all sources and splits.

    If `subwords` is given, rows also contain the number of subwords (0 if unknown).
    """
    sources = [*dict.fromkeys(source for source, _ in counts), ALL]
    measures = [*next(iter(counts.values()), {}), *([] if subwords is None else ["subwords"])]
    table: SizeTable = {(source, split): dict.fromkeys(measures, 0) for source in sources for split in (*SPLITS, ALL)}
    for (source, split), found in counts.items():
        row = {**found} if subwords is None else {**found, "subwords": subwords.get((source, split), 0)}
        for key in ((source, split), (source, ALL), (ALL, split), (ALL, ALL)):
            for measure, value in row.items():
                table[key][measure] += value
    return {key: row for key, row in table.items() if row["documents"] or key == (ALL, ALL)}


def sources_of(table: SizeTable) -> list[str]:
    """Return the names of the sources that contain documents, in the order of `table`."""
    return [source for source, split in table if split == ALL and source != ALL]


def splits_of(table: SizeTable) -> list[str]:
    """Return the names of the splits that contain documents."""
    return [split for split in SPLITS if (ALL, split) in table]


def selection_sizes(selections: Sequence[Selection], sizes: SizeTable) -> SizeTable:
    """Return the sizes of the selected texts by (source, level), with their sums over sources, over levels, and over
    both sources and levels. A level is `sentence` or `span`.

    In a corpus of sequences, the source of a document (sequence) is the name of a selection. The row of a selection in
    `sizes` therefore contains the numbers of its sequences (`documents`) and subwords (`tokens`). If a selection has
    several sources or levels, only the sums of these numbers are known, and the result lacks them. Sums that would
    include unknown numbers are omitted.
    """
    table: SizeTable = {}
    lacking: set[tuple[tuple[str, str], str]] = set()
    for item in selections:
        row: dict[str, int | None] = {"texts": item.texts, "words": item.words, "counted_words": item.counted_words}
        alone = sum(other.selection == item.selection for other in selections) == 1
        made = sizes.get((item.selection, ALL), {}) if alone else {}
        row |= {"documents": made.get("documents"), "tokens": made.get("subwords")}
        for key in ((item.source, item.level), (item.source, ALL), (ALL, item.level), (ALL, ALL)):
            total = table.setdefault(key, dict.fromkeys(row, 0))
            for measure, value in row.items():
                total[measure] += value or 0
                if value is None:
                    lacking.add((key, measure))
    for key, measure in lacking:
        del table[key][measure]
    return table


def compare_sizes(path: Path, corpus: str, table: SizeTable, selections: SizeTable) -> list[ComparedSize]:
    """Return the published sizes of `corpus` with our sizes, in the order of the file `path`.

    The column `split` of the file may also name a level of `selections` (sentence, span). The measures `texts`,
    `sentences` and `spans` then all mean the number of selected texts. Raises the EvaluationError of
    `read_published_sizes`.
    """
    return [_compared(row, table, selections) for row in read_published_sizes(path) if row.corpus == corpus]


def read_published_sizes(path: Path) -> list[PublishedSize]:
    """Read all published corpus sizes. Raises EvaluationError, naming file and line, if the file is not a table of
    published sizes.
    """
    return read_records(path, PublishedSize, ("paper", "table", "corpus", "source", "split", "measure"))


def _compared(row: PublishedSize, table: SizeTable, selections: SizeTable) -> ComparedSize:
    key = place_of(row)
    return ComparedSize(
        table=" ".join(part for part in (row.paper, row.table) if part),
        source=key[0],
        split=key[1],
        measure=row.measure,
        ours=_ours(key, row.measure, table, selections),
        published=row.size,
        note=row.note,
    )


def _ours(key: tuple[str, str], measure: str, table: SizeTable, selections: SizeTable) -> float | None:
    # If a corpus consists of selected texts, the paper counts these texts, not the training sequences made from them.
    name = "texts" if measure in ("sentences", "spans", "sentences_or_spans") else measure
    if name in selections.get(key, {}):
        return selections[key][name]
    return table.get(key, {}).get(measure)


def place_of(row: PublishedSize) -> tuple[str, str]:
    """Return the key (source, split) or (source, level) of our size that corresponds to a published size."""
    return _place(row.source), _SPLIT_NAMES.get(row.split, _place(row.split))


def _place(name: str) -> str:
    return ALL if name.lower() in _WHOLE else name
