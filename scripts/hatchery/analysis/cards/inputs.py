"""The small tables beside a corpus, read strictly: every complaint names file, line and column.

Unlike the tables of results, these may be empty: a corpus of which nothing was rejected has a header and no rows.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hatchery.corpora.documents import SPLITS
from hatchery.errors import CorpusError, ManifestError
from hatchery.storage.csv_tables import Row
from hatchery.storage.manifests import Manifest

MEASURES = ("documents", "sentences", "words", "characters")
STATISTICS = "statistics.csv"

Counts = dict[str, int]
"""Numbers by measure."""


@dataclass(frozen=True)
class Rejected:
    """How often something of a source was left out for one reason."""

    source: str
    reason: str
    count: int


@dataclass(frozen=True)
class RejectedText:
    """An example of what was left out."""

    source: str
    reason: str
    text: str


@dataclass(frozen=True)
class Selection:
    """What a corpus of sequences took from one source at one level (sentence or span)."""

    selection: str
    source: str
    level: str
    texts: int
    words: int
    counted_words: int
    """Words that the filter compared with the vocabulary."""


def read_table(path: Path, columns: Sequence[str]) -> list[Row]:
    """The rows of a CSV file that has at least `columns`.

    Raises CorpusError when it cannot be read, is not CSV in UTF-8, lacks a column, or has a row of the wrong length.
    """
    try:
        with path.open(encoding="utf-8", newline="") as handle:
            reader = csv.reader(handle, strict=True)
            lines = [(reader.line_num, fields) for fields in reader if fields]
    except OSError as error:
        raise CorpusError(f"{path}: the table cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise CorpusError(f"{path}: not a CSV file in UTF-8: {error}") from error
    header = lines[0][1] if lines else []
    if missing := [column for column in columns if column not in header]:
        raise CorpusError(f"{path}: the table lacks the columns {', '.join(missing)}")
    rows = []
    for number, fields in lines[1:]:
        if len(fields) != len(header):
            raise CorpusError(f"{path}, line {number}: {len(fields)} fields, the header has {len(header)}")
        rows.append(Row(dict(zip(header, fields, strict=True)), f"{path}, line {number}"))
    return rows


def read_statistics(manifest: Manifest) -> dict[tuple[str, str], Counts]:
    """The counts of a corpus by (source, split), in the order of the table.

    Raises CorpusError for a doubled row or a table without any.
    """
    counts: dict[tuple[str, str], Counts] = {}
    for row in read_table(manifest.file(STATISTICS), ("source", "split", *MEASURES)):
        key = row.text("source"), row.text("split", SPLITS)
        if key in counts:
            raise CorpusError(f"{row.where}: the row of source {key[0]!r}, split {key[1]!r} stands there twice")
        counts[key] = {measure: row.count(measure) for measure in MEASURES}
    if not counts:
        raise CorpusError(f"{manifest.file(STATISTICS)}: the table has a header but no rows")
    return counts


def read_token_statistics(tokens: Manifest, corpus: Manifest) -> dict[tuple[str, str], int]:
    """Subwords by (source, split) from the manifest of the stage `encode_corpus`.

    Raises ManifestError when the tokens were made from another corpus than `corpus`.
    """
    if tokens.inputs.get("corpus") != corpus.digest:
        raise ManifestError(f"{tokens.path}: these tokens were not made from the corpus {corpus.path}")
    rows = read_table(tokens.file(STATISTICS), ("split", "source", "subwords"))
    return {(row.text("source"), row.text("split", SPLITS)): row.count("subwords") for row in rows}


def read_rejected(manifest: Manifest) -> list[Rejected]:
    """What was left out, in the order of the table."""
    rows = read_table(manifest.file("rejected.csv"), ("source", "reason", "count"))
    return [Rejected(row.text("source"), row.text("reason"), row.count("count")) for row in rows]


def read_rejected_texts(manifest: Manifest) -> list[RejectedText]:
    """Examples of what was left out, in the order of the table."""
    rows = read_table(manifest.file("samples.csv"), ("source", "outcome", "reason", "text"))
    return [
        RejectedText(row.text("source"), row.text("reason"), row.text("text"))
        for row in rows
        if row.text("outcome", ("accepted", "rejected")) == "rejected"
    ]


def read_selections(manifest: Manifest) -> list[Selection]:
    """The table `selections.csv` where the corpus has one, otherwise nothing."""
    if not any(output.path == manifest.folder / "selections.csv" for output in manifest.outputs):
        return []
    rows = read_table(
        manifest.file("selections.csv"), ("selection", "source", "level", "texts", "words", "counted_words")
    )
    return [
        Selection(
            selection=row.text("selection"),
            source=row.text("source"),
            level=row.text("level"),
            texts=row.count("texts"),
            words=row.count("words"),
            counted_words=row.count("counted_words"),
        )
        for row in rows
    ]
